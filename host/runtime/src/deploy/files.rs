//! Watches plugin files, and decides when new content is complete. The only user of the `notify`
//! crate.
//!
//! Editors and build tools write in place, rename, or exchange a symlink (as ConfigMap volumes do).
//! Therefore the folder is watched and not the file, and an event only means "read the file": the
//! content decides. A file that is being written in place is not read before the writer has closed
//! it.

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

/// How long no event must arrive for a burst of events to be over.
const QUIET: Duration = Duration::from_millis(40);
/// The same pause if one of the events says that the file is complete and no later one says that it
/// is being written. If a writer opens the file again after all, the file is read once more.
const WHOLE: Duration = Duration::from_millis(2);
/// How long a writer that has not closed the file may pause. After that the file is read anyway,
/// since some file systems may omit the close event.
const WRITING: Duration = Duration::from_secs(10);
/// A watch on one file, which follows symlinks.
pub(crate) struct FileWatch {
    path: PathBuf,
    /// The size in bytes above which the file is not read.
    limit: u64,
    hub: Arc<Hub>,
    watched: WatchedFile,
    signs: Arc<Signs>,
    /// True if an event arrived since the file was last read.
    pending: bool,
    /// The last result that was returned.
    last: Seen,
    /// The file's `stat` data at the last read.
    stamp: Option<Stamp>,
}

type Stamp = (u64, std::time::SystemTime, u64);

/// Why a file has no content that could be a plugin.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file does not exist, or this process may not read it. Both can change without an event.
    #[error("the file cannot be read")]
    Unreadable(#[from] std::io::Error),
    /// The file is larger than the limit.
    #[error("the file has {size} bytes, more than the limit of {limit}")]
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
}

/// A result of a watch. Only a different result is reported.
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
    let file = tokio::fs::metadata(path).await?;
    if file.is_dir() {
        let why = format!(
            "it is a folder: `vmhost build {}` makes a component of its source",
            path.display()
        );
        return Err(std::io::Error::new(std::io::ErrorKind::IsADirectory, why).into());
    }
    let size = file.len();
    if size > limit {
        return Err(FileError::TooLarge { size, limit });
    }
    Ok(tokio::fs::read(path).await?)
}

impl FileWatch {
    /// Watches a file whose current content has the SHA-256 `known`. Content of more than `limit`
    /// bytes is never read.
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
            // Unknown, so that the first poll reads the file, which may have changed before the
            // watch began.
            stamp: None,
        }
    }

    /// Returns the next content that differs from the last one, or an error when the file becomes
    /// unreadable. Cancel safe.
    pub(crate) async fn changed(&mut self) -> Result<Vec<u8>, FileError> {
        loop {
            self.quiet().await;
            // A symlink may point elsewhere now.
            self.follow_links();
            self.stamp = stamp(&self.path);
            let read = read(&self.path, self.limit).await;
            // Reset only after the read: if the caller cancels during the read, the change is
            // reported by the next call.
            self.pending = false;
            let seen = Seen::of(&read);
            if self.last != seen {
                self.last = seen;
                return read;
            }
        }
    }

    /// Waits for an event, and then for a period without events.
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

    /// Renews the watches on the folders of the file and of its symlink targets. A folder that was
    /// removed and created again has lost its watch.
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
    async fn a_folder_in_the_place_of_a_component_is_told_from_an_unreadable_file() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(folder.path(), 1).await.unwrap_err();
        let FileError::Unreadable(why) = &error else {
            panic!("{error}")
        };
        let build = format!("`vmhost build {}`", folder.path().display());
        assert!(why.to_string().contains(&build), "{why}");
    }

    #[tokio::test]
    async fn a_file_is_read_when_it_is_whole_whichever_way_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.wasm");
        fs::write(&path, "one").unwrap();
        let mut watch = FileWatch::new(&Hub::new(), &path, digest(b"one"), 1000);

        // Written in place in two halves: the first half is not read.
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(b"tw").unwrap();
        file.flush().unwrap();
        let half = tokio::time::timeout(10 * QUIET, watch.changed()).await;
        assert!(half.is_err(), "half a file was read");
        file.write_all(b"o").unwrap();
        drop(file);
        assert_eq!(next(&mut watch).await, b"two");

        // Replaced by a rename.
        let other = folder.path().join("other");
        fs::write(&other, "three").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(next(&mut watch).await, b"three");

        // The same bytes again are no change; different bytes are.
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
        // Another event while the file is still missing: no news.
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
            // The first event is taken before the others arrive, as with two threads.
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
