//! How many versions of a plugin are kept, and where. Plain data.

use std::path::PathBuf;

/// The number of versions of a plugin that are kept.
pub(super) const VERSIONS: usize = 10;

/// The bytes of components that are kept of a plugin.
pub(super) const BYTES: u64 = 256 << 20;

/// Where the versions of plugins are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Nowhere.
    #[default]
    Off,
    /// In memory, until the process ends.
    Memory,
    /// In this folder, one folder below for each plugin.
    Folder(PathBuf),
}
