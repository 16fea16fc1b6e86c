//! When has a file new content that is whole? The only owner of `notify`.
//!
//! Editors and build tools write in place, rename, or exchange a symlink (as ConfigMap volumes do). The folder is watched, not the file; an event only means "look":
//! what counts is the content. A file that is being written in place is not read before its writer has closed it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sha2::{Digest, Sha256};

pub mod folder;
pub(crate) mod hub;
mod sign;

use hub::{Hub, WatchedFile};
use sign::{POLL, Signs};

/// Silence after which a burst of events is over.
const QUIET: Duration = Duration::from_millis(40);
/// The same when one of them said that the file is whole, and none since that somebody writes: who opens it again all the same is seen, and read once more.
const WHOLE: Duration = Duration::from_millis(2);
/// How long a writer that has not closed the file may pause. Behind it the file is read all the same: the event of the close can be missing on some file systems.
const WRITING: Duration = Duration::from_secs(10);
/// Watches one file, wherever its links point.
pub(crate) struct FileWatch {
    path: PathBuf,
    /// Bytes behind which it is not read.
    limit: u64,
    hub: Arc<Hub>,
    watched: WatchedFile,
    signs: Arc<Signs>,
    /// A sign has come, and the file was not read since.
    pending: bool,
    /// What was handed out last.
    last: Seen,
    /// What `stat` said when the content was read last.
    stamp: Option<Stamp>,
}

type Stamp = (u64, std::time::SystemTime, u64);

/// Why a file has no content that could be a plugin's.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is not there, or this process may not read it. It may come, or be granted, without an
    /// event.
    #[error("the file cannot be read")]
    Unreadable(#[from] std::io::Error),
    /// More bytes than are read.
    #[error("the file has {size} bytes, more than the limit of {limit}")]
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
}

/// What a watch has handed out: another one is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Content([u8; 32]),
    Unreadable(std::io::ErrorKind),
    TooLarge(u64),
}

impl Seen {
    fn of(read: &Result<Vec<u8>, FileError>) -> Self {
        match read {
            Ok(content) => Self::Content(digest(content)),
            Err(FileError::Unreadable(error)) => Self::Unreadable(error.kind()),
            Err(FileError::TooLarge { size, .. }) => Self::TooLarge(*size),
        }
    }
}

/// Reads a file of at most `limit` bytes. A larger one is not read at all.
pub async fn read(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let size = tokio::fs::metadata(path).await?.len();
    if size > limit {
        return Err(FileError::TooLarge { size, limit });
    }
    Ok(tokio::fs::read(path).await?)
}

impl FileWatch {
    /// Watches a file whose present content has this SHA-256. Content of more than `limit` bytes is never read.
    pub(crate) fn new(hub: &Arc<Hub>, path: &Path, known: [u8; 32], limit: u64) -> Self {
        let signs = Arc::new(Signs::default());
        let watched = WatchedFile::of(path);
        hub.watch(&watched, &signs);
        Self {
            path: path.to_owned(),
            limit,
            hub: hub.clone(),
            watched,
            signs,
            pending: false,
            last: Seen::Content(known),
            // Unknown: the first poll reads the file, which may have changed before it was watched.
            stamp: None,
        }
    }

    /// Resolves with the next content that differs from the last one, or when the file can be read
    /// no more. Cancel safe.
    pub(crate) async fn changed(&mut self) -> Result<Vec<u8>, FileError> {
        loop {
            self.quiet().await;
            // A link may point elsewhere now.
            self.follow_links();
            self.stamp = stamp(&self.path);
            let read = read(&self.path, self.limit).await;
            // Not before: a caller that gives up while the file is read has not seen it.
            self.pending = false;
            let seen = Seen::of(&read);
            if self.last != seen {
                self.last = seen;
                return read;
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
        let watched = WatchedFile::of(&self.path);
        self.hub.watch(&watched, &self.signs);
        let before = std::mem::replace(&mut self.watched, watched);
        self.hub.leave(&before, &self.watched, &self.signs);
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        self.hub
            .leave(&self.watched, &WatchedFile::default(), &self.signs);
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
    use super::sign::Sign;
    use super::*;
    use std::fs;
    use std::io::Write;

    async fn next(watch: &mut FileWatch) -> Vec<u8> {
        look(watch).await.unwrap()
    }

    async fn look(watch: &mut FileWatch) -> Result<Vec<u8>, FileError> {
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

    #[tokio::test]
    async fn a_file_that_cannot_be_read_is_news_once_and_the_same_content_behind_it_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.wasm");
        fs::write(&path, "one").unwrap();
        let mut watch = FileWatch::new(&Hub::new(), &path, digest(b"one"), 10);

        fs::remove_file(&path).unwrap();
        let gone = look(&mut watch).await;
        assert!(matches!(gone, Err(FileError::Unreadable(_))), "{gone:?}");
        // Another event, and the file is as it was: nothing new.
        watch.signs.note(Sign::Look);
        let still = tokio::time::timeout(5 * QUIET, watch.changed()).await;
        assert!(still.is_err(), "{still:?}");
        fs::write(&path, "one").unwrap();
        assert_eq!(next(&mut watch).await, b"one");

        fs::write(&path, "eleven byte").unwrap();
        let large = look(&mut watch).await;
        let Err(FileError::TooLarge { size, limit }) = large else {
            panic!("{large:?}");
        };
        assert_eq!((size, limit), (11, 10));
        fs::write(&path, "two").unwrap();
        assert_eq!(next(&mut watch).await, b"two");
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_seen_whenever_the_caller_gave_up_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.wasm");
        fs::write(&path, "one").unwrap();
        let mut watch = FileWatch::new(&Hub::new(), &path, digest(b"one"), 1000);
        for after in 0..60 {
            let content = format!("content {after}");
            fs::write(&path, &content).unwrap();
            watch.signs.note(Sign::Look);
            let given_up = Duration::from_millis(after);
            let seen = match tokio::time::timeout(given_up, watch.changed()).await {
                Ok(seen) => seen.unwrap(),
                Err(_) => next(&mut watch).await,
            };
            assert_eq!(seen, content.as_bytes());
        }
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
