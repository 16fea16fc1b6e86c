//! How many versions of a plugin are kept, and where. Plain data. It must not know which versions
//! ran.

use std::path::PathBuf;

/// The number of versions of a plugin that are kept.
pub(super) const VERSIONS: usize = 10;

/// The most bytes of components that are kept of one plugin.
pub(super) const BYTES: u64 = 256 << 20;

/// The place where the versions of plugins are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// No version is kept.
    #[default]
    Off,
    /// In memory, until the process ends.
    Memory,
    /// In this folder, which has a folder for each plugin.
    Folder(PathBuf),
}
