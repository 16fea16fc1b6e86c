//! `FOLDER/.vmhost`: what a build leaves behind, hidden, never source. One build at a time works in it. Knows no language's tools.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::IoContext as _;
use crate::{Error, Language, Result, embedded, place, wit};

/// Its name.
const NAME: &str = ".vmhost";

/// How often a build that waits for another looks again.
const LOOK: Duration = Duration::from_millis(50);

/// The folder of a build, until it is dropped.
pub(crate) struct Work {
    project: PathBuf,
    folder: PathBuf,
    _lock: File,
}

impl Work {
    /// Makes it, and waits until no other build is in it.
    pub async fn begin(project: &Path) -> Result<Self> {
        let folder = project.join(NAME);
        fs::create_dir_all(&folder).at("make", &folder)?;
        // Git leaves it alone, whatever the project's own list says.
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

    /// A file or folder in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The place of a build's result, empty: what is there afterwards is new.
    pub fn output(&self, name: &str) -> Result<PathBuf> {
        let path = self.path(name);
        place::remove(&path)?;
        Ok(path)
    }

    /// The contract, for tools that read it.
    pub fn wit(&self) -> Result<PathBuf> {
        let folder = self.path("wit");
        wit::write(&folder)?;
        Ok(folder)
    }

    /// The SDK: the project's own, or else the one that this host was built with.
    pub fn sdk(&self, language: Language) -> Result<PathBuf> {
        let own = own_sdk(&self.project);
        if own.is_dir() {
            return Ok(own);
        }
        let folder = self.path("sdk");
        embedded::write_sdk(language, &folder)?;
        Ok(folder)
    }

    /// What a tool left in the place of its result.
    pub fn take(&self, path: &Path, hint: &str) -> Result<Vec<u8>> {
        fs::read(path).map_err(|_| Error::NothingBuilt {
            folder: self.project.clone(),
            hint: hint.to_owned(),
        })
    }
}

/// Where a project has an SDK of its own, as `vmhost new` writes it.
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
