//! When has a file new content that is whole? The only owner of `notify`.
//!
//! Editors and build tools write in place, rename, or exchange a symlink (as ConfigMap volumes do). The folder is watched, not the file; an event only means "look":
//! what counts is the content. A file that is being written in place is not read before its writer has closed it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use sha2::{Digest, Sha256};
use tokio::sync::{Notify, mpsc};

/// Silence after which a burst of events is over.
const QUIET: Duration = Duration::from_millis(40);
/// How long a writer that has not closed the file may pause. Behind it the file is read all the same: the event of the close can be missing on some file systems.
const WRITING: Duration = Duration::from_secs(10);
/// How often the file is looked at without an event: for file systems that send none.
const POLL: Duration = Duration::from_secs(5);
/// Events that may wait. More are dropped: each only says "look".
const EVENTS: usize = 64;

/// Watches one file, wherever its links point.
pub struct FileWatch {
    path: PathBuf,
    /// Bytes behind which it is not read.
    limit: u64,
    /// None where files cannot be watched: then it is only looked at now and then.
    watcher: Option<RecommendedWatcher>,
    folders: Vec<PathBuf>,
    signs: Arc<Signs>,
    /// A sign has come, and the file was not read since.
    pending: bool,
    /// What was handed out last.
    last: Option<[u8; 32]>,
    /// What `stat` said when the content was read last.
    stamp: Option<Stamp>,
}

/// What the events have said. Nothing is lost, however many come.
#[derive(Default)]
struct Signs {
    writing: AtomicBool,
    look: Notify,
}

/// Watches a folder of source.
pub struct FolderWatch {
    folder: PathBuf,
    _watcher: RecommendedWatcher,
    events: mpsc::Receiver<Sign>,
    last: [u8; 32],
}

/// What an event says about the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// Something happened: look.
    Look,
    /// Somebody is writing in place.
    Writing,
    /// The writer has closed it, or it was exchanged.
    Closed,
}

type Stamp = (u64, std::time::SystemTime, u64);

impl FileWatch {
    /// Watches a file whose present content has this SHA-256. Content of more than `limit` bytes is never read.
    pub fn new(path: &Path, known: [u8; 32], limit: u64) -> Self {
        let signs = Arc::new(Signs::default());
        let watcher = notify::recommended_watcher({
            let (signs, file) = (signs.clone(), path.to_owned());
            move |event: notify::Result<Event>| {
                if let Ok(event) = event
                    && !is_reading(event.kind)
                {
                    signs.note(sign(&event, &file));
                }
            }
        });
        let watcher = watcher
            .inspect_err(|error| {
                tracing::warn!(
                    "{} is only looked at every {POLL:?}: {error}",
                    path.display()
                )
            })
            .ok();
        let mut watch = Self {
            path: path.to_owned(),
            limit,
            watcher,
            folders: Vec::new(),
            signs,
            pending: false,
            last: Some(known),
            // Unknown: the first poll reads the file, which may have changed before it was watched.
            stamp: None,
        };
        watch.follow_links();
        watch
    }

    /// Resolves with the next content that differs from the last one. Cancel safe.
    pub async fn changed(&mut self) -> Vec<u8> {
        loop {
            self.quiet().await;
            self.pending = false;
            // A link may point elsewhere now.
            self.follow_links();
            self.stamp = stamp(&self.path);
            if let Some((size, ..)) = self.stamp.filter(|(size, ..)| *size > self.limit) {
                let (path, limit) = (self.path.display(), self.limit);
                tracing::error!(
                    "{path} is not read: it has {size} bytes, more than the limit of {limit}"
                );
                continue;
            }
            let Ok(content) = tokio::fs::read(&self.path).await else {
                continue;
            };
            let digest = digest(&content);
            if self.last != Some(digest) {
                self.last = Some(digest);
                return content;
            }
        }
    }

    /// Resolves when something happened, and then nothing for a while.
    async fn quiet(&mut self) {
        while !self.pending {
            let looked = tokio::time::timeout(POLL, self.signs.look.notified()).await;
            self.pending = looked.is_ok() || stamp(&self.path) != self.stamp;
        }
        loop {
            let writing = self.signs.writing.load(Ordering::Acquire);
            let before = stamp(&self.path);
            let wait = if writing { WRITING } else { QUIET };
            let quiet = tokio::time::timeout(wait, self.signs.look.notified())
                .await
                .is_err();
            if quiet && before == stamp(&self.path) {
                self.signs.writing.store(false, Ordering::Release);
                return;
            }
        }
    }

    /// Watches the folders of the file and of what its links point to. A folder that cannot be watched is looked at now and then.
    fn follow_links(&mut self) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        let mut folders: Vec<PathBuf> = Vec::new();
        for path in std::iter::once(self.path.clone()).chain(std::fs::canonicalize(&self.path)) {
            let folder = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
                .unwrap_or(Path::new("."));
            if !folders.iter().any(|known| known == folder) {
                folders.push(folder.to_owned());
            }
        }
        for folder in &folders {
            // Again each time: a folder that was removed and made again has lost its watch.
            if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
                tracing::debug!("cannot watch {}: {error}", folder.display());
            }
        }
        for gone in self
            .folders
            .iter()
            .filter(|folder| !folders.contains(folder))
        {
            let _ = watcher.unwatch(gone);
        }
        self.folders = folders;
    }
}

impl Signs {
    fn note(&self, sign: Sign) {
        match sign {
            Sign::Writing => self.writing.store(true, Ordering::Release),
            Sign::Closed => self.writing.store(false, Ordering::Release),
            Sign::Look => {}
        }
        self.look.notify_one();
    }
}

fn sign(event: &Event, file: &Path) -> Sign {
    // The file may be a link to a file of another name, which is the one that is written.
    let target = std::fs::canonicalize(file).ok();
    let names = [
        file.file_name(),
        target.as_deref().and_then(Path::file_name),
    ];
    if !event
        .paths
        .iter()
        .any(|path| names.contains(&path.file_name()))
    {
        return Sign::Look;
    }
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Name(_)) => Sign::Closed,
        EventKind::Modify(ModifyKind::Data(_)) => Sign::Writing,
        // A new link is whole; a new file is about to be written.
        EventKind::Create(_) if !file.is_symlink() => Sign::Writing,
        _ => Sign::Look,
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?, metadata.ino()))
}

fn digest(content: &[u8]) -> [u8; 32] {
    Sha256::digest(content).into()
}

/// Somebody opens a file to read it: this watch itself does so, and would never rest.
fn is_reading(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Access(AccessKind::Open(_) | AccessKind::Read)
    )
}

impl FolderWatch {
    /// Watches a folder and all below it.
    pub fn new(folder: &Path) -> Result<Self> {
        let (sender, events) = mpsc::channel(EVENTS);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| !is_reading(event.kind)) {
                let _ = sender.try_send(Sign::Look);
            }
        })
        .context("cannot watch files")?;
        watcher
            .watch(folder, RecursiveMode::Recursive)
            .with_context(|| format!("cannot watch {}", folder.display()))?;
        Ok(Self {
            folder: folder.to_owned(),
            _watcher: watcher,
            events,
            last: folder_digest(folder),
        })
    }

    /// What is watched.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Resolves when a source file has other content than before. Cancel safe.
    pub async fn changed(&mut self) {
        loop {
            if self.events.recv().await.is_none() {
                std::future::pending::<()>().await;
            }
            while let Ok(Some(_)) = tokio::time::timeout(2 * QUIET, self.events.recv()).await {}
            let digest = folder_digest(&self.folder);
            if digest != self.last {
                self.last = digest;
                return;
            }
        }
    }
}

/// Names and contents of all source files: not of what tools leave behind (`target`, hidden files, components).
fn folder_digest(folder: &Path) -> [u8; 32] {
    let mut hasher = Sha256::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if name.starts_with('.')
                || name.ends_with('~')
                || name == "target"
                || name.ends_with(".wasm")
            {
                continue;
            }
            if path.is_dir() {
                pending.push(path);
            } else if let Ok(content) = std::fs::read(&path) {
                hasher.update(name.as_bytes());
                hasher.update(Sha256::digest(&content));
            }
        }
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    async fn next(watch: &mut FileWatch) -> Vec<u8> {
        tokio::time::timeout(Duration::from_secs(20), watch.changed())
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_file_is_read_when_it_is_whole_whichever_way_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.wasm");
        fs::write(&path, "one").unwrap();
        let mut watch = FileWatch::new(&path, digest(b"one"), 1000);

        // In place, in two halves: the first is not seen.
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(b"tw").unwrap();
        file.flush().unwrap();
        let half = tokio::time::timeout(10 * QUIET, watch.changed()).await;
        assert!(half.is_err(), "half a file was read");
        file.write_all(b"o").unwrap();
        drop(file);
        assert_eq!(next(&mut watch).await, b"two");

        // By rename.
        let other = folder.path().join("other");
        fs::write(&other, "three").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(next(&mut watch).await, b"three");

        // The same bytes again are no change; the next ones are.
        fs::write(&path, "three").unwrap();
        fs::write(&path, "four").unwrap();
        assert_eq!(next(&mut watch).await, b"four");
    }

    #[tokio::test]
    async fn a_configmap_volume_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (version, content) in [("..v1", "one"), ("..v2", "two")] {
            fs::create_dir(at(version)).unwrap();
            fs::write(at(version).join("p.wasm"), content).unwrap();
        }
        std::os::unix::fs::symlink("..v1", at("..data")).unwrap();
        std::os::unix::fs::symlink("..data/p.wasm", at("p.wasm")).unwrap();
        let mut watch = FileWatch::new(&at("p.wasm"), digest(b"one"), 1000);
        std::os::unix::fs::symlink("..v2", at("..data_tmp")).unwrap();
        fs::rename(at("..data_tmp"), at("..data")).unwrap();
        assert_eq!(next(&mut watch).await, b"two");
    }

    #[test]
    fn what_tools_leave_behind_is_no_source() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("lib.rs"), "a").unwrap();
        let before = folder_digest(folder.path());
        fs::create_dir(folder.path().join("target")).unwrap();
        fs::write(folder.path().join("target/x"), "b").unwrap();
        fs::write(folder.path().join(".lib.rs.swp"), "c").unwrap();
        assert_eq!(folder_digest(folder.path()), before);
        fs::write(folder.path().join("lib.rs"), "d").unwrap();
        assert_ne!(folder_digest(folder.path()), before);
    }
}
