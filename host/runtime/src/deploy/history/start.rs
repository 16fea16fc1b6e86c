//! What a start of the host does with the version in a plugin's file. This module must not know how
//! a version is loaded.

use super::History;
use super::error::HistoryError;

/// What a start does with the version in a plugin's file.
pub(crate) enum Start {
    /// The version is not refused.
    Run,
    /// The version is refused, and the version with this digest and these bytes ran before.
    Instead(String, Vec<u8>),
    /// The version is refused, but no other one can be run. From now on it is not refused any more.
    Lost(HistoryError),
}

impl History {
    /// Returns what a start does with the version in the plugin's file. Reads files.
    pub(crate) fn start(&self, plugin: &str, digest: &str) -> Start {
        let Some(past) = self.past(plugin) else {
            return Start::Run;
        };
        let mut past = past.lock();
        if !past.index.refuses(digest) {
            // The file has other bytes than the refused version.
            past.lift(plugin);
            return Start::Run;
        }
        match past.read_before(digest) {
            Ok((found, bytes)) => {
                past.told = Some(digest.to_owned());
                Start::Instead(found, bytes)
            }
            Err(error) => {
                past.lift(plugin);
                Start::Lost(error)
            }
        }
    }
}
