//! Writes files that appear as a whole: to a temporary file beside the target, which is then
//! renamed. This module does not know their content.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::Result;
use crate::error::IoContext as _;

/// Writes a file so that readers never see a part of it.
pub(crate) fn whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let write = || {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(bytes)?;
        file.as_file()
            .set_permissions(Permissions::from_mode(0o644))?;
        file.persist(path)?;
        Ok(())
    };
    write().at("write", path)
}

/// Writes a file and its parent folders, unless the file already has this content: tools that
/// compare times of change then see none.
pub(crate) fn if_changed(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).at("create", folder)?;
    }
    whole(path, bytes)
}

/// Removes a file. Returns no error if it does not exist.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).at("remove", path),
        _ => Ok(()),
    }
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).at("read", path)
}

/// Opens a file that other processes lock too.
pub(crate) fn lock_file(path: &Path) -> Result<File> {
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .at("open", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_left_alone_if_it_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b.txt");
        if_changed(&path, b"one").unwrap();
        let modified = || fs::metadata(&path).unwrap().modified().unwrap();
        let before = modified();
        if_changed(&path, b"one").unwrap();
        assert_eq!(modified(), before);
        whole(&path, b"two").unwrap();
        assert_eq!(read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path().join("a")).unwrap().count(), 1);
    }

    #[test]
    fn a_place_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none/x.wasm");
        let error = whole(&path, b"").unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("cannot write {}", path.display())
        );
        remove(&path).unwrap();
    }
}
