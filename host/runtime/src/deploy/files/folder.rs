//! Watches a folder of source code and reports when its content changes. This module must not know
//! how the code is built.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::hub::is_reading;

/// How long no event must arrive for a burst of events to be over. It can be short: a later event,
/// such as a formatter's write after an editor's save, ends the running build and starts another.
const QUIET: Duration = Duration::from_millis(15);
/// The capacity of the event channel. Further events are dropped, since each one only means "look".
const EVENTS: usize = 64;

/// A watch on a folder of source code.
pub struct FolderWatch {
    folder: PathBuf,
    _watcher: RecommendedWatcher,
    events: mpsc::Receiver<()>,
    /// True if an event arrived since the folder was last read.
    pending: bool,
    last: [u8; 32],
}

impl FolderWatch {
    /// Watches a folder and everything below it.
    pub fn new(folder: &Path) -> Result<Self> {
        let (sender, events) = mpsc::channel(EVENTS);
        // Events carry absolute paths.
        let root = std::path::absolute(folder)
            .with_context(|| format!("cannot watch {}", folder.display()))?;
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| !is_reading(event.kind) && is_of_source(&root, &event)) {
                let _ = sender.try_send(());
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
            pending: false,
            last: folder_digest(folder),
        })
    }

    /// The watched folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Resolves when the content of a source file differs from the last time. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        loop {
            if !self.pending && self.events.recv().await.is_none() {
                std::future::pending::<()>().await;
            }
            self.pending = true;
            while let Ok(Some(_)) = tokio::time::timeout(QUIET, self.events.recv()).await {}
            let digest = folder_digest(&self.folder);
            self.pending = false;
            if digest != self.last {
                self.last = digest;
                return;
            }
        }
    }
}

/// Folders in which tools keep build output and dependencies.
const OF_TOOLS: [&str; 3] = ["target", "node_modules", "__pycache__"];

/// Returns whether a file or folder is a tool's product: one of those folders, a hidden file, a
/// component or an editor's backup.
fn is_left_behind(name: &str) -> bool {
    name.starts_with('.')
        || name.ends_with('~')
        || name.ends_with(".wasm")
        || OF_TOOLS.contains(&name)
}

/// Returns whether an event is about source. Without this filter, a build that writes without a
/// pause would hide a save.
fn is_of_source(root: &Path, event: &Event) -> bool {
    let is_source = |path: &PathBuf| {
        let Ok(below) = path.strip_prefix(root) else {
            return true;
        };
        let mut names = below.iter().filter_map(|name| name.to_str());
        !names.any(is_left_behind)
    };
    event.paths.is_empty() || event.paths.iter().any(is_source)
}

/// The digest of the names and contents of all source files.
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
            if is_left_behind(name) {
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

    #[test]
    fn what_tools_leave_behind_is_no_source() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("lib.rs"), "a").unwrap();
        let before = folder_digest(folder.path());
        for tools in OF_TOOLS {
            fs::create_dir(folder.path().join(tools)).unwrap();
            fs::write(folder.path().join(tools).join("x"), "b").unwrap();
        }
        fs::write(folder.path().join(".lib.rs.swp"), "c").unwrap();
        assert_eq!(folder_digest(folder.path()), before);
        fs::write(folder.path().join("lib.rs"), "d").unwrap();
        assert_ne!(folder_digest(folder.path()), before);
    }

    #[tokio::test]
    async fn a_save_is_seen_when_nobody_was_waiting_for_it_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lib.rs");
        fs::write(&file, "a").unwrap();
        let mut watch = FolderWatch::new(folder.path()).unwrap();
        fs::write(&file, "b").unwrap();
        // Cancelled during the quiet period after the event, as by a build that ends just then.
        let given_up = tokio::time::timeout(QUIET / 2, watch.changed()).await;
        assert!(given_up.is_err());
        let seen = tokio::time::timeout(Duration::from_secs(20), watch.changed()).await;
        assert!(seen.is_ok());
    }

    #[test]
    fn only_events_of_source_count() {
        let root = Path::new("/p/.hidden/plugin");
        let event = |path: &str| Event::new(notify::EventKind::Any).add_path(root.join(path));
        assert!(is_of_source(root, &event("src/lib.rs")));
        assert!(is_of_source(root, &Event::new(notify::EventKind::Any)));
        for path in [
            ".vmhost/plugin.js",
            "target/release/x",
            "node_modules/a/b.js",
            "x.wasm",
        ] {
            assert!(!is_of_source(root, &event(path)), "{path}");
        }
    }
}
