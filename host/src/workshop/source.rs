//! A plugin that the user named: a component, or a folder of source that is built first.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use vmhost_toolchain::Network;
use vmhost_toolchain::build::{self, Built, component_path};

/// The help text of `--plugin`.
pub(crate) const PLUGIN: &str =
    "A component, or a folder of source that is built first. May be repeated.";

/// The flags for building a folder of source.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct SourceArgs {
    /// Download nothing during a build; a missing dependency or Rust target is an error.
    #[arg(long, env = "VMHOST_OFFLINE", value_parser = clap::builder::FalseyValueParser::new())]
    offline: bool,
}

impl SourceArgs {
    /// Returns whether a build may download.
    pub(crate) fn network(self) -> Network {
        match self.offline {
            true => Network::Offline,
            false => Network::Allowed,
        }
    }
}

/// Returns the component file of a plugin. A folder is built first.
pub(crate) async fn component_of(path: &Path, source: SourceArgs) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let out = component_path(path);
    let built = build::build(path, &out, source.network()).await?;
    tracing::info!(target: "vmhost::build", "{}", told(&built));
    Ok(out)
}

/// Returns `built plugins/vm.wasm: 178717 bytes in 834.2ms`, or the source from which the plugin
/// runs.
pub(crate) fn told(built: &Built) -> String {
    let (path, size, took) = (built.path.display(), built.size, built.took);
    match &built.script {
        None => format!("built {path}: {size} bytes in {took:.1?}"),
        Some(script) => format!("{} runs from its source, in {path}", script.entry),
    }
}
