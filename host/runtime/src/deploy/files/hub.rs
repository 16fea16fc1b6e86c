//! One watcher for all files: a thread and an inotify instance each would end at 128 plugins.
//!
//! It owns which folders are watched and for whom, and what an event says about a file. It reads no file.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use parking_lot::Mutex;

use super::sign::{POLL, Sign, Signs};

/// Watches folders, on a thread of its own.
#[derive(Debug)]
pub(crate) struct Hub {
    /// None where files cannot be watched: then they are only looked at now and then.
    watcher: Mutex<Option<RecommendedWatcher>>,
    folders: Arc<Mutex<Folders>>,
}

/// Who wants to know about a folder.
type Folders = HashMap<PathBuf, Vec<Interest>>;

#[derive(Debug)]
struct Interest {
    names: Vec<OsString>,
    linked: bool,
    signs: Weak<Signs>,
}

/// A file as it is watched: the folders of its name and of what its links point to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WatchedFile {
    folders: Vec<PathBuf>,
    /// Its name, and that of what it points to, which is the one that is written.
    names: Vec<OsString>,
    /// Somewhere on the way is a link, which may be exchanged.
    linked: bool,
}

impl WatchedFile {
    pub(super) fn of(path: &Path) -> Self {
        let mut file = Self::default();
        // Events name the folder as it was given to be watched: an absolute one is the same for every user.
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
    /// Watches nothing yet.
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
                tracing::warn!("files are only looked at every {:?}: {error}", POLL);
            })
            .ok();
        Arc::new(Self {
            watcher: Mutex::new(watcher),
            folders,
        })
    }

    /// From now on signs come for this file. A folder that cannot be watched is looked at now and
    /// then, by whoever reads the file.
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
            // Not under the lock of the folders, which the watcher's thread takes.
            if let Some(Err(error)) = watcher
                .as_mut()
                .map(|watcher| watcher.watch(folder, RecursiveMode::NonRecursive))
            {
                tracing::debug!("cannot watch {}: {error}", folder.display());
            }
        }
    }

    /// No more signs from folders of `file` that are not in `still`.
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
                // One that is gone has no watch to end.
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
        // An event about a watched folder itself is one of all its files.
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

/// To open and read a file is no change of it: the one who looks would wake itself for ever.
pub(super) fn is_reading(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

fn sign(kind: EventKind, path: &Path) -> Sign {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Name(_)) => Sign::Closed,
        EventKind::Modify(ModifyKind::Data(_)) => Sign::Writing,
        // A new link is whole; a new file is about to be written.
        EventKind::Create(_) if !path.is_symlink() => Sign::Writing,
        _ => Sign::Look,
    }
}
