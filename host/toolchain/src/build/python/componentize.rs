//! componentize-py: the folders in which it looks for modules, and how it runs.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::build::made::succeeded;
use crate::error::IoContext as _;
use crate::tool::{Program, Tool, Way};
use crate::version::Version;
use crate::work::Work;
use crate::{Error, Language, Result, process};

/// Builds the component.
pub(crate) const COMPONENTIZE: Tool = Tool {
    name: "componentize-py",
    variable: None,
    ways: &[
        Way {
            command: &["componentize-py"],
            local: Some(".venv/bin"),
            version: &["--version"],
            probe: None,
        },
        // For an installation without the program; the package cannot be run as a module.
        Way {
            command: &[
                "python3",
                "-c",
                "import sys; from componentize_py import script; sys.exit(script())",
            ],
            local: Some(".venv/bin"),
            version: &["--version"],
            probe: None,
        },
    ],
    minimum: Version(0, 25, 1),
    install: "python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1",
};

/// Installs the packages of a `requirements.txt`: pure Python packages only, because no others
/// work.
const REQUIREMENTS: &str = "python3 -m pip install --target .vmhost/site --platform any --implementation py --abi none --python-version 3.14 --only-binary=:all: -r requirements.txt";

/// The hint of the error when componentize-py wrote no component.
pub(super) const NOTHING: &str = "componentize-py succeeded but wrote no component";

/// The module that componentize-py is given. It is generated, because the user's module does not
/// name the classes that the contract requires.
pub(super) const ENTRY: &str = "vmhost_entry";

/// The folders that modules are in.
pub(super) struct Folders {
    pub(super) policy: PathBuf,
    /// The packages of `requirements.txt`.
    pub(super) site: Option<PathBuf>,
    pub(super) sdk: PathBuf,
    pub(super) empty: PathBuf,
}

impl Folders {
    pub(super) fn of(policy: &Path, work: &Work) -> Result<Self> {
        let empty = work.path("empty");
        fs::create_dir_all(&empty).at("create", &empty)?;
        Ok(Self {
            policy: policy.to_owned(),
            site: requirements(policy, work)?,
            sdk: work.sdk(Language::Python)?,
            empty,
        })
    }

    /// Returns the folders in the order in which Python looks for modules. Tracebacks name the
    /// first one `/0`.
    pub(super) fn paths<'a>(&'a self, entry: &'a Path, policy: &'a Path) -> Vec<&'a Path> {
        let site = self.site.as_deref();
        let paths = [Some(entry), Some(policy), site, Some(&self.sdk)];
        paths.into_iter().flatten().collect()
    }
}

/// The installed componentize-py.
#[derive(Debug)]
pub(super) struct Componentize(pub(super) Program);

impl Componentize {
    /// Builds a component from the module `vmhost_entry`, which is in one of the paths.
    pub(super) async fn run(
        &self,
        folders: &Folders,
        contract: &Path,
        world: &str,
        paths: &[&Path],
        component: &Path,
    ) -> Result<()> {
        let mut command = self.0.command();
        // An environment without packages, so that componentize-py does not find the machine's
        // packages.
        command
            .current_dir(&folders.policy)
            .env("VIRTUAL_ENV", &folders.empty);
        command
            .env("RUST_BACKTRACE", "0")
            .env("RUST_LIB_BACKTRACE", "0");
        command.args(["--quiet", "--wit-path"]).arg(contract);
        command.args(["--world", world, "componentize"]);
        for path in paths {
            command.arg("--python-path").arg(path);
        }
        command.args([ENTRY, "--output"]).arg(component);
        let (output, messages) = process::run_kept(&mut command).await?;
        if !output.status.success() {
            let _ = std::io::stderr().write_all(readable(&messages, paths).as_bytes());
        }
        succeeded(&output, &folders.policy, COMPONENTIZE.name)
    }
}

/// Returns the folder of the packages of `requirements.txt`, if the file exists.
fn requirements(folder: &Path, work: &Work) -> Result<Option<PathBuf>> {
    let file = folder.join("requirements.txt");
    let site = work.path("site");
    let changed = |path: &Path| {
        path.metadata()
            .and_then(|metadata| metadata.modified())
            .ok()
    };
    match (changed(&file), changed(&site)) {
        (None, _) => Ok(None),
        (Some(wanted), Some(there)) if there >= wanted => Ok(Some(site)),
        _ => Err(Error::Project {
            file,
            problem: format!(
                "its packages are missing or out of date: run in {}: {REQUIREMENTS}",
                folder.display()
            ),
        }),
    }
}

/// Returns componentize-py's error with the files' real names. componentize-py names the folders
/// `/0`, `/1` and so on, and prints the whole error twice.
fn readable(messages: &str, paths: &[&Path]) -> String {
    let text = messages
        .split_once("AssertionError: ")
        .map_or(messages, |(_, text)| text);
    let text = text
        .rsplit_once("\n\nCaused by:")
        .map_or(text, |(text, _)| text);
    as_called_here(text, paths)
}

/// Returns a traceback with the files' real names.
pub(super) fn as_called_here(text: &str, paths: &[impl AsRef<Path>]) -> String {
    let mut readable = text.trim().to_owned();
    for (index, path) in paths.iter().enumerate() {
        let here = format!("\"{}/", path.as_ref().display());
        readable = readable.replace(&format!("\"/{index}/"), &here);
    }
    readable.push('\n');
    readable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_files_as_they_are_called_here() {
        let messages = "thread panicked\nAssertionError: Traceback:\n  File \"/0/vmhost_entry.py\", line 3, in <module>\n  File \"/1/vm.py\", line 12\nSyntaxError: invalid syntax\n\nCaused by:\n  SyntaxError: invalid syntax\n";
        let paths = [Path::new("/p/.vmhost/python"), Path::new("/p")];
        assert_eq!(
            readable(messages, &paths),
            "Traceback:\n  File \"/p/.vmhost/python/vmhost_entry.py\", line 3, in <module>\n  File \"/p/vm.py\", line 12\nSyntaxError: invalid syntax\n"
        );
        // Text in another form is shown unchanged.
        assert_eq!(readable("no space left\n", &paths), "no space left\n");
    }

    #[tokio::test]
    async fn packages_that_are_not_there_are_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let work = Work::begin(folder.path()).await.unwrap();
        assert_eq!(requirements(folder.path(), &work).unwrap(), None);
        fs::write(folder.path().join("requirements.txt"), "six\n").unwrap();
        let error = requirements(folder.path(), &work).unwrap_err().to_string();
        assert!(error.ends_with(REQUIREMENTS), "{error}");
        let site = work.path("site");
        fs::create_dir(&site).unwrap();
        assert_eq!(requirements(folder.path(), &work).unwrap(), Some(site));
    }
}
