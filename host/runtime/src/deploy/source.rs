//! Where a plugin's content comes from, and comes from again at each change: a component's file, or
//! a folder of source.
//!
//! It must not know how a folder is built: whoever names one brings that.

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;

use crate::deploy::error::ReloadError;
use crate::deploy::files::folder::FolderWatch;
use crate::deploy::files::{FileError, FileWatch};
use crate::deploy::loaded::Loaded;

/// What a plugin is loaded from.
pub enum Source {
    /// A component's file.
    File(PathBuf),
    /// A folder, which has been watched since before it was built, and what builds it.
    Folder(FolderWatch, Box<dyn Build>),
}

/// Builds a folder of source, and loads what came of it.
pub trait Build: Send + Sync {
    /// Whoever drops the future ends the build.
    fn build(&self) -> Building<'_>;
}

/// A build that is under way.
pub type Building<'a> = BoxFuture<'a, Result<Loaded, ReloadError>>;

/// What a change brings: the content of a file; of a folder nothing, which is to be built.
pub(crate) type News = Option<Result<Vec<u8>, FileError>>;

/// Tells of changes.
pub(crate) enum Watch {
    File(FileWatch),
    Folder(FolderWatch),
}

impl Source {
    /// The file or the folder.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Folder(watch, _) => watch.folder(),
        }
    }
}

impl Watch {
    /// Resolves at the next change. Cancel safe.
    pub(crate) async fn changed(&mut self) -> News {
        match self {
            Self::File(watch) => Some(watch.changed().await),
            Self::Folder(watch) => {
                watch.changed().await;
                None
            }
        }
    }
}
