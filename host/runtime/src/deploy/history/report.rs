//! The documents of the history: what `/plugins/PLUGIN/history` and `/plugins/PLUGIN/rollback`
//! answer. Plain data.
//!
//! Fields are only ever added, and readers ignore unknown ones. They must not know how the history
//! is kept.

use serde::{Deserialize, Serialize};

/// The versions of a plugin that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HistoryReport {
    /// The plugin.
    pub plugin: String,
    /// The folder that keeps the versions. `None` if they are kept in memory only.
    pub folder: Option<String>,
    /// The runs, oldest first.
    pub runs: Vec<RunReport>,
    /// The digests that are refused while the plugin's source has them.
    pub refused: Vec<String>,
}

/// A version that ran, from one swap or start to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunReport {
    /// `sha256:` and the digest in hex.
    pub digest: String,
    /// The version in the description. Empty if there is none.
    pub version: String,
    /// The generation number, which begins at 1 with each start of the host.
    pub generation: u64,
    /// When the run began, in UTC: `2026-01-31T12:00:00Z`.
    pub began: String,
    /// When the run ended. `None` while the version runs, and if the process was killed (`crash`).
    pub ended: Option<String>,
    /// Why the run ended. `None` while the version runs.
    pub why: Option<Why>,
    /// The size of the component in bytes.
    pub size: u64,
    /// Where the version is kept: `memory`, `file`, or `no` if it is not.
    pub kept: String,
}

/// Why a version ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Why {
    /// The plugin was swapped to other bytes.
    Swapped,
    /// A canary's candidate was promoted. The source may still have the bytes from before.
    Promoted,
    /// An operator ordered a rollback.
    RolledBack,
    /// The circuit breaker of the version opened soon after its swap, and the host rolled it back.
    Breaker,
    /// The host shut down.
    Shutdown,
    /// The plugin was removed.
    Removed,
    /// The host ended without a shutdown.
    Crash,
}

impl Why {
    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Swapped => "swapped",
            Self::Promoted => "canary promoted",
            Self::RolledBack => "rolled back",
            Self::Breaker => "breaker opened",
            Self::Shutdown => "shutdown",
            Self::Removed => "removed",
            Self::Crash => "crash",
        }
    }
}

/// The answer to a rollback.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolledBack {
    /// The plugin.
    pub plugin: String,
    /// The digest of the version that was replaced and is refused from now on: `sha256:` and hex.
    pub from: String,
    /// The digest of the version that runs now.
    pub to: String,
    /// The number of its generation.
    pub generation: u64,
    /// Where the code came from. `memory`: this process still had it. `optimised`: the version's
    /// file was loaded, and the cache of compiled components had its code. `baseline`: the
    /// version's file was loaded and compiled.
    pub code: String,
    /// A summary, with the words of the log.
    pub about: String,
}

/// A rollback that the host suggests, because all calls of the running version have failed since
/// its swap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollbackSuggested {
    /// The digest of the version that a rollback would run.
    pub to: String,
    /// Why the host suggests it.
    pub why: String,
}
