//! The size limit of the cache folder, and the removal of the least recently used images above it.
//! This module knows files and their times, but not their content.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The maximum total size of the images in a cache folder: room for a hundred policies of 2 to 10
/// MB.
pub(crate) const BOUND: u64 = 1 << 30;

/// A temporary file older than this belongs to a killed process.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The size and the limit of a cache folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheUse {
    /// The number of compiled components in the folder.
    pub files: usize,
    /// Their total size in bytes.
    pub bytes: u64,
    /// The limit in bytes.
    pub bound: u64,
}

impl CacheUse {
    /// Measures a folder of compiled components. An absent folder is empty.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let images = match images(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            images => images?,
        };
        Ok(Self {
            files: images.len(),
            bytes: images.iter().map(|image| image.size).sum(),
            bound: BOUND,
        })
    }
}

struct Image {
    path: PathBuf,
    size: u64,
    used: SystemTime,
}

/// Removes the least recently used images until at most `bound` bytes are left. Processes that have
/// mapped a removed image keep it.
pub(super) fn prune(folder: &Path, bound: u64) -> io::Result<()> {
    let mut images = images(folder)?;
    images.sort_unstable_by_key(|image| image.used);
    let mut total: u64 = images.iter().map(|image| image.size).sum();
    for image in images {
        if total <= bound {
            break;
        }
        remove(&image.path)?;
        total -= image.size;
    }
    Ok(())
}

/// Lists the images of a folder, and removes half-written files of killed processes.
fn images(folder: &Path) -> io::Result<Vec<Image>> {
    let mut images = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // Another process may have removed the file in the meantime.
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        let used = metadata.modified()?;
        if path.extension().is_some_and(|ending| ending == "cwasm") {
            images.push(Image {
                path,
                size: metadata.len(),
                used,
            });
        } else if metadata.is_file()
            && is_unfinished(&path)
            && used.elapsed().is_ok_and(|age| age > ABANDONED)
        {
            remove(&path)?;
        }
    }
    Ok(images)
}

/// Returns whether tempfile chose the name. Such files are renamed when they are complete.
fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".tmp")
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn file(folder: &Path, name: &str, size: usize, age: u64) {
        let path = folder.join(name);
        fs::write(&path, vec![0; size]).unwrap();
        let used = SystemTime::now() - Duration::from_secs(age);
        File::open(&path).unwrap().set_modified(used).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_least_recently_used_go_until_the_rest_fits() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for (name, age) in [
            ("a.cwasm", 10),
            ("b.cwasm", 40),
            ("c.cwasm", 20),
            ("d.cwasm", 30),
        ] {
            file(folder, name, 100, age);
        }
        file(folder, ".tmpold", 100, 7200);
        file(folder, ".tmpnew", 100, 0);
        file(folder, "of-the-user.txt", 100, 7200);
        prune(folder, 250).unwrap();
        assert_eq!(
            names(folder),
            [".tmpnew", "a.cwasm", "c.cwasm", "of-the-user.txt"]
        );
        let held = CacheUse::of(folder).unwrap();
        assert_eq!((held.files, held.bytes), (2, 200));
        prune(folder, 200).unwrap();
        assert_eq!(CacheUse::of(folder).unwrap(), held, "it fits");
    }

    #[test]
    fn a_folder_that_is_not_there_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let held = CacheUse::of(&folder.path().join("none")).unwrap();
        assert_eq!((held.files, held.bytes), (0, 0));
    }
}
