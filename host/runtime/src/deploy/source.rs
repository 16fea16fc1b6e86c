//! The source of a plugin's content: a component file or a folder of source code. A change of the
//! source starts a reload.
//!
//! It must not know how a folder is built: the caller brings a [`Build`].

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;

use crate::deploy::error::ReloadError;
use crate::deploy::files::folder::FolderWatch;
use crate::deploy::files::{FileError, FileWatch};
use crate::deploy::loaded::Loaded;

/// What a plugin is loaded from.
pub enum Source {
    /// A component file.
    File(PathBuf),
    /// A folder of source code and its build. The folder has been watched since before its first
    /// build, so that no save is lost.
    Folder(FolderWatch, Box<dyn Build>),
    /// Nothing that the host watches: versions come by orders. The path is their source's name, for
    /// messages.
    Orders(PathBuf),
}

/// Builds a folder of source and loads the result.
pub trait Build: Send + Sync {
    /// Starts a build. Dropping the future ends it.
    fn build(&self) -> Building<'_>;
}

/// A running build.
pub type Building<'a> = BoxFuture<'a, Result<Loaded, ReloadError>>;

/// The content of a changed file, or its error. `None` for a folder, which has to be built.
pub(crate) type News = Option<Result<Vec<u8>, FileError>>;

/// A watch on a source.
pub(crate) enum Watch {
    File(FileWatch),
    Folder(FolderWatch),
    /// Reports no changes (`--no-reload`).
    Off,
}

impl Source {
    /// The file or the folder.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Orders(path) => path,
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
            Self::Off => std::future::pending().await,
        }
    }
}
