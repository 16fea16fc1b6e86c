//! `FOLDER/.vmhost`: a hidden folder for build results, never for source. One build at a time uses
//! it. This module knows no language's tools.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::IoContext as _;
use crate::{Error, Language, Result, embedded, place, wit};

/// The folder's name.
const NAME: &str = ".vmhost";

/// How often a waiting build checks whether the other has finished.
const LOOK: Duration = Duration::from_millis(50);

/// The folder of a build, locked until it is dropped.
pub(crate) struct Work {
    project: PathBuf,
    folder: PathBuf,
    _lock: File,
}

impl Work {
    /// Creates the folder, and waits until no other build uses it.
    pub async fn begin(project: &Path) -> Result<Self> {
        let folder = project.join(NAME);
        fs::create_dir_all(&folder).at("create", &folder)?;
        // Git ignores the folder, even if the project's own list does not name it.
        place::if_changed(&folder.join(".gitignore"), b"*\n")?;
        let path = folder.join("lock");
        let lock = place::lock_file(&path)?;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOOK).await,
                Err(TryLockError::Error(source)) => return Err(source).at("lock", &path),
            }
        }
        Ok(Self {
            project: project.to_owned(),
            folder,
            _lock: lock,
        })
    }

    /// Returns the path of a file or folder inside.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the path for a build's result and removes an old result, so that a file found there
    /// later is new.
    pub fn output(&self, name: &str) -> Result<PathBuf> {
        let path = self.path(name);
        place::remove(&path)?;
        Ok(path)
    }

    /// Writes the contract for tools that read it, and returns its folder.
    pub fn wit(&self) -> Result<PathBuf> {
        let folder = self.path("wit");
        wit::write(&folder)?;
        Ok(folder)
    }

    /// Writes the contract for tools that take a world as a whole; with `http`, one that sends HTTP
    /// requests. Returns its folder and the world.
    pub fn world(&self, http: bool) -> Result<(PathBuf, &'static str)> {
        if !http {
            return Ok((self.wit()?, wit::WORLD));
        }
        let folder = self.path("wit-http");
        let world = wit::write_with_http(&folder)?;
        Ok((folder, world))
    }

    /// Returns the SDK's folder: the project's own, or else the SDK that this host contains.
    pub fn sdk(&self, language: Language) -> Result<PathBuf> {
        let own = own_sdk(&self.project);
        if own.is_dir() {
            return Ok(own);
        }
        let folder = self.path("sdk");
        embedded::write_sdk(language, &folder)?;
        Ok(folder)
    }

    /// Reads the result that a tool wrote.
    pub fn take(&self, path: &Path, hint: &str) -> Result<Vec<u8>> {
        fs::read(path).map_err(|_| Error::NothingBuilt {
            folder: self.project.clone(),
            hint: hint.to_owned(),
        })
    }
}

/// Returns where a project has its own SDK, as `vmhost new` writes it.
pub(crate) fn own_sdk(project: &Path) -> PathBuf {
    project.join("sdk")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_build_at_a_time() {
        let project = tempfile::tempdir().unwrap();
        let first = Work::begin(project.path()).await.unwrap();
        let waiting = Work::begin(project.path());
        tokio::pin!(waiting);
        let early = tokio::time::timeout(4 * LOOK, &mut waiting).await;
        assert!(early.is_err(), "two builds in one folder");
        drop(first);
        let second = waiting.await.unwrap();
        assert!(second.wit().unwrap().join("world.wit").is_file());
    }

    #[tokio::test]
    async fn an_old_result_is_no_new_one() {
        let project = tempfile::tempdir().unwrap();
        let work = Work::begin(project.path()).await.unwrap();
        fs::write(work.path("core.wasm"), "old").unwrap();
        let output = work.output("core.wasm").unwrap();
        let error = work.take(&output, "it needs more").unwrap_err();
        let folder = project.path().display();
        assert_eq!(
            error.to_string(),
            format!("{folder} built no component: it needs more")
        );
    }
}
