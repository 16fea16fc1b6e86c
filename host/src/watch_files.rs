//! When has a file new content that is whole? The only owner of `notify`.
//!
//! Editors and build tools write in place, rename, or exchange a symlink (as ConfigMap volumes do). The folder is watched, not the file; an event only means "look":
//! what counts is the content. A file that is being written in place is not read before its writer has closed it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio::time::Instant;

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
    watcher: RecommendedWatcher,
    folders: Vec<PathBuf>,
    events: mpsc::Receiver<Sign>,
    /// What was handed out last.
    last: Option<[u8; 32]>,
    /// What `stat` said when the content was read last.
    stamp: Option<Stamp>,
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
    /// Watches a file whose present content is known.
    pub fn new(path: &Path, known: &[u8]) -> Result<Self> {
        let (sender, events) = mpsc::channel(EVENTS);
        let file = path.to_owned();
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if let Ok(event) = event {
                // A full channel holds enough signs to look.
                let _ = sender.try_send(sign(&event, &file));
            }
        })
        .context("cannot watch files")?;
        let mut watch = Self {
            path: path.to_owned(),
            watcher,
            folders: Vec::new(),
            events,
            last: Some(digest(known)),
            // Unknown: the first poll reads the file, which may have changed before it was watched.
            stamp: None,
        };
        watch
            .follow_links()
            .with_context(|| format!("cannot watch {}", path.display()))?;
        Ok(watch)
    }

    /// Resolves with the next content that differs from the last one. Cancel safe.
    pub async fn changed(&mut self) -> Vec<u8> {
        loop {
            self.quiet().await;
            // A link may point elsewhere now; a folder that cannot be watched is looked at by the poll.
            let _ = self.follow_links();
            self.stamp = stamp(&self.path);
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
        let mut writing = match tokio::time::timeout(POLL, self.events.recv()).await {
            Ok(Some(sign)) => sign == Sign::Writing,
            Ok(None) => std::future::pending().await,
            Err(_) if stamp(&self.path) != self.stamp => false,
            Err(_) => return Box::pin(self.quiet()).await,
        };
        let mut since = Instant::now();
        loop {
            let wait = if writing { WRITING } else { QUIET };
            match tokio::time::timeout_at(since + wait, self.events.recv()).await {
                Ok(Some(Sign::Writing)) => writing = true,
                Ok(Some(Sign::Closed)) => writing = false,
                Ok(Some(Sign::Look)) => {}
                Ok(None) | Err(_) => return,
            }
            since = Instant::now();
        }
    }

    /// Watches the folders of the file, of what its links point to, and of the links in between.
    fn follow_links(&mut self) -> notify::Result<()> {
        let mut paths = vec![self.path.clone()];
        paths.extend(std::fs::canonicalize(&self.path));
        for path in paths {
            let folder = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
                .unwrap_or(Path::new("."))
                .to_owned();
            if !self.folders.contains(&folder) {
                self.watcher.watch(&folder, RecursiveMode::NonRecursive)?;
                self.folders.push(folder);
            }
        }
        Ok(())
    }
}

fn sign(event: &Event, file: &Path) -> Sign {
    let name = file.file_name();
    if !event.paths.iter().any(|path| path.file_name() == name) {
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

impl FolderWatch {
    /// Watches a folder and all below it.
    pub fn new(folder: &Path) -> Result<Self> {
        let (sender, events) = mpsc::channel(EVENTS);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| {
                !matches!(
                    event.kind,
                    EventKind::Access(AccessKind::Open(_) | AccessKind::Read)
                )
            }) {
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
        let mut watch = FileWatch::new(&path, b"one").unwrap();

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
        let mut watch = FileWatch::new(&at("p.wasm"), b"one").unwrap();
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
