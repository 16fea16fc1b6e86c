//! Builds a folder of source into a component. Each language has a file below; this file has what
//! they share: it finds all tools before any of them runs, and checks the result before it replaces
//! the old one. This module knows no cluster and calls no policy.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use vmhost_engine::{Script, ScriptError};

use crate::error::IoContext as _;
use crate::stamp::{Stamp, stamp};
use crate::tool::Tool;
use crate::{Language, Result, componentize, embedded, imports, place};

mod c;
mod go;
mod js;
mod made;
mod python;
mod quickjs;
mod rust;
mod zig;

use made::Made;
pub use made::Network;
pub(crate) use python::is_taken as is_python_module;

/// A component that was built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Built {
    /// The path of the component.
    pub path: PathBuf,
    /// The component's size in bytes.
    pub size: u64,
    /// How long the build took, in milliseconds.
    #[serde(serialize_with = "as_millis", rename = "milliseconds")]
    pub took: Duration,
    /// The script that each instance loads when it starts, if the component is an interpreter: see
    /// [`Builder::dev`].
    #[serde(skip)]
    pub script: Option<Script>,
}

fn as_millis<S: serde::Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(took.as_millis() as u64)
}

/// Builds one folder repeatedly, and looks for its tools once.
#[derive(Debug)]
pub struct Builder {
    folder: PathBuf,
    language: Language,
    tools: Tools,
}

/// The tools of one language.
#[derive(Debug)]
enum Tools {
    Rust(rust::Tools),
    Js(js::Tools),
    Python(python::Tools),
    Go(go::Tools),
    C(c::Tools),
    Zig(zig::Tools),
}

/// Builds a folder once.
pub async fn build(folder: &Path, out: &Path, network: Network) -> Result<Built> {
    Builder::new(folder, network).await?.build(out).await
}

/// Writes a component from a file: converts a core module, or checks and copies a component.
pub fn component_from(file: &Path, out: &Path) -> Result<Built> {
    let started = Instant::now();
    let component = componentize::component(file, place::read(file)?)?;
    imports::check(file, &component)?;
    finish(&component, out, started)
}

impl Builder {
    /// Finds the language and its tools. Returns an error for a missing or outdated tool before
    /// anything is compiled. Lets rustup add a missing Rust target if the network may be used.
    pub async fn new(folder: &Path, network: Network) -> Result<Self> {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let language = Language::of(&folder)?;
        let tools = match language {
            Language::Rust => Tools::Rust(rust::Tools::find(&folder, network).await?),
            Language::Js | Language::Ts => Tools::Js(js::Tools::find(&folder, language).await?),
            Language::Python => Tools::Python(python::Tools::find(&folder).await?),
            Language::Go => Tools::Go(go::Tools::find(&folder, network).await?),
            Language::C | Language::Cpp => Tools::C(c::Tools::find(&folder, language).await?),
            Language::Zig => Tools::Zig(zig::Tools::find(&folder).await?),
        };
        Ok(Self {
            folder,
            language,
            tools,
        })
    }

    /// Returns the language of the folder.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Returns whether the project's files still name the same tools.
    pub fn is_current(&self) -> bool {
        match &self.tools {
            Tools::Js(tools) => tools.is_current(&self.folder),
            _ => true,
        }
    }

    /// Builds what `vmhost dev` runs. For a language with a slow [`Builder::build`], this is
    /// another component, which is not put at `out`: one without optimisations, or a cached
    /// interpreter together with the policy's source.
    pub async fn dev(&self, out: &Path) -> Result<Built> {
        let started = Instant::now();
        match &self.tools {
            Tools::Python(tools) => match tools.script(&self.folder).await? {
                Some((path, script)) => built(&path, started, Some(script)),
                None => self.build(out).await,
            },
            Tools::Zig(tools) => {
                let made = tools.build(&self.folder, zig::Mode::Debug).await?;
                // Kept away from `out`, where users look for the component to deploy.
                let out = made.file.with_file_name("dev.wasm");
                self.finish(made, &out, started)
            }
            _ => self.build(out).await,
        }
    }

    /// Returns whether [`Builder::dev`] and [`Builder::build`] build different components.
    pub fn has_dev(&self) -> bool {
        matches!(self.tools, Tools::Python(_) | Tools::Zig(_))
    }

    /// Records why an interpreter did not run the script of [`Builder::dev`], so that the next call
    /// builds another interpreter or the whole policy. If the policy is at fault, prints its
    /// traceback and returns an error.
    pub fn refused(&self, error: &ScriptError) -> Result<()> {
        match &self.tools {
            Tools::Python(tools) => tools.refused(&self.folder, error),
            _ => Ok(()),
        }
    }

    /// Builds the folder into `out`. The tools write their messages to this process's stderr.
    /// Dropping the future stops them and leaves `out` unchanged.
    pub async fn build(&self, out: &Path) -> Result<Built> {
        let started = Instant::now();
        let folder = &self.folder;
        let made = match &self.tools {
            Tools::Rust(tools) => tools.build(folder).await?,
            Tools::Js(tools) => tools.build(folder).await?,
            Tools::Python(tools) => tools.build(folder).await?,
            Tools::Go(tools) => tools.build(folder).await?,
            Tools::C(tools) => tools.build(folder).await?,
            Tools::Zig(tools) => tools.build(folder, zig::Mode::Release).await?,
        };
        self.finish(made, out, started)
    }

    /// Turns the result of a language's build into a component and moves it to `out`.
    fn finish(&self, made: Made, out: &Path, started: Instant) -> Result<Built> {
        let mut component = componentize::component(&made.file, made.wasm)?;
        imports::check(&made.file, &component)?;
        let about = Stamp {
            language: self.language.title(),
            sdk: made.sdk.as_deref().and_then(embedded::sdk_version),
            tool: made.by,
        };
        stamp(&mut component, &about);
        finish(&component, out, started)
    }
}

fn finish(component: &[u8], out: &Path, started: Instant) -> Result<Built> {
    place::whole(out, component)?;
    built(out, started, None)
}

fn built(path: &Path, started: Instant, script: Option<Script>) -> Result<Built> {
    let size = std::fs::metadata(path).at("read", path)?.len();
    Ok(Built {
        path: path.to_owned(),
        size,
        took: started.elapsed(),
        script,
    })
}

/// Returns the default path of a component: `plugins/vm.wasm` for `plugins/vm`.
pub fn component_path(folder: &Path) -> PathBuf {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".wasm");
    folder.with_file_name(name)
}

/// All tools that build plugins, with the languages that need them.
pub(crate) const TOOLS: &[(&Tool, &[Language])] = &[
    (&rust::CARGO, &[Language::Rust]),
    (&rust::TARGET, &[Language::Rust]),
    (&js::ESBUILD, &[Language::Js, Language::Ts]),
    (&quickjs::QUICKJS, &[Language::Js, Language::Ts]),
    (&js::STARLINGMONKEY, &[Language::Js, Language::Ts]),
    (&python::COMPONENTIZE, &[Language::Python]),
    (&go::GO, &[Language::Go]),
    (&c::CLANG, &[Language::C]),
    (&c::CLANG_CPP, &[Language::Cpp]),
    (&zig::ZIG, &[Language::Zig]),
];
