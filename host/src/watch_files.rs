//! When has a file new content that is whole? The only owner of `notify`.
//!
//! Editors and build tools write in place, rename, or exchange a symlink (as ConfigMap volumes do). The folder is watched, not the file; an event only means "look":
//! what counts is the content. A file that is being written in place is not read before its writer has closed it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::Notify;

mod folder;
mod hub;

pub use folder::FolderWatch;
pub use hub::Hub;

use hub::Place;

/// Silence after which a burst of events is over.
const QUIET: Duration = Duration::from_millis(40);
/// The same when one of them said that the file is whole, and none since that somebody writes: who opens it again all the same is seen, and read once more.
const WHOLE: Duration = Duration::from_millis(2);
/// How long a writer that has not closed the file may pause. Behind it the file is read all the same: the event of the close can be missing on some file systems.
const WRITING: Duration = Duration::from_secs(10);
/// How often the file is looked at without an event: for file systems that send none.
const POLL: Duration = Duration::from_secs(5);

/// Watches one file, wherever its links point.
pub struct FileWatch {
    path: PathBuf,
    /// Bytes behind which it is not read.
    limit: u64,
    hub: Arc<Hub>,
    place: Place,
    signs: Arc<Signs>,
    /// A sign has come, and the file was not read since.
    pending: bool,
    /// What was handed out last.
    last: Option<[u8; 32]>,
    /// What `stat` said when the content was read last.
    stamp: Option<Stamp>,
}

/// What the events have said. Nothing is lost, however many come.
#[derive(Debug, Default)]
struct Signs {
    writing: AtomicBool,
    whole: AtomicBool,
    look: Notify,
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
    pub fn new(hub: &Arc<Hub>, path: &Path, known: [u8; 32], limit: u64) -> Self {
        let signs = Arc::new(Signs::default());
        let place = Place::of(path);
        hub.watch(&place, &signs);
        Self {
            path: path.to_owned(),
            limit,
            hub: hub.clone(),
            place,
            signs,
            pending: false,
            last: Some(known),
            // Unknown: the first poll reads the file, which may have changed before it was watched.
            stamp: None,
        }
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
            let before = stamp(&self.path);
            let wait = if self.signs.writing.load(Ordering::Acquire) {
                WRITING
            } else if self.signs.whole.load(Ordering::Acquire) {
                WHOLE
            } else {
                QUIET
            };
            let quiet = tokio::time::timeout(wait, self.signs.look.notified())
                .await
                .is_err();
            if quiet && before == stamp(&self.path) {
                self.signs.writing.store(false, Ordering::Release);
                self.signs.whole.store(false, Ordering::Release);
                return;
            }
        }
    }

    /// Watches the folders of the file and of what its links point to, again: a folder that was removed and made again has lost its watch.
    fn follow_links(&mut self) {
        let place = Place::of(&self.path);
        self.hub.watch(&place, &self.signs);
        let before = std::mem::replace(&mut self.place, place);
        self.hub.leave(&before, &self.place, &self.signs);
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        self.hub.leave(&self.place, &Place::default(), &self.signs);
    }
}

impl Signs {
    fn note(&self, sign: Sign) {
        match sign {
            Sign::Writing => {
                self.whole.store(false, Ordering::Release);
                self.writing.store(true, Ordering::Release);
            }
            Sign::Closed => {
                self.writing.store(false, Ordering::Release);
                self.whole.store(true, Ordering::Release);
            }
            Sign::Look => {}
        }
        self.look.notify_one();
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
        let mut watch = FileWatch::new(&Hub::new(), &path, digest(b"one"), 1000);

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

    #[tokio::test(start_paused = true)]
    async fn a_rename_is_not_waited_out_however_many_events_it_sends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.wasm");
        fs::write(&path, "one").unwrap();
        let mut watch = FileWatch::new(&Hub::new(), &path, digest(b"one"), 1000);
        for signs in [
            &[Sign::Closed][..],
            &[Sign::Closed, Sign::Closed],
            &[Sign::Writing, Sign::Closed, Sign::Look],
        ] {
            // One is taken before the next ones come, as between two threads.
            let (first, others) = signs.split_first().unwrap();
            watch.signs.note(*first);
            watch.signs.look.notified().await;
            watch.pending = true;
            others.iter().for_each(|sign| watch.signs.note(*sign));
            let began = tokio::time::Instant::now();
            watch.quiet().await;
            assert!(began.elapsed() < QUIET, "{signs:?}");
            watch.pending = false;
        }
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
        let mut watch = FileWatch::new(&Hub::new(), &at("p.wasm"), digest(b"one"), 1000);
        std::os::unix::fs::symlink("..v2", at("..data_tmp")).unwrap();
        fs::rename(at("..data_tmp"), at("..data")).unwrap();
        assert_eq!(next(&mut watch).await, b"two");
    }
}
