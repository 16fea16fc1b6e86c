//! Finds a program and checks its version. The list of programs and the builds are in
//! [`crate::build`]. This module must not know what a program is for.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

use crate::version::Version;
use crate::{Error, Language, Result, process};

/// The time limit for a tool to print its version.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program that builds plugins, or several alternatives.
#[derive(Debug)]
pub struct Tool {
    /// The name for display.
    pub name: &'static str,
    /// An environment variable that names the program.
    pub variable: Option<&'static str>,
    /// The ways to run the tool, the best first.
    pub ways: &'static [Way],
    /// The oldest version that is known to work.
    pub minimum: Version,
    /// The command that installs the tool, and further steps.
    pub install: &'static str,
}

/// One way to run a tool.
#[derive(Debug)]
pub struct Way {
    /// The program and its first arguments: `python3 -m ziglang`.
    pub command: &'static [&'static str],
    /// A folder of the project or of one of its parents that contains the program:
    /// `node_modules/.bin`, `.venv/bin`. It comes before `PATH`.
    pub local: Option<&'static str>,
    /// The arguments that print the version. If empty, the program's npm package has the version.
    pub version: &'static [&'static str],
    /// The arguments with which the program succeeds if it has all it needs (a sysroot, a module).
    pub probe: Option<&'static [&'static str]>,
}

/// A tool that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program and its first arguments.
    pub command: Vec<OsString>,
    /// The version, if the program printed one.
    pub version: Option<Version>,
}

/// The result of a search for a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The tool is installed and new enough.
    Good(Program),
    /// The tool is installed, but too old.
    Old(Program),
    /// The tool is not installed, or lacks something that it needs.
    Missing,
}

impl Program {
    /// Returns a command that runs the program.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command
    }

    /// Returns the command line as a user types it.
    pub fn text(&self) -> String {
        let parts: Vec<_> = self
            .command
            .iter()
            .map(|part| part.to_string_lossy())
            .collect();
        parts.join(" ")
    }
}

impl Tool {
    /// Looks for the tool on behalf of a project's folder.
    pub async fn find(&self, folder: &Path) -> Found {
        self.find_in(folder, &search_path()).await
    }

    /// Returns the tool, or an error that says how to install it.
    pub async fn need(&self, folder: &Path, language: Language) -> Result<Program> {
        self.expect(self.find(folder).await, language)
    }

    pub(crate) fn expect(&self, found: Found, language: Language) -> Result<Program> {
        match found {
            Found::Good(program) => Ok(program),
            Found::Old(program) => Err(Error::OldTool {
                tool: self.name,
                path: program.text(),
                found: program
                    .version
                    .map(|version| version.to_string())
                    .unwrap_or_default(),
                minimum: self.minimum.to_string(),
                language: language.name(),
                install: self.install,
            }),
            Found::Missing => Err(Error::MissingTool {
                tool: self.name,
                language: language.name(),
                install: self.install,
            }),
        }
    }

    /// Like [`Tool::find`], with these folders instead of `PATH`.
    pub(crate) async fn find_in(&self, folder: &Path, path: &[PathBuf]) -> Found {
        let mut old = None;
        let named = self.variable.and_then(std::env::var_os);
        for way in self.ways {
            let places = way.places(folder, path);
            let named = named.iter().map(PathBuf::from);
            let candidates = named.chain(places.iter().map(|place| place.join(way.command[0])));
            for file in candidates.filter(|file| is_program(file)) {
                let Some(program) = way.program(file, folder).await else {
                    continue;
                };
                if program
                    .version
                    .is_none_or(|version| version >= self.minimum)
                {
                    return Found::Good(program);
                }
                old = old.or(Some(program));
            }
        }
        old.map_or(Found::Missing, Found::Old)
    }
}

impl Way {
    /// Returns the folders that may contain the program, the nearest first.
    fn places(&self, folder: &Path, path: &[PathBuf]) -> Vec<PathBuf> {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let local = self.local.into_iter();
        let near = local.flat_map(|local| folder.ancestors().map(move |above| above.join(local)));
        near.chain(path.iter().cloned()).collect()
    }

    /// Returns the program if it runs in the project's folder. The folder matters, because a
    /// manager such as rustup selects the version by it.
    async fn program(&self, file: PathBuf, folder: &Path) -> Option<Program> {
        let mut program = Program {
            command: vec![file.into_os_string()],
            version: None,
        };
        program
            .command
            .extend(self.command[1..].iter().map(OsString::from));
        program.version = match self.version {
            [] => package_version(Path::new(&program.command[0])),
            asked => Version::find(&answer(program.command().args(asked), folder).await?),
        };
        if let Some(probe) = self.probe {
            answer(program.command().args(probe), folder).await?;
        }
        Some(program)
    }
}

/// Returns the version of the npm package that a program in `node_modules/.bin` links to.
fn package_version(program: &Path) -> Option<Version> {
    let program = program.canonicalize().ok()?;
    let package = program.ancestors().find_map(|above| {
        let text = std::fs::read(above.join("package.json")).ok()?;
        serde_json::from_slice::<serde_json::Value>(&text).ok()
    })?;
    Version::find(package.get("version")?.as_str()?)
}

/// Returns what a tool prints, if it succeeds in time.
async fn answer(command: &mut Command, folder: &Path) -> Option<String> {
    if folder.is_dir() {
        command.current_dir(folder);
    }
    // Some tools print their version to stderr, which the user need not see.
    let ended = tokio::time::timeout(PATIENCE, process::run_kept(command)).await;
    let (output, stderr) = ended.ok()?.ok()?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let told = match stdout.trim() {
        "" => stderr,
        stdout => stdout.to_owned(),
    };
    output.status.success().then_some(told)
}

/// The folders of `PATH`.
pub(crate) fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

fn is_program(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;

    const WAY: Way = Way {
        command: &["sawmill"],
        local: Some("node_modules/.bin"),
        version: &["--version"],
        probe: None,
    };

    const SAWMILL: Tool = Tool {
        name: "sawmill",
        variable: None,
        ways: &[WAY],
        minimum: Version(2, 0, 0),
        install: "npm install --save-dev sawmill@2.1.0",
    };

    /// Another process writes the program: if this process had it open for writing while another
    /// thread forks, the child would inherit the descriptor and the program could not be run.
    pub(crate) fn program(folder: &Path, name: &str, script: &str) {
        fs::create_dir_all(folder).unwrap();
        let mut shell = std::process::Command::new("sh");
        shell.args([
            "-c",
            "printf '%s\\n' '#!/bin/sh' \"$2\" > \"$1\" && chmod 755 \"$1\"",
            "sh",
        ]);
        shell.arg(folder.join(name)).arg(script);
        assert!(shell.status().unwrap().success());
    }

    /// Creates a project inside a repository, and the folders of `PATH`.
    fn machine() -> (tempfile::TempDir, PathBuf, Vec<PathBuf>) {
        let root = tempfile::tempdir().unwrap();
        let folder = root
            .path()
            .canonicalize()
            .unwrap()
            .join("repository/project");
        let path = vec![root.path().join("none"), root.path().join("bin")];
        fs::create_dir_all(&folder).unwrap();
        (root, folder, path)
    }

    #[tokio::test]
    async fn the_nearest_is_taken_and_one_that_is_too_old_only_to_be_named() {
        let (_root, folder, path) = machine();
        assert_eq!(SAWMILL.find_in(&folder, &path).await, Found::Missing);

        program(&path[1], "sawmill", "echo sawmill 1.9.3 >&2");
        let old = SAWMILL.find_in(&folder, &path).await;
        assert_eq!(
            SAWMILL.expect(old, Language::Js).unwrap_err().to_string(),
            format!(
                "{} is sawmill 1.9.3, but js plugins need 2.0.0 or newer: npm install --save-dev sawmill@2.1.0",
                path[1].join("sawmill").display()
            )
        );

        // A newer version in the repository, above the project.
        let above = folder.parent().unwrap().join("node_modules/.bin");
        program(&above, "sawmill", "echo v2.0.0");
        let Found::Good(good) = SAWMILL.find_in(&folder, &path).await else {
            panic!("not found");
        };
        assert_eq!(good.text(), above.join("sawmill").display().to_string());
        assert_eq!(good.version, Some(Version(2, 0, 0)));
    }

    #[tokio::test]
    async fn a_program_that_tells_no_version_is_as_old_as_its_package() {
        let (_root, folder, _) = machine();
        let package = folder.join("node_modules/sawmill");
        program(&package.join("bin"), "sawmill", "echo it saws");
        fs::write(package.join("package.json"), r#"{"version":"2.4.0"}"#).unwrap();
        let bin = folder.join("node_modules/.bin");
        fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink("../sawmill/bin/sawmill", bin.join("sawmill")).unwrap();
        let ways = [Way {
            version: &[],
            ..WAY
        }];
        let silent = Tool {
            ways: Box::leak(Box::new(ways)),
            ..SAWMILL
        };
        let Found::Good(good) = silent.find_in(&folder, &[]).await else {
            panic!("not found");
        };
        assert_eq!(good.version, Some(Version(2, 4, 0)));
    }

    #[tokio::test]
    async fn what_does_not_run_or_lacks_something_is_missing() {
        let (_root, folder, path) = machine();
        program(&path[1], "sawmill", "echo sawmill 3.0.0; exit 1");
        assert_eq!(SAWMILL.find_in(&folder, &path).await, Found::Missing);

        // The program prints its version, but its probe fails.
        program(&path[1], "sawmill", "[ \"$1\" = --version ] && echo 3.0.0");
        let ways = [Way {
            probe: Some(&["--logs"]),
            ..WAY
        }];
        let probed = Tool {
            ways: Box::leak(Box::new(ways)),
            ..SAWMILL
        };
        assert_eq!(probed.find_in(&folder, &path).await, Found::Missing);
        assert_eq!(
            probed
                .expect(Found::Missing, Language::Js)
                .unwrap_err()
                .to_string(),
            "sawmill is required to build js plugins, but is not installed: npm install --save-dev sawmill@2.1.0"
        );
        // The file is not executable.
        fs::set_permissions(path[1].join("sawmill"), fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(SAWMILL.find_in(&folder, &path).await, Found::Missing);
    }
}
