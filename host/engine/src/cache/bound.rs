//! How much the cache folder holds, and what goes when that is too much: the images that were used
//! least recently. It knows files and their times, and nothing of what they hold.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The most that the images in a cache folder may take: a hundred policies of 2 to 10 MB.
pub(crate) const BOUND: u64 = 1 << 30;

/// A file that is being written is younger than this: what a killed process left is older.
const ABANDONED: Duration = Duration::from_secs(3600);

/// What a cache folder holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheUse {
    /// The compiled components in it.
    pub files: usize,
    /// Their sizes together.
    pub bytes: u64,
    /// The most bytes that are kept.
    pub bound: u64,
}

impl CacheUse {
    /// Looks at a folder of compiled components. One that is not there holds nothing.
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

/// Removes images until at most `bound` bytes are left, the least recently used first. One that is
/// mapped stays mapped.
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

/// The images of a folder. Files that a killed process left half written are removed on the way.
fn images(folder: &Path) -> io::Result<Vec<Image>> {
    let mut images = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // Another process may have removed it by now.
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

/// Returns whether tempfile named it: these are renamed once they are whole.
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
