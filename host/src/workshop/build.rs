//! `vmhost build`, `new`, `types` and `doctor`: what `vmhost-toolchain` does, as the user sees it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use vmhost_engine::{CacheUse, LoadError, Plugin};
use vmhost_toolchain::build::{self, Builder, Built, component_path};
use vmhost_toolchain::doctor;
use vmhost_toolchain::scaffold::Project;
use vmhost_toolchain::types::{Wanted, types as write_types};

use super::args::{BuildArgs, DoctorArgs, NewArgs, TypesArgs};
use super::source::{SourceArgs, told};
use crate::cli::common::OutputFormat;
use crate::flags::cache_folder;
use crate::output::print;
use vmhost_runtime::deploy::error::ReloadError;
use vmhost_runtime::deploy::files;
use vmhost_runtime::deploy::files::FileError;
use vmhost_runtime::deploy::loaded::Loaded;
use vmhost_runtime::deploy::loader::Loader;
use vmhost_runtime::table::bytes;

/// `vmhost build`.
pub(crate) async fn command(args: &BuildArgs) -> Result<()> {
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
        OutputFormat::Text => print(&told(&built)),
    }
    Ok(())
}

/// The plugin of a folder, as `vmhost dev` runs it.
pub(crate) struct Run {
    /// What was made of the folder.
    pub(crate) built: Built,
    pub(crate) bytes: Vec<u8>,
    /// The plugin, and how long it took to compile the component.
    pub(crate) loaded: (Plugin, Duration),
}

/// Why a folder is not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// It cannot be built.
    #[error(transparent)]
    Build(#[from] vmhost_toolchain::Error),
    /// What was built cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// What was built is no plugin of this host.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Makes what `vmhost dev` runs of a folder, and loads it. If an interpreter does not run the
/// source as a build would, the builder makes something else or says what is wrong with the source.
pub(crate) async fn run(builder: &Builder, loader: &Loader, out: &Path) -> Result<Run, RunError> {
    loop {
        let built = builder.dev(out).await?;
        let bytes = files::read(&built.path, loader.config.limits.component).await?;
        match loader.load_with(&bytes, built.script.clone()).await {
            Ok(loaded) => {
                return Ok(Run {
                    built,
                    bytes,
                    loaded,
                });
            }
            Err(LoadError::Script(refused)) => builder.refused(&refused)?,
            Err(error) => return Err(error.into()),
        }
    }
}

impl From<RunError> for ReloadError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Build(error) => Self::Build(Box::new(error)),
            RunError::File(error) => error.into(),
            RunError::Load(error) => error.into(),
        }
    }
}

impl From<Run> for Loaded {
    fn from(run: Run) -> Self {
        let (plugin, compile) = run.loaded;
        Self {
            plugin,
            bytes: run.bytes,
            build: Some(run.built.took),
            compile,
        }
    }
}

impl Run {
    /// Returns where the plugin is: the component's file, or `folder` if an interpreter runs it.
    pub(crate) fn path<'a>(&'a self, folder: &'a Path) -> &'a Path {
        match self.built.script {
            None => &self.built.path,
            Some(_) => folder,
        }
    }
}

/// Loads a folder's plugin as `vmhost dev` runs it, if that is not the component that is built.
pub(crate) async fn in_dev(
    path: &Path,
    loader: &Loader,
    source: SourceArgs,
) -> Result<Option<Plugin>, RunError> {
    if !path.is_dir() {
        return Ok(None);
    }
    let builder = Builder::new(path, source.network()).await?;
    if !builder.has_dev() {
        return Ok(None);
    }
    let run = run(&builder, loader, &component_path(path)).await?;
    Ok(Some(run.loaded.0))
}

/// `vmhost new`.
pub(crate) fn new(args: &NewArgs) -> Result<()> {
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
pub(crate) async fn types(args: &TypesArgs) -> Result<()> {
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
pub(crate) async fn doctor(args: &DoctorArgs) -> Result<()> {
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
