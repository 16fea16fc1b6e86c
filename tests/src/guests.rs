//! The components of `guests/`, and variants of them with patched bytes: a test that needs twenty
//! different policies compiles none.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

include!(concat!(env!("OUT_DIR"), "/guests.rs"));

/// The mark in `vm-stamp`, which precedes ten digits and the mode.
const STAMP_MARK: &[u8] = b"VMHOST-STAMP-";
const STAMP_DIGITS: usize = 10;
/// The mark in guests that call `kit::description`, at the start of the text.
const DESCRIPTION_MARK: &[u8] = b"VMHOST-DESCRIPTION";
const DESCRIPTION_SIZE: usize = 4096;
/// The mark in `spin`, `trap`, `eat-memory` and `watcher`, which precedes the plugin's name.
const NAME_MARK: &[u8] = b"VMHOST-NAME-";
const NAME_SIZE: usize = 20;

/// The annotation to which the second effect of [`Mode::Twice`] writes the number.
pub const SECOND: &str = "vmhost.test/second";

/// What `vm-stamp` does with VMs that another policy finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing: a VM keeps the number of the policy that finished it.
    Keep,
    /// Overwrites the number, so that in the end all VMs have the newest.
    Restamp,
    /// Traps in every turn.
    Trap,
    /// As `Keep`, but a turn has two effects: the second writes the number again, to [`SECOND`].
    Twice,
    /// As `Keep`, but each turn asks the API server for a ConfigMap.
    Asks,
}

/// Returns the VM policy with this number.
pub fn vm_stamp(number: u32, mode: Mode) -> Result<Vec<u8>> {
    let mut bytes = read(VM_STAMP)?;
    let at = only(&bytes, STAMP_MARK)? + STAMP_MARK.len();
    let digits = format!("{number:0width$}", width = STAMP_DIGITS);
    bytes[at..at + STAMP_DIGITS].copy_from_slice(digits.as_bytes());
    bytes[at + STAMP_DIGITS] = match mode {
        Mode::Keep => b'k',
        Mode::Restamp => b'r',
        Mode::Twice => b't',
        Mode::Trap => b'x',
        Mode::Asks => b'a',
    };
    Ok(bytes)
}

/// Returns a policy whose `describe` returns this text, or the error `why` for `refuse: why`.
pub fn describing(text: &str) -> Result<Vec<u8>> {
    described(DESCRIBE, text)
}

/// Returns a guest that calls `kit::description`, with this description.
pub fn described(component: &str, text: &str) -> Result<Vec<u8>> {
    ensure!(
        text.len() <= DESCRIPTION_SIZE,
        "a description of {} bytes is too long",
        text.len()
    );
    let mut bytes = read(component)?;
    let at = only(&bytes, DESCRIPTION_MARK)?;
    let place = &mut bytes[at..at + DESCRIPTION_SIZE];
    place.fill(b' ');
    place[..text.len()].copy_from_slice(text.as_bytes());
    Ok(bytes)
}

/// Returns `spin` under another plugin name.
pub fn spin_as(name: &str) -> Result<Vec<u8>> {
    named(SPIN, name)
}

/// Returns `spin`, `trap`, `eat-memory` or `watcher` under another plugin name.
pub fn named(component: &str, name: &str) -> Result<Vec<u8>> {
    ensure!(name.len() <= NAME_SIZE, "the name {name} is too long");
    let mut bytes = read(component)?;
    let at = only(&bytes, NAME_MARK)? + NAME_MARK.len();
    let place = &mut bytes[at..at + NAME_SIZE];
    place.fill(b' ');
    place[..name.len()].copy_from_slice(name.as_bytes());
    Ok(bytes)
}

/// Returns the same component with other bytes, and so another digest: a custom section contains no
/// code.
pub fn with_comment(component: &[u8], comment: &str) -> Vec<u8> {
    let name = "comment";
    // Sizes below 128 are one byte in LEB128.
    let size = u8::try_from(1 + name.len() + comment.len()).unwrap_or(u8::MAX);
    assert!(
        size < 0x80,
        "the comment is too long for a size of one byte"
    );
    let mut bytes = component.to_vec();
    bytes.extend([0, size, name.len() as u8]);
    bytes.extend(name.bytes().chain(comment.bytes()));
    bytes
}

/// Reads a component.
pub fn read(path: &str) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading {path}"))
}

/// How an editor or a build tool replaces a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Writes a new file beside it and renames that.
    Rename,
    /// Truncates the file and writes to it, in two halves.
    InPlace,
}

/// Writes `bytes` to `path`.
pub fn install(path: &Path, bytes: &[u8], way: Way) -> Result<()> {
    match way {
        Way::Rename => {
            let beside = path.with_extension("new");
            fs::write(&beside, bytes).with_context(|| format!("writing {}", beside.display()))?;
            fs::rename(&beside, path).with_context(|| format!("renaming to {}", path.display()))
        }
        Way::InPlace => {
            use std::io::Write;
            let mut file =
                fs::File::create(path).with_context(|| format!("truncating {}", path.display()))?;
            let (first, second) = bytes.split_at(bytes.len() / 2);
            file.write_all(first).context("writing the first half")?;
            file.sync_data().context("flushing the first half")?;
            file.write_all(second).context("writing the second half")
        }
    }
}

/// A plugin file in a folder of its own. A test overwrites the file to swap the policy.
pub struct PolicyFile {
    path: PathBuf,
    _dir: TempDir,
}

impl PolicyFile {
    /// Creates `<name>.wasm` with these bytes.
    pub fn new(name: &str, bytes: &[u8]) -> Result<PolicyFile> {
        let dir = tempfile::tempdir().context("making a folder")?;
        let path = dir.path().join(format!("{name}.wasm"));
        install(&path, bytes, Way::Rename)?;
        Ok(PolicyFile { path, _dir: dir })
    }

    /// Returns the path for `--plugin`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the file's bytes.
    pub fn swap(&self, bytes: &[u8], way: Way) -> Result<()> {
        install(&self.path, bytes, way)
    }
}

/// Returns the only position of `mark`.
fn only(bytes: &[u8], mark: &[u8]) -> Result<usize> {
    let mut places = bytes
        .windows(mark.len())
        .enumerate()
        .filter(|(_, window)| *window == mark);
    let (at, _) = places.next().context("the guest lost its mark")?;
    ensure!(places.next().is_none(), "the guest has its mark twice");
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_numbers_make_two_components() {
        let one = vm_stamp(1, Mode::Keep).unwrap();
        let two = vm_stamp(2, Mode::Restamp).unwrap();
        assert_ne!(one, two);
        assert_eq!(one.len(), two.len());
        let changed = one.iter().zip(&two).filter(|(a, b)| a != b).count();
        assert_eq!(changed, 2, "the digit and the mode");
    }

    #[test]
    fn a_description_is_written_into_the_bytes() {
        let bytes = describing("{}").unwrap();
        assert!(only(&bytes, DESCRIPTION_MARK).is_err());
    }
}
