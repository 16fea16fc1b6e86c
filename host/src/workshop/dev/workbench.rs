//! The folder of a plugin in development: builds and loads it, at first and at each save. This
//! module must not know where the plugin runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use parking_lot::Mutex;
use vmhost_runtime::deploy::files::folder::FolderWatch;
use vmhost_runtime::deploy::first::FirstLoad;
use vmhost_runtime::deploy::loader::Loader;
use vmhost_runtime::deploy::source::{Build, Building, Source};
use vmhost_toolchain::build::component_path;
use vmhost_toolchain::{Builder, Error, Network};

use crate::workshop::folder::{self, Run, RunError};
use crate::workshop::source::told;

/// Builds the folder at each save.
pub(super) struct Workbench {
    folder: PathBuf,
    loader: Arc<Loader>,
    network: Network,
    /// The tools, after they were first looked up.
    known: Mutex<Option<Arc<Builder>>>,
}

impl Workbench {
    pub(super) fn new(folder: &Path, loader: Arc<Loader>, network: Network) -> Self {
        Self {
            folder: folder.to_owned(),
            loader,
            network,
            known: Mutex::default(),
        }
    }

    /// Builds the folder for the first time. It is watched before that, so that no save is missed.
    /// Returns the plugin's path.
    pub(super) async fn load(self, plugin: &mut FirstLoad) -> Result<PathBuf> {
        let watch = FolderWatch::new(&self.folder)?;
        let run = self.run().await?;
        tracing::info!(target: "vmhost::build", "{}", told(&run.built));
        let from = run.path(&self.folder).to_owned();
        plugin.add(Source::Folder(watch, Box::new(self)), run.into())?;
        Ok(from)
    }

    /// Builds and loads the folder. The tools are looked up once, and again when the project names
    /// others or when a build failed for another reason than its source, since a missing tool may
    /// have been installed.
    async fn run(&self) -> Result<Run, RunError> {
        let known = self
            .known
            .lock()
            .clone()
            .filter(|builder| builder.is_current());
        let builder = match known {
            Some(known) => known,
            None => Arc::new(Builder::new(&self.folder, self.network).await?),
        };
        let run = folder::run(&builder, &self.loader, &component_path(&self.folder)).await;
        let is_fine = match &run {
            Err(RunError::Build(error)) => matches!(error, Error::Failed { .. }),
            _ => true,
        };
        *self.known.lock() = is_fine.then_some(builder);
        run
    }
}

impl Build for Workbench {
    fn build(&self) -> Building<'_> {
        Box::pin(async { Ok(self.run().await?.into()) })
    }
}
