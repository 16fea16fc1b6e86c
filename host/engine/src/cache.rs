//! Compiled images on disk, keyed by the component's digest and the engine's settings.
//!
//! Loading machine code runs it, so the folder must belong to this user and be closed to others; else it is not used at all.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

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
        let probe = tempfile::NamedTempFile::new_in(folder).map_err(io)?;
        let me = probe.as_file().metadata().map_err(io)?.uid();
        let metadata = fs::symlink_metadata(folder).map_err(io)?;
        if !metadata.is_dir() || metadata.uid() != me || metadata.mode() & 0o022 != 0 {
            return Err(CacheError::Open(folder.to_owned()));
        }
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// Where the image of a component lies, if it was stored.
    pub(crate) fn path(&self, digest: &str, engine: &wasmtime::Engine) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        self.folder
            .join(format!("{digest}-{:016x}.cwasm", hasher.finish()))
    }

    /// Stores an image. A reader sees the whole of it or nothing.
    pub(crate) fn store(&self, path: &Path, image: &[u8]) -> Result<(), CacheError> {
        let io = |source| CacheError::Io {
            path: self.folder.clone(),
            source,
        };
        let mut file = tempfile::NamedTempFile::new_in(&self.folder).map_err(io)?;
        file.write_all(image).map_err(io)?;
        file.persist(path).map_err(|error| io(error.error))?;
        Ok(())
    }
}
