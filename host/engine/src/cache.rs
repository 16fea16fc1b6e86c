//! Files of compiled images: in a folder, keyed by the component's digest and the engine's
//! settings, or in memory without a name.
//!
//! Loading machine code runs it. So the host uses the folder only if it belongs to this user and no
//! other user can write to it. It holds at most 1 GiB; the least recently used images are removed
//! first.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{MemfdFlags, memfd_create};
use tempfile::NamedTempFile;

mod bound;

pub use bound::CacheUse;

/// Why a cache folder is not used. The host works without it, but compiles components at each
/// start.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The folder cannot be created, read or written.
    #[error("the cache folder {path} cannot be used")]
    Io {
        /// The folder.
        path: PathBuf,
        /// The underlying error.
        source: std::io::Error,
    },
    /// Other users could put code into the folder.
    #[error(
        "cache folder {0} is not used: it must belong to this user and not be writable by others (chmod 700)"
    )]
    Open(PathBuf),
}

/// A folder of `.cwasm` files.
pub(crate) struct Cache {
    folder: PathBuf,
}

/// An image in an open file. It can be mapped even after the file's name is gone.
pub(crate) struct Stored(File);

/// A file for an image that is not written yet.
pub(crate) enum Blank {
    /// In the cache folder, under a temporary name until it is complete.
    Named(NamedTempFile),
    /// In memory.
    Nameless(File),
}

impl Cache {
    /// Opens the folder, and creates it if it is absent.
    pub(crate) fn open(folder: &Path) -> Result<Self, CacheError> {
        let io = |source| CacheError::Io {
            path: folder.to_owned(),
            source,
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(io)?;
        let probe = NamedTempFile::new_in(folder).map_err(io)?;
        let me = probe.as_file().metadata().map_err(io)?.uid();
        let metadata = fs::symlink_metadata(folder).map_err(io)?;
        if !metadata.is_dir() || metadata.uid() != me || metadata.mode() & 0o022 != 0 {
            return Err(CacheError::Open(folder.to_owned()));
        }
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// Returns the stored image of a component, if there is one.
    pub(crate) fn find(&self, digest: &str, engine: &wasmtime::Engine) -> Option<Stored> {
        let file = File::open(self.path(digest, engine)).ok()?;
        // The time of last use decides which images are kept. If it cannot be set, the age of the
        // file decides.
        let _ = file.set_modified(SystemTime::now());
        Some(Stored(file))
    }

    fn path(&self, digest: &str, engine: &wasmtime::Engine) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        self.folder
            .join(format!("{digest}-{:016x}.cwasm", hasher.finish()))
    }

    /// Returns a file for an image to be kept.
    pub(crate) fn blank(&self) -> std::io::Result<Blank> {
        NamedTempFile::new_in(&self.folder).map(Blank::Named)
    }

    /// Keeps a written image. A reader sees the whole image or nothing.
    pub(crate) fn keep(
        &self,
        blank: Blank,
        digest: &str,
        engine: &wasmtime::Engine,
    ) -> std::io::Result<Stored> {
        match blank {
            Blank::Named(file) => {
                let stored = Stored(file.persist(self.path(digest, engine))?);
                if let Err(error) = bound::prune(&self.folder, bound::BOUND) {
                    let folder = self.folder.display();
                    tracing::warn!("cache folder {folder}: cannot remove old images: {error}");
                }
                Ok(stored)
            }
            Blank::Nameless(file) => Ok(Stored(file)),
        }
    }
}

impl Blank {
    /// Returns a file in memory, for an image that is not cached or a folder that cannot be
    /// written.
    pub(crate) fn in_memory() -> std::io::Result<Self> {
        let file = memfd_create("vmhost-image", MemfdFlags::CLOEXEC)?;
        Ok(Self::Nameless(file.into()))
    }

    pub(crate) fn file(&self) -> &File {
        match self {
            Self::Named(file) => file.as_file(),
            Self::Nameless(file) => file,
        }
    }

    pub(crate) fn write(&self, image: &[u8]) -> std::io::Result<()> {
        self.file().write_all(image)
    }

    /// Returns the image without giving it a name in the folder.
    pub(crate) fn into_stored(self) -> Stored {
        match self {
            Self::Named(file) => Stored(file.into_file()),
            Self::Nameless(file) => Stored(file),
        }
    }
}

impl Stored {
    /// Returns a path that is valid while the file is open.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_image_above_the_bound_drops_the_one_that_was_used_least_recently() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path()).unwrap();
        let engine = wasmtime::Engine::default();
        let keep = |digest: &str, size: u64| {
            let blank = cache.blank().unwrap();
            // A file with a hole, which takes no space on the disk.
            blank.file().set_len(size).unwrap();
            let Stored(file) = cache.keep(blank, digest, &engine).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(3600))
                .unwrap();
        };
        let is_there = |digest: &str| cache.find(digest, &engine).is_some();
        keep("used", bound::BOUND / 2);
        keep("unused", bound::BOUND / 2);
        // Looking for an image is a use.
        assert!(is_there("used"));
        keep("new", 1);
        assert_eq!(["used", "unused", "new"].map(is_there), [true, false, true]);
    }
}
