//! Folders that only this user may write to. Another user who may write there could exchange files
//! that the host reads later.
//!
//! This module must not know what is in a folder.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Creates a folder that is absent, and checks that it belongs to this user and that no other user
/// can write to it.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)?;
    let metadata = fs::symlink_metadata(path)?;
    let me = rustix::process::geteuid().as_raw();
    if metadata.is_dir() && metadata.uid() == me && metadata.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "the folder {} must belong to this user and not be writable by others (chmod 700)",
            path.display()
        ),
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a").join("b");
        folder(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{mode:o}");
        folder(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = folder(&path).unwrap_err().to_string();
        assert!(refused.contains("chmod 700"), "{refused}");
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(folder(&file).is_err());
    }
}
