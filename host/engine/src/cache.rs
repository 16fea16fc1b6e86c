//! Compiled images in files: in a folder, keyed by the component's digest and the engine's settings, or in memory without a name.
//!
//! Loading machine code runs it, so the folder must belong to this user and be closed to others; else it is not used at all.
//! It holds at most 1 GiB: the images that were used least recently go.

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

/// Why a cache folder is not used. Nothing breaks without it: components are compiled at each start.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// It cannot be made, read or written.
    #[error("the cache folder {path} cannot be used")]
    Io {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Others could put code into it.
    #[error(
        "the cache folder {0} is not used: it must belong to this user and be writable by nobody else (chmod 700)"
    )]
    Open(PathBuf),
}

/// A folder of `.cwasm` files.
pub(crate) struct Cache {
    folder: PathBuf,
}

/// An image in a file that is held open: it can be mapped whatever becomes of its name.
pub(crate) struct Stored(File);

/// A file that an image is about to be written to.
pub(crate) enum Blank {
    /// In the folder, under a name of its own until it is whole.
    Named(NamedTempFile),
    /// In memory.
    Nameless(File),
}

impl Cache {
    /// Opens the folder, making it if it is not there.
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

    /// The image of a component, if it was stored.
    pub(crate) fn find(&self, digest: &str, engine: &wasmtime::Engine) -> Option<Stored> {
        let file = File::open(self.path(digest, engine)).ok()?;
        // What is used stays longest. A folder on which that cannot be noted goes by age alone.
        let _ = file.set_modified(SystemTime::now());
        Some(Stored(file))
    }

    fn path(&self, digest: &str, engine: &wasmtime::Engine) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        self.folder
            .join(format!("{digest}-{:016x}.cwasm", hasher.finish()))
    }

    /// A file for an image that is to be kept.
    pub(crate) fn blank(&self) -> std::io::Result<Blank> {
        NamedTempFile::new_in(&self.folder).map(Blank::Named)
    }

    /// Keeps a written image. A reader sees the whole of it or nothing.
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
                    tracing::warn!("the cache folder {folder} is not pruned: {error}");
                }
                Ok(stored)
            }
            Blank::Nameless(file) => Ok(Stored(file)),
        }
    }
}

impl Blank {
    /// A file in memory, for an image that nobody keeps or a folder that cannot be written.
    pub(crate) fn in_memory() -> std::io::Result<Self> {
        let file = memfd_create("vmhost-image", MemfdFlags::CLOEXEC)?;
        Ok(Self::Nameless(file.into()))
    }

    /// Where the image is written.
    pub(crate) fn file(&self) -> &File {
        match self {
            Self::Named(file) => file.as_file(),
            Self::Nameless(file) => file,
        }
    }

    /// Writes the whole image.
    pub(crate) fn write(&self, image: &[u8]) -> std::io::Result<()> {
        self.file().write_all(image)
    }

    /// The image, without a name in the folder.
    pub(crate) fn into_stored(self) -> Stored {
        match self {
            Self::Named(file) => Stored(file.into_file()),
            Self::Nameless(file) => Stored(file),
        }
    }
}

impl Stored {
    /// A path of the open file, for as long as it is open.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}
