//! Finds the files in a policy's folder that can be its modules. This file does not know how they
//! are run.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use vmhost_engine::ScriptFile;

use crate::Result;
use crate::error::IoContext as _;
use crate::work;

/// The maximum total size of a policy's modules in bytes: some 200,000 lines. Each instance
/// receives all of them.
const LIMIT: usize = 8 << 20;

/// The content of a folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Python modules, and nothing that only a build can use.
    Modules(Vec<ScriptFile>),
    /// The reason why the policy must be built as a whole.
    ToBuild(String),
}

/// Reads a folder.
pub(super) fn read(folder: &Path) -> Result<Source> {
    let mut files = Vec::new();
    let mut size = 0;
    let mut pending = vec![folder.to_owned()];
    while let Some(inner) = pending.pop() {
        for entry in fs::read_dir(&inner).at("read", &inner)? {
            let path = entry.at("read", &inner)?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let Some(name) = name.filter(|name| !name.starts_with('.')) else {
                continue;
            };
            let below = path.strip_prefix(folder).unwrap_or(&path);
            let below = below.display().to_string();
            if path.is_dir() {
                if is_of_tools(&path, name) || path == work::own_sdk(folder) {
                    continue;
                }
                if path.is_symlink() {
                    return Ok(Source::ToBuild(format!("{below}, a link to a folder")));
                }
                pending.push(path);
            } else if name == "componentize-py.toml" || is_extension(&path, name) {
                return Ok(Source::ToBuild(below));
            } else if name.ends_with(".py") && path.is_symlink() {
                return Ok(Source::ToBuild(format!("{below}, a link to a file")));
            } else if name.ends_with(".py") && path.is_file() {
                let text = fs::read(&path).at("read", &path)?;
                size += text.len();
                files.push(ScriptFile { path: below, text });
            }
            if size > LIMIT {
                let limit = LIMIT >> 20;
                return Ok(Source::ToBuild(format!("more than {limit} MiB of modules")));
            }
        }
    }
    Ok(Source::Modules(files))
}

/// Returns whether a folder belongs to a tool, and so has no modules of the policy.
fn is_of_tools(folder: &Path, name: &str) -> bool {
    matches!(name, "__pycache__" | "node_modules") || folder.join("pyvenv.cfg").is_file()
}

/// Returns whether a file is a WebAssembly extension, which componentize-py links.
fn is_extension(path: &Path, name: &str) -> bool {
    let mut begin = [0; 4];
    let mut read = || fs::File::open(path)?.read_exact(&mut begin);
    name.ends_with(".so") && read().is_ok() && begin == *b"\0asm"
}

/// Returns a line for each file in a folder, with its path, size and time of change. The list
/// changes when a file is installed or edited.
pub(super) fn state(folder: &Path) -> Result<Vec<String>> {
    let mut state = Vec::new();
    let mut pending: Vec<PathBuf> = Some(folder.to_owned()).into_iter().collect();
    while let Some(inner) = pending.pop() {
        for entry in fs::read_dir(&inner).at("read", &inner)? {
            let path = entry.at("read", &inner)?.path();
            let name = path.file_name().unwrap_or_default();
            if name == "__pycache__" || name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let metadata = fs::symlink_metadata(&path).at("read", &path)?;
            if metadata.is_dir() {
                pending.push(path);
                continue;
            }
            let below = path.strip_prefix(folder).unwrap_or(&path).display();
            let changed = metadata.modified().at("read", &path)?;
            state.push(format!("{below} {} {changed:?}", metadata.len()));
        }
    }
    state.sort();
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn the_modules_of_a_folder_are_those_that_its_policy_may_import() {
        let folder = folder(&[
            ("vm.py", b"a"),
            ("rules/limits.py", b"b"),
            ("pyproject.toml", b""),
            ("sdk/vmhost_plugin/host.py", b""),
            (".venv/lib/six.py", b""),
            ("env/pyvenv.cfg", b""),
            ("env/lib/six.py", b""),
            ("rules/__pycache__/limits.py", b""),
            // An extension for the machine's own Python.
            ("native.so", b"\x7fELF"),
        ]);
        let Source::Modules(mut files) = read(folder.path()).unwrap() else {
            panic!("it can be run from its source");
        };
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let file = |path: &str, text: &[u8]| ScriptFile {
            path: path.to_owned(),
            text: text.to_vec(),
        };
        assert_eq!(files, [file("rules/limits.py", b"b"), file("vm.py", b"a")]);
    }

    #[test]
    fn what_only_a_build_can_take_is_named() {
        for (path, text, named) in [
            ("a/fast.so", &b"\0asm\x01"[..], "a/fast.so"),
            ("a/componentize-py.toml", b"", "a/componentize-py.toml"),
            (
                "a/long.py",
                &vec![b'#'; LIMIT + 1],
                "more than 8 MiB of modules",
            ),
        ] {
            let folder = folder(&[("vm.py", b""), (path, text)]);
            let read = read(folder.path()).unwrap();
            assert_eq!(read, Source::ToBuild(named.to_owned()));
        }
        let folder = folder(&[("vm.py", b"")]);
        std::os::unix::fs::symlink("/", folder.path().join("all")).unwrap();
        let read = read(folder.path()).unwrap();
        assert_eq!(read, Source::ToBuild("all, a link to a folder".to_owned()));
    }

    #[test]
    fn a_folder_is_another_when_a_file_is() {
        let folder = folder(&[("a.py", b"1"), ("b/c.py", b"2")]);
        let before = state(folder.path()).unwrap();
        assert_eq!(before.len(), 2);
        fs::create_dir(folder.path().join("__pycache__")).unwrap();
        fs::write(folder.path().join("__pycache__/a.pyc"), "").unwrap();
        assert_eq!(state(folder.path()).unwrap(), before);
        fs::write(folder.path().join("b/c.py"), "22").unwrap();
        assert_ne!(state(folder.path()).unwrap(), before);
    }
}
