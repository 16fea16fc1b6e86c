//! The folder of one plugin's history: an index, and a file for each version, named by its digest.
//!
//! Only one process at a time uses a folder. A file is read as a whole, and the bytes of a version
//! are used only if their digest is right, so that a torn file is never run. This module must not
//! know what an index holds, nor which versions are kept.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tempfile::Builder;

use crate::private;

const INDEX: &str = "index.json";
const UNREADABLE: &str = "index.json.unreadable";
const LOCK: &str = "lock";
const VERSION: &str = "wasm";
/// The name of a file begins with this while the file is being written.
const UNFINISHED: &str = ".unfinished-";

/// The folder of one plugin's history, locked for this process.
pub(super) struct Folder {
    path: PathBuf,
    /// The lock on the folder. It ends when this file is closed, at the latest with the process.
    _lock: File,
}

/// Why the folder of a plugin's history is not used.
#[derive(Debug, thiserror::Error)]
pub(super) enum FolderError {
    /// The folder cannot be created, locked or written, or other users may write to it.
    #[error("cannot use {path}")]
    Io {
        /// The folder.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// Another process uses it.
    #[error("another vmhost uses {0}: give this one another folder (--history)")]
    Used(PathBuf),
}

impl Folder {
    /// Opens the folder of a plugin below `root`, and creates it if it is absent.
    pub(super) fn open(root: &Path, plugin: &str) -> Result<Self, FolderError> {
        let path = root.join(plugin);
        let io = |source| FolderError::Io {
            path: path.clone(),
            source,
        };
        private::folder(root).map_err(io)?;
        private::folder(&path).map_err(io)?;
        let lock = File::create(path.join(LOCK)).map_err(io)?;
        match lock.try_lock() {
            Ok(()) => {
                let folder = Self { path, _lock: lock };
                // A file that is not removed only takes space.
                let _ = folder.sweep();
                Ok(folder)
            }
            Err(TryLockError::WouldBlock) => Err(FolderError::Used(path)),
            Err(TryLockError::Error(error)) => Err(io(error)),
        }
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the index. If it cannot be read, logs that, puts the file aside and starts an empty
    /// index.
    pub(super) fn read_index<T: DeserializeOwned + Default>(&self) -> T {
        let path = self.path.join(INDEX);
        let why = match fs::read(&path) {
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(index) => return index,
                Err(error) => error.to_string(),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return T::default(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(
            "the history {} cannot be read and begins anew: {why}; the old file is beside it as {UNREADABLE}",
            path.display()
        );
        // If the file cannot be put aside, the next write of the index replaces it.
        let _ = fs::rename(&path, self.path.join(UNREADABLE));
        T::default()
    }

    /// Replaces the index in one step: a reader sees either the old or the new one. If `durable`,
    /// the new one is on the disk when this returns.
    pub(super) fn write_index(&self, index: &impl Serialize, durable: bool) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(index)?;
        self.write(INDEX, &text, durable)
    }

    /// Keeps the bytes of a version.
    pub(super) fn put(&self, digest: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.version(digest);
        let size = fs::metadata(&path).map(|metadata| metadata.len());
        // A file of another size is torn and has to be replaced.
        if size.is_ok_and(|size| size == bytes.len() as u64) {
            return Ok(());
        }
        self.write(&format!("{digest}.{VERSION}"), bytes, false)
    }

    /// Returns whether there is a file of a version.
    pub(super) fn has(&self, digest: &str) -> bool {
        self.version(digest).is_file()
    }

    /// Reads the bytes of a version. Returns an error if the file has other bytes.
    pub(super) fn read(&self, digest: &str) -> io::Result<Vec<u8>> {
        let path = self.version(digest);
        let bytes = fs::read(&path)?;
        if hex::encode(Sha256::digest(&bytes)) != digest {
            // The file is removed, so that the version is kept again when it next runs.
            fs::remove_file(&path)?;
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{} held other bytes", path.display()),
            ));
        }
        Ok(bytes)
    }

    /// Removes the bytes of a version, if there are any.
    pub(super) fn remove(&self, digest: &str) -> io::Result<()> {
        match fs::remove_file(self.version(digest)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes the files of all versions but these. Components with other names, which somebody
    /// else put there, stay.
    pub(super) fn retain(&self, kept: &[&str]) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            let is_version = path.extension().is_some_and(|ending| ending == VERSION);
            let digest = path.file_stem().and_then(|stem| stem.to_str());
            let is_old = |digest: &str| is_digest(digest) && !kept.contains(&digest);
            if is_version && digest.is_some_and(is_old) {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Removes the files that a process left behind because it was killed while it wrote.
    fn sweep(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| name.starts_with(UNFINISHED)) {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    fn version(&self, digest: &str) -> PathBuf {
        self.path.join(format!("{digest}.{VERSION}"))
    }

    fn write(&self, name: &str, content: &[u8], durable: bool) -> io::Result<()> {
        let mut file = Builder::new().prefix(UNFINISHED).tempfile_in(&self.path)?;
        file.write_all(content)?;
        if durable {
            file.as_file().sync_all()?;
        }
        file.persist(self.path.join(name))?;
        if durable {
            File::open(&self.path)?.sync_all()?;
        }
        Ok(())
    }
}

/// Returns whether a text is a digest in hex, and so the name of a version's file.
pub(super) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deploy::history::index::Index;

    const ONE: &[u8] = b"one";

    fn digest(bytes: &[u8]) -> String {
        hex::encode(Sha256::digest(bytes))
    }

    #[test]
    fn one_process_at_a_time_uses_a_folder() {
        let root = tempfile::tempdir().unwrap();
        let first = Folder::open(root.path(), "vm").unwrap();
        let other = Folder::open(root.path(), "other").unwrap();
        assert_ne!(first.path(), other.path());
        let Err(FolderError::Used(path)) = Folder::open(root.path(), "vm") else {
            panic!("two use it");
        };
        assert_eq!(path, first.path());
        drop(first);
        assert!(Folder::open(root.path(), "vm").is_ok());
    }

    #[test]
    fn what_a_killed_process_left_behind_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::open(root.path(), "vm").unwrap();
        folder.put(&digest(ONE), ONE).unwrap();
        let half = folder.path().join(format!("{UNFINISHED}abc"));
        fs::write(&half, "on").unwrap();
        drop(folder);
        let folder = Folder::open(root.path(), "vm").unwrap();
        assert!(!half.exists() && folder.has(&digest(ONE)));
    }

    #[test]
    fn an_index_that_cannot_be_read_is_put_aside_and_begun_anew() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::open(root.path(), "vm").unwrap();
        assert_eq!(folder.read_index::<Index>(), Index::default());
        let index = Index {
            refused: vec!["ab".to_owned()],
            ..Index::default()
        };
        for durable in [true, false] {
            folder.write_index(&index, durable).unwrap();
            assert_eq!(folder.read_index::<Index>(), index);
        }
        let path = folder.path().join(INDEX);
        let whole = fs::read(&path).unwrap();
        let broken: [&[u8]; 4] = [&whole[..whole.len() / 2], b"", b"7", b"\0\0"];
        for torn in broken {
            fs::write(&path, torn).unwrap();
            assert_eq!(folder.read_index::<Index>(), Index::default(), "{torn:?}");
            assert!(!path.exists());
            assert_eq!(fs::read(folder.path().join(UNREADABLE)).unwrap(), torn);
        }
    }

    #[test]
    fn a_version_is_read_only_with_its_own_bytes() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::open(root.path(), "vm").unwrap();
        let one = digest(ONE);
        assert!(!folder.has(&one) && folder.read(&one).is_err());
        folder.put(&one, ONE).unwrap();
        assert_eq!(folder.read(&one).unwrap(), ONE);
        // A torn file is removed when it is read, so that the version can be kept again.
        fs::write(folder.version(&one), "on").unwrap();
        folder.put(&one, ONE).unwrap();
        assert_eq!(folder.read(&one).unwrap(), ONE);
        fs::write(folder.version(&one), "two").unwrap();
        let error = folder.read(&one).unwrap_err().to_string();
        assert!(
            error.contains("other bytes") && !folder.has(&one),
            "{error}"
        );
    }

    #[test]
    fn only_versions_that_are_not_kept_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::open(root.path(), "vm").unwrap();
        let (one, two) = (digest(ONE), digest(b"two"));
        folder.put(&one, ONE).unwrap();
        folder.put(&two, b"two").unwrap();
        folder.write_index(&Index::default(), false).unwrap();
        // The history may lie in the folder of the plugin's own file.
        let other = folder.path().join("vm.wasm");
        fs::write(&other, ONE).unwrap();
        folder.retain(&[&two]).unwrap();
        assert!(other.exists());
        assert!(!folder.has(&one) && folder.has(&two));
        assert!(folder.path().join(INDEX).exists() && folder.path().join(LOCK).exists());
    }
}
