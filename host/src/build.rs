//! `vmhost build`, `new`, `types` and `doctor`: what `vmhost-toolchain` does, as the user sees it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use vmhost_engine::{CacheUse, LoadError, Plugin};
use vmhost_toolchain::build::{self, Builder, Built, Network, component_path};
use vmhost_toolchain::doctor;
use vmhost_toolchain::imports;
use vmhost_toolchain::scaffold::Project;
use vmhost_toolchain::types::{Wanted, types as write_types};

use crate::cli::{BuildArgs, DoctorArgs, NewArgs, OutputFormat, TypesArgs};
use crate::config::cache_folder;
use crate::manager::Loader;
use crate::run::print;
use crate::table::bytes;
use crate::watch_files::{self, FileError};

/// `vmhost build`.
pub async fn command(args: &BuildArgs) -> Result<()> {
    let built = if args.source.is_file() {
        let out = args.out.as_ref();
        let out =
            out.context("--out is needed: where the component of a core module is written")?;
        build::component_from(&args.source, out)?
    } else {
        let out = args.out.clone();
        let out = out.unwrap_or_else(|| component_path(&args.source));
        build::build(&args.source, &out, args.tools.network()).await?
    };
    match args.output {
        OutputFormat::Json => print(&serde_json::to_string(&built)?),
        OutputFormat::Text => print(&text(&built)),
    }
    Ok(())
}

/// `built plugins/vm.wasm: 178717 bytes in 834.2ms`, or from which source it runs.
pub fn text(built: &Built) -> String {
    let (path, size, took) = (built.path.display(), built.size, built.took);
    match &built.script {
        None => format!("built {path}: {size} bytes in {took:.1?}"),
        Some(script) => format!("{} runs from its source, in {path}", script.entry),
    }
}

/// The plugin of a folder, as `vmhost dev` runs it.
pub struct Run {
    /// What was made of the folder.
    pub built: Built,
    /// The component's bytes.
    pub bytes: Vec<u8>,
    /// The plugin, and how long it took to compile the component.
    pub loaded: (Plugin, Duration),
}

/// Why a folder is not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It cannot be built.
    #[error(transparent)]
    Build(#[from] vmhost_toolchain::Error),
    /// What was built cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// What was built is no plugin of this host.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The same, and what can be done against it.
    #[error("{0}")]
    Advised(&'static str, #[source] LoadError),
}

/// Makes what `vmhost dev` runs of a folder, and loads it. If an interpreter does not run the
/// source as a build would, the builder makes something else or says what is wrong with the source.
pub async fn run(builder: &Builder, loader: &Loader, out: &Path) -> Result<Run, RunError> {
    loop {
        let built = builder.dev(out).await?;
        let bytes = watch_files::read(&built.path, loader.config.limits.component).await?;
        match loader.load_with(&bytes, built.script.clone()).await {
            Ok(loaded) => {
                return Ok(Run {
                    built,
                    bytes,
                    loaded,
                });
            }
            Err(LoadError::Script(refused)) => builder.refused(&refused)?,
            Err(error) => {
                return Err(match imports::advice(&bytes) {
                    Some(advice) => RunError::Advised(advice, error),
                    None => error.into(),
                });
            }
        }
    }
}

impl Run {
    /// Returns where the plugin is: the component's file, or `folder` if an interpreter runs it.
    pub fn path<'a>(&'a self, folder: &'a Path) -> &'a Path {
        match self.built.script {
            None => &self.built.path,
            Some(_) => folder,
        }
    }
}

/// The file of a plugin that the user named: a folder is built first.
pub async fn component_of(path: &Path, network: Network) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let out = component_path(path);
    let built = build::build(path, &out, network).await?;
    tracing::info!("{}", text(&built));
    Ok(out)
}

/// Loads a folder's plugin as `vmhost dev` runs it, if that is not the component that is built.
pub async fn in_dev(
    path: &Path,
    loader: &Loader,
    network: Network,
) -> Result<Option<Plugin>, RunError> {
    if !path.is_dir() {
        return Ok(None);
    }
    let builder = Builder::new(path, network).await?;
    if !builder.has_dev() {
        return Ok(None);
    }
    let run = run(&builder, loader, &component_path(path)).await?;
    Ok(Some(run.loaded.0))
}

/// `vmhost new`.
pub fn new(args: &NewArgs) -> Result<()> {
    let project = Project {
        name: &args.name,
        language: args.lang,
        kind: &args.kind,
        group: &args.group,
        version: &args.api_version,
    };
    let folder = project.write(Path::new(""))?;
    let folder = folder.display();
    print(&format!(
        "wrote {folder}: a {} that is greeted, in {}\nnext: vmhost dev {folder} (what has to be installed: {folder}/README.md, vmhost doctor)",
        args.kind,
        args.lang.title()
    ));
    Ok(())
}

/// `vmhost types`.
pub async fn types(args: &TypesArgs) -> Result<()> {
    let wanted = Wanted {
        file: &args.file,
        version: args.version.as_deref(),
        language: args.lang,
    };
    let types = write_types(&wanted).await?;
    match &args.out {
        Some(out) => {
            std::fs::write(out, &types.text).with_context(|| format!("--out {}", out.display()))?;
            print(&format!("wrote {}", out.display()));
        }
        None => print(types.text.trim_end()),
    }
    if !types.lost.is_empty() {
        let lost = types.lost.join(", ");
        tracing::warn!("the SDK reads no field of these names into a dataclass: {lost}");
    }
    Ok(())
}

/// `vmhost doctor`.
pub async fn doctor(args: &DoctorArgs) -> Result<()> {
    let lines = doctor::doctor(&args.folder).await;
    match args.output {
        OutputFormat::Json => print(&serde_json::to_string(&lines)?),
        OutputFormat::Text => {
            print(doctor::table(&lines).trim_end());
            print(&cache(cache_folder(args.cache.as_deref()))?);
        }
    }
    Ok(())
}

/// `vmhost cache: /home/you/.cache/vmhost/components, 42 compiled components, 123.4Mi of at most
/// 1.0Gi`.
fn cache(folder: Option<PathBuf>) -> Result<String> {
    let Some(folder) = folder else {
        return Ok("vmhost cache: none, components are compiled at each start".to_owned());
    };
    let shown = folder.display();
    let held = CacheUse::of(&folder).with_context(|| format!("the cache folder {shown}"))?;
    let (used, most) = (bytes(held.bytes), bytes(held.bound));
    Ok(format!(
        "vmhost cache: {shown}, {} compiled components, {used} of at most {most}",
        held.files
    ))
}
