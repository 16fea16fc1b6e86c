//! A folder of source: when has it other content?

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::hub::is_reading;

/// Silence after which a burst of events is over: a tool that formats what an editor saved is given its time.
const QUIET: Duration = Duration::from_millis(80);
/// Events that may wait. More are dropped: each only says "look".
const EVENTS: usize = 64;

/// Watches a folder of source.
pub struct FolderWatch {
    folder: PathBuf,
    _watcher: RecommendedWatcher,
    events: mpsc::Receiver<()>,
    last: [u8; 32],
}

impl FolderWatch {
    /// Watches a folder and all below it.
    pub fn new(folder: &Path) -> Result<Self> {
        let (sender, events) = mpsc::channel(EVENTS);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| !is_reading(event.kind)) {
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
            while let Ok(Some(_)) = tokio::time::timeout(QUIET, self.events.recv()).await {}
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
