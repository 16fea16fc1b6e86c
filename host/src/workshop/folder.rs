//! A folder's plugin as `vmhost dev` runs it: from a build, or from its source by an interpreter.
//! This module must not know where the plugin runs.

use std::path::Path;
use std::time::Duration;

use vmhost_engine::{LoadError, Plugin};
use vmhost_runtime::deploy::error::ReloadError;
use vmhost_runtime::deploy::files;
use vmhost_runtime::deploy::files::FileError;
use vmhost_runtime::deploy::loaded::Loaded;
use vmhost_runtime::deploy::loader::Loader;
use vmhost_toolchain::build::{Builder, Built, component_path};

use super::source::SourceArgs;

/// The plugin of a folder, as `vmhost dev` runs it.
pub(crate) struct Run {
    /// The result of the build.
    pub(crate) built: Built,
    pub(crate) bytes: Vec<u8>,
    /// The plugin, and its compilation time.
    pub(crate) loaded: (Plugin, Duration),
}

/// The reason why a folder cannot run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The folder does not build.
    #[error(transparent)]
    Build(#[from] vmhost_toolchain::Error),
    /// The built file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The built component is not a plugin that this host can load.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Builds and loads a folder as `vmhost dev` runs it. If an interpreter does not run the source
/// like a build would, the builder falls back to a build, or reports what is wrong with the source.
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
    /// Returns the plugin's path: the component file, or `folder` if an interpreter runs the
    /// source.
    pub(crate) fn path<'a>(&'a self, folder: &'a Path) -> &'a Path {
        match self.built.script {
            None => &self.built.path,
            Some(_) => folder,
        }
    }
}

/// Loads a folder's plugin as `vmhost dev` runs it. Returns `None` if that is the component of a
/// build.
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
