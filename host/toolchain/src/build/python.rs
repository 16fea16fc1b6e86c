//! Python: componentize-py puts the module, the SDK and CPython into a component. For `vmhost dev`
//! it makes one without the module, which loads the module from its source.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use vmhost_engine::{Script, ScriptError};

pub(crate) use self::project::is_taken;
use self::project::module;
use self::source::Source;
use super::{Made, succeeded};
use crate::error::IoContext as _;
use crate::tool::{Program, Tool, Way};
use crate::version::Version;
use crate::work::Work;
use crate::{Error, Language, Result, place, process, wit};

mod base;
mod project;
mod source;

/// Makes the component.
pub(crate) const COMPONENTIZE: Tool = Tool {
    name: "componentize-py",
    variable: None,
    ways: &[
        Way {
            command: &["componentize-py"],
            local: Some(".venv/bin"),
            version: &["--version"],
            probe: None,
        },
        // Installed without its program; the package cannot be run as a module.
        Way {
            command: &[
                "python3",
                "-c",
                "import sys; from componentize_py import script; sys.exit(script())",
            ],
            local: Some(".venv/bin"),
            version: &["--version"],
            probe: None,
        },
    ],
    minimum: Version(0, 25, 1),
    install: "python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1",
};

/// Makes the packages of a `requirements.txt` ready: those of Python alone, for no other can work.
const REQUIREMENTS: &str = "python3 -m pip install --target .vmhost/site --platform any --implementation py --abi none --python-version 3.14 --only-binary=:all: -r requirements.txt";

/// What is wrong when there is nothing to take.
const NOTHING: &str = "componentize-py ended well, and wrote nothing";

/// The module that componentize-py is given. It is ours: the user's own module names no class that the contract wants.
const ENTRY: &str = "vmhost_entry";

/// What builds Python.
#[derive(Debug)]
pub(crate) struct Tools {
    componentize: Program,
    learned: Mutex<Learned>,
}

/// What the host found out when it ran policies from their source.
#[derive(Debug, Default)]
struct Learned {
    /// Modules of Python's library and of packages that a policy imports.
    modules: BTreeSet<String>,
    /// Why the next one has to be built, if it has to.
    to_build: Option<String>,
    /// The folders that tracebacks name by their position.
    paths: Vec<PathBuf>,
}

/// The folders that modules are in.
struct Folders {
    policy: PathBuf,
    /// Packages of `requirements.txt`.
    site: Option<PathBuf>,
    sdk: PathBuf,
    empty: PathBuf,
}

impl Folders {
    fn of(policy: &Path, work: &Work) -> Result<Self> {
        let empty = work.path("empty");
        fs::create_dir_all(&empty).at("make", &empty)?;
        Ok(Self {
            policy: policy.to_owned(),
            site: requirements(policy, work)?,
            sdk: work.sdk(Language::Python)?,
            empty,
        })
    }

    /// Returns them in the order in which Python looks for modules. Tracebacks name the first `/0`.
    fn paths<'a>(&'a self, entry: &'a Path, policy: &'a Path) -> Vec<&'a Path> {
        let site = self.site.as_deref();
        let paths = [Some(entry), Some(policy), site, Some(&self.sdk)];
        paths.into_iter().flatten().collect()
    }
}

impl Tools {
    pub async fn find(folder: &Path) -> Result<Self> {
        let componentize = COMPONENTIZE.need(folder, Language::Python).await?;
        Ok(Self {
            componentize,
            learned: Mutex::default(),
        })
    }

    pub async fn build(&self, folder: &Path) -> Result<Made> {
        let module = module(folder)?;
        let work = Work::begin(folder).await?;
        let folders = Folders::of(folder, &work)?;
        let entry = work.path("python");
        place::if_changed(&entry.join(format!("{ENTRY}.py")), text(&module).as_bytes())?;
        let component = work.output("plugin.wasm")?;
        let paths = folders.paths(&entry, folder);
        self.componentize(&folders, &work.wit()?, wit::WORLD, &paths, &component)
            .await?;
        let wasm = work.take(&component, NOTHING)?;
        let (tool, program) = (&COMPONENTIZE, &self.componentize);
        Ok(Made::by(wasm, component, Some(folders.sdk), tool, program))
    }

    /// Returns the policy's source and the component that runs it, or nothing if the policy has to
    /// be built.
    pub async fn script(&self, folder: &Path) -> Result<Option<(PathBuf, Script)>> {
        let entry = module(folder)?;
        let to_build = self.learned().to_build.take();
        let source = match to_build {
            Some(reason) => Source::ToBuild(reason),
            None => source::read(folder)?,
        };
        let files = match source {
            Source::Modules(files) => files,
            Source::ToBuild(reason) => {
                let folder = folder.display();
                tracing::info!("{folder} is built whole, which takes some 10 s: {reason}");
                return Ok(None);
            }
        };
        let work = Work::begin(folder).await?;
        let folders = Folders::of(folder, &work)?;
        let modules = {
            let mut learned = self.learned();
            let paths = folders.paths(&folders.empty, folder).into_iter();
            learned.paths = paths.map(Path::to_owned).collect();
            learned.modules.clone()
        };
        // The policy's modules come before those of packages and behind Python's library.
        let own = |module: &str| {
            let top = |path: &str| path.split(['/', '.']).next().map(str::to_owned);
            let module = top(module);
            !module.as_deref().is_some_and(is_taken)
                && files.iter().any(|file| top(&file.path) == module)
        };
        match base::base(self, &work, &folders, modules, own).await {
            Ok(base) => Ok(Some((base, Script { entry, files }))),
            // A module that cannot be imported, perhaps, and that the policy may not want any more.
            Err(Error::Failed { .. }) => {
                self.learned().modules.clear();
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// See [`super::Builder::refused`].
    pub fn refused(&self, folder: &Path, error: &ScriptError) -> Result<()> {
        let mut learned = self.learned();
        match error {
            ScriptError::Lacks(modules) => {
                let before = learned.modules.len();
                learned.modules.extend(modules.iter().cloned());
                if learned.modules.len() == before {
                    learned.to_build = Some(error.to_string());
                }
            }
            ScriptError::Opens(_) => learned.to_build = Some(error.to_string()),
            ScriptError::Raised(text) => {
                let text = as_called_here(text, &learned.paths);
                let _ = std::io::stderr().write_all(text.as_bytes());
                return Err(Error::Failed {
                    folder: folder.to_owned(),
                    tool: "Python".to_owned(),
                });
            }
        }
        Ok(())
    }

    fn learned(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn componentize(
        &self,
        folders: &Folders,
        contract: &Path,
        world: &str,
        paths: &[&Path],
        component: &Path,
    ) -> Result<()> {
        let mut command = self.componentize.command();
        // An environment without packages, so that those of the machine are not found.
        command
            .current_dir(&folders.policy)
            .env("VIRTUAL_ENV", &folders.empty);
        command
            .env("RUST_BACKTRACE", "0")
            .env("RUST_LIB_BACKTRACE", "0");
        command.args(["--quiet", "--wit-path"]).arg(contract);
        command.args(["--world", world, "componentize"]);
        for path in paths {
            command.arg("--python-path").arg(path);
        }
        command.args([ENTRY, "--output"]).arg(component);
        let (output, messages) = process::run_kept(&mut command).await?;
        if !output.status.success() {
            let _ = std::io::stderr().write_all(readable(&messages, paths).as_bytes());
        }
        succeeded(&output, &folders.policy, COMPONENTIZE.name)
    }
}

/// The entry. Nothing is written beside the sources: whoever watches them would see a change.
fn text(module: &str) -> String {
    format!(
        "import sys\nsys.dont_write_bytecode = True\nimport {module}\nfrom vmhost_plugin.component import Controller\n"
    )
}

/// The packages of `requirements.txt`, if there is one.
fn requirements(folder: &Path, work: &Work) -> Result<Option<PathBuf>> {
    let file = folder.join("requirements.txt");
    let site = work.path("site");
    let changed = |path: &Path| {
        path.metadata()
            .and_then(|metadata| metadata.modified())
            .ok()
    };
    match (changed(&file), changed(&site)) {
        (None, _) => Ok(None),
        (Some(wanted), Some(there)) if there >= wanted => Ok(Some(site)),
        _ => Err(Error::Project {
            file,
            problem: format!(
                "its packages are not there, or older than it: run in {}: {REQUIREMENTS}",
                folder.display()
            ),
        }),
    }
}

/// What componentize-py says of a failure, with the files' own names: it knows the folders as `/0`, `/1` and so on, and says all of it twice.
fn readable(messages: &str, paths: &[&Path]) -> String {
    let text = messages
        .split_once("AssertionError: ")
        .map_or(messages, |(_, text)| text);
    let text = text
        .rsplit_once("\n\nCaused by:")
        .map_or(text, |(text, _)| text);
    as_called_here(text, paths)
}

/// A traceback with the files' own names.
fn as_called_here(text: &str, paths: &[impl AsRef<Path>]) -> String {
    let mut readable = text.trim().to_owned();
    for (index, path) in paths.iter().enumerate() {
        let here = format!("\"{}/", path.as_ref().display());
        readable = readable.replace(&format!("\"/{index}/"), &here);
    }
    readable.push('\n');
    readable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_files_as_they_are_called_here() {
        let messages = "thread panicked\nAssertionError: Traceback:\n  File \"/0/vmhost_entry.py\", line 3, in <module>\n  File \"/1/vm.py\", line 12\nSyntaxError: invalid syntax\n\nCaused by:\n  SyntaxError: invalid syntax\n";
        let paths = [Path::new("/p/.vmhost/python"), Path::new("/p")];
        assert_eq!(
            readable(messages, &paths),
            "Traceback:\n  File \"/p/.vmhost/python/vmhost_entry.py\", line 3, in <module>\n  File \"/p/vm.py\", line 12\nSyntaxError: invalid syntax\n"
        );
        // What looks otherwise is shown as it is.
        assert_eq!(readable("no space left\n", &paths), "no space left\n");
    }

    #[tokio::test]
    async fn packages_that_are_not_there_are_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let work = Work::begin(folder.path()).await.unwrap();
        assert_eq!(requirements(folder.path(), &work).unwrap(), None);
        fs::write(folder.path().join("requirements.txt"), "six\n").unwrap();
        let error = requirements(folder.path(), &work).unwrap_err().to_string();
        assert!(error.ends_with(REQUIREMENTS), "{error}");
        let site = work.path("site");
        fs::create_dir(&site).unwrap();
        assert_eq!(requirements(folder.path(), &work).unwrap(), Some(site));
    }
}
