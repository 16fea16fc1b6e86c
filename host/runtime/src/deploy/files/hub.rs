//! One file watcher for all plugins. A thread and an inotify instance per file would reach the
//! limit at 128 plugins.
//!
//! The hub owns the list of watched folders, the watches that need each of them, and the meaning of
//! an event. It reads no file.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use parking_lot::Mutex;

use super::sign::{POLL, Sign, Signs};

/// Watches folders on a thread of its own.
#[derive(Debug)]
pub(crate) struct Hub {
    /// `None` if the system cannot watch files. Then they are only polled.
    watcher: Mutex<Option<RecommendedWatcher>>,
    folders: Arc<Mutex<Folders>>,
}

/// The watches that need each folder.
type Folders = HashMap<PathBuf, Vec<Interest>>;

#[derive(Debug)]
struct Interest {
    names: Vec<OsString>,
    linked: bool,
    signs: Weak<Signs>,
}

/// The watched paths of a file: the folders of its name and of its symlink targets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WatchedFile {
    folders: Vec<PathBuf>,
    /// The file's name and its target's name, which is the one that is written.
    names: Vec<OsString>,
    /// True if the path contains a symlink, which may be exchanged.
    linked: bool,
}

impl WatchedFile {
    pub(super) fn of(path: &Path) -> Self {
        let mut file = Self::default();
        // Events carry the folder's path as it was given. An absolute path is the same for every
        // watch.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let target = std::fs::canonicalize(&path).ok();
        file.linked = target.as_ref().is_some_and(|target| *target != path);
        for path in std::iter::once(path).chain(target) {
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
                continue;
            };
            if !file.folders.iter().any(|known| known == folder) {
                file.folders.push(folder.to_owned());
            }
            if !file.names.iter().any(|known| known == name) {
                file.names.push(name.to_owned());
            }
        }
        file
    }
}

impl Hub {
    /// A hub that watches nothing yet.
    pub(crate) fn new() -> Arc<Self> {
        let folders: Arc<Mutex<Folders>> = Arc::default();
        let watcher = notify::recommended_watcher({
            let folders = folders.clone();
            move |event: notify::Result<Event>| {
                if let Ok(event) = event {
                    tell(&folders.lock(), &event);
                }
            }
        });
        let watcher = watcher
            .inspect_err(|error| {
                tracing::warn!(
                    "file events are not available, reading files every {:?} instead: {error}",
                    POLL
                );
            })
            .ok();
        Arc::new(Self {
            watcher: Mutex::new(watcher),
            folders,
        })
    }

    /// Starts sending signs about this file. If a folder cannot be watched, the file's own task
    /// polls instead.
    pub(super) fn watch(&self, file: &WatchedFile, signs: &Arc<Signs>) {
        let mut watcher = self.watcher.lock();
        for folder in &file.folders {
            {
                let mut folders = self.folders.lock();
                let interests = folders.entry(folder.clone()).or_default();
                interests.retain(|interest| !is(interest, signs));
                interests.push(Interest {
                    names: file.names.clone(),
                    linked: file.linked,
                    signs: Arc::downgrade(signs),
                });
            }
            // Called after the lock of the folders is released, since the watcher's thread takes
            // it.
            if let Some(Err(error)) = watcher
                .as_mut()
                .map(|watcher| watcher.watch(folder, RecursiveMode::NonRecursive))
            {
                tracing::debug!("cannot watch {}: {error}", folder.display());
            }
        }
    }

    /// Stops the signs from folders of `file` that are not in `still`.
    pub(super) fn leave(&self, file: &WatchedFile, still: &WatchedFile, signs: &Arc<Signs>) {
        let mut watcher = self.watcher.lock();
        let gone = file
            .folders
            .iter()
            .filter(|folder| !still.folders.contains(folder));
        for folder in gone {
            let unused = {
                let mut folders = self.folders.lock();
                let Some(interests) = folders.get_mut(folder) else {
                    continue;
                };
                interests.retain(|interest| !is(interest, signs));
                let unused = interests.is_empty();
                if unused {
                    folders.remove(folder);
                }
                unused
            };
            if unused && let Some(watcher) = watcher.as_mut() {
                // A removed folder has no watch to end.
                let _ = watcher.unwatch(folder);
            }
        }
    }
}

fn is(interest: &Interest, signs: &Arc<Signs>) -> bool {
    interest.signs.as_ptr() == Arc::as_ptr(signs)
}

fn tell(folders: &Folders, event: &Event) {
    if is_reading(event.kind) {
        return;
    }
    for path in &event.paths {
        // An event about a watched folder concerns all its files.
        let of_folder = folders.get(path).map(|interests| (interests, true));
        let of_parent = path
            .parent()
            .and_then(|folder| folders.get(folder))
            .map(|interests| (interests, false));
        for (interests, whole) in of_folder.into_iter().chain(of_parent) {
            for interest in interests {
                let named = path
                    .file_name()
                    .is_some_and(|name| interest.names.iter().any(|known| known == name));
                let sign = if named && !whole {
                    sign(event.kind, path)
                } else if whole || interest.linked {
                    Sign::Look
                } else {
                    continue;
                };
                if let Some(signs) = interest.signs.upgrade() {
                    signs.note(sign);
                }
            }
        }
    }
    if event.need_rescan() {
        for signs in folders.values().flatten().filter_map(|i| i.signs.upgrade()) {
            signs.note(Sign::Look);
        }
    }
}

/// Returns whether an event is about reading. Such events are ignored, or each read would cause
/// another read.
pub(super) fn is_reading(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

fn sign(kind: EventKind, path: &Path) -> Sign {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Name(_)) => Sign::Closed,
        EventKind::Modify(ModifyKind::Data(_)) => Sign::Writing,
        // A new symlink is complete; a new file is about to be written.
        EventKind::Create(_) if !path.is_symlink() => Sign::Writing,
        _ => Sign::Look,
    }
}
