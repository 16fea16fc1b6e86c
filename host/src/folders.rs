//! The paths of this user's folders: the cache, and files of running processes. This module must
//! not read or write them.

use std::net::SocketAddr;
use std::path::PathBuf;

/// The user's cache folder of vmhost: `$XDG_CACHE_HOME/vmhost` or `~/.cache/vmhost`. `None` without
/// a home folder, as in many containers.
pub(crate) fn cache() -> Option<PathBuf> {
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("vmhost"))
}

/// Returns the files in which a host that listens on this admin address may have stored its token
/// for the commands of its user, the best one first: in `$XDG_RUNTIME_DIR/vmhost`, or in the cache
/// folder. A service does not have the first folder, but its user's shell does.
///
/// The file's name contains the whole address, because another user may listen on the same port of
/// another address.
pub(crate) fn token_files(address: SocketAddr) -> Vec<PathBuf> {
    let running = set("XDG_RUNTIME_DIR").map(|base| base.join("vmhost"));
    let cached = cache().map(|cache| cache.join("running"));
    let folders = running.into_iter().chain(cached);
    folders
        .map(|folder| folder.join(format!("{address}.token")))
        .collect()
}

fn set(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}
