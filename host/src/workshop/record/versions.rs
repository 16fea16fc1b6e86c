//! The versions of a plugin that may have run: those that the user has (a component, and what
//! `vmhost dev` would run of a folder), and one that the host keeps. This module must not know
//! cases.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use vmhost_engine::Plugin;
use vmhost_runtime::deploy::loader::Loader;
use vmhost_runtime::observe::admin::paths;

use crate::ask::{Answer, Host};
use crate::workshop::folder;
use crate::workshop::source::{SourceArgs, component_of};

/// Versions of a plugin, each with `sha256:` and its digest.
pub(super) struct Versions {
    path: String,
    pub(super) all: Vec<(String, Plugin)>,
}

impl Versions {
    /// Loads a component, or builds and loads a folder.
    pub(super) async fn load(loader: &Loader, path: &Path, source: SourceArgs) -> Result<Self> {
        let component = component_of(path, source).await?;
        let component = loader.load_file(&component).await?.plugin;
        let in_dev = folder::in_dev(path, loader, source).await?;
        let all = [Some(component), in_dev].into_iter().flatten();
        Ok(Self {
            path: path.display().to_string(),
            all: all
                .map(|plugin| (format!("sha256:{}", plugin.digest()), plugin))
                .collect(),
        })
    }

    /// Formats that none of these versions ran a turn.
    pub(super) fn no_other(&self) -> String {
        let digests: Vec<&str> = self.all.iter().map(|(digest, _)| digest.as_str()).collect();
        format!(
            "another version ran than {} ({})",
            self.path,
            digests.join(", ")
        )
    }
}

/// Gets a version from the host on which it ran, and loads it. `digest` has `sha256:` in front.
pub(super) async fn of_host(
    loader: &Loader,
    host: &Host,
    plugin: &str,
    digest: &str,
) -> Result<Plugin> {
    let bytes = host.bytes(&paths::component(plugin, digest)).await;
    let bytes = bytes
        .and_then(Answer::found)
        .context("the host does not give the version that ran, which --plugin may name instead")?;
    let (loaded, _) = loader.load(&bytes).await?;
    let sent = format!("sha256:{}", loaded.digest());
    ensure!(
        sent == digest,
        "the host sent {sent} and not {digest}, which ran"
    );
    Ok(loaded)
}
