//! What the builds of all languages share.

use std::path::{Path, PathBuf};

use crate::process::Output;
use crate::tool::{Program, Tool};
use crate::{Error, Result};

/// Whether a build may fetch what it lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Cargo and Go may download dependencies, and rustup a missing Rust target.
    #[default]
    Allowed,
    /// Nothing is downloaded. The error for a missing tool names the command to run.
    Offline,
}

/// The result of a language's build: a component or a core module, and the tool that built it.
pub(super) struct Made {
    pub(super) wasm: Vec<u8>,
    /// The file that it was read from.
    pub(super) file: PathBuf,
    /// The SDK's folder, if it is known.
    pub(super) sdk: Option<PathBuf>,
    pub(super) by: (String, String),
}

impl Made {
    pub(super) fn by(
        wasm: Vec<u8>,
        file: PathBuf,
        sdk: Option<PathBuf>,
        tool: &Tool,
        program: &Program,
    ) -> Self {
        let version = program.version.map(|version| version.to_string());
        Self {
            wasm,
            file,
            sdk,
            by: (tool.name.to_owned(), version.unwrap_or_default()),
        }
    }
}

/// Returns an error if a tool refused the source.
pub(super) fn succeeded(output: &Output, folder: &Path, tool: &str) -> Result<()> {
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::Failed {
            folder: folder.to_owned(),
            tool: tool.to_owned(),
        }),
    }
}
