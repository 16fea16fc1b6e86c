//! The languages' own programs, as an author runs them. [`missing`] decides whether a missing
//! program is skipped or an error, and reports it.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

use crate::conformance::{folder, missing};

/// Runs a program in a folder; `None` if it is not installed.
pub fn output(
    folder: &Path,
    program: &str,
    arguments: &[&str],
    environment: &[(&str, &OsStr)],
) -> Result<Option<Output>> {
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .args(arguments)
        .envs(environment.iter().copied());
    match command.output() {
        Ok(output) => Ok(Some(output)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let what = format!("{program} {} in {}", arguments.join(" "), folder.display());
            missing(&what, "the program is not installed").map(|()| None)
        }
        Err(error) => Err(error).with_context(|| program.to_owned()),
    }
}

/// Runs a program that must succeed.
pub fn passes(
    folder: &Path,
    program: &str,
    arguments: &[&str],
    environment: &[(&str, &OsStr)],
) -> Result<()> {
    let Some(output) = output(folder, program, arguments, environment)? else {
        return Ok(());
    };
    if !output.status.success() {
        let (out, error) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        bail!(
            "{program} {} in {}: {}\n{out}\n{error}",
            arguments.join(" "),
            folder.display(),
            output.status
        );
    }
    Ok(())
}

/// Creates an npm project as `npm install` would leave it, with links to the SDK and to node's
/// types.
pub fn installed(project: &Path) -> Result<tempfile::TempDir> {
    let copy = tempfile::tempdir()?;
    for entry in std::fs::read_dir(project)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), copy.path().join(entry.file_name()))?;
        }
    }
    let modules = copy.path().join("node_modules");
    std::fs::create_dir_all(modules.join("@vmhost"))?;
    let sdk = folder("plugins/sdk-js").canonicalize()?;
    std::os::unix::fs::symlink(sdk, modules.join("@vmhost/plugin"))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let types = std::env::split_paths(&path).map(|bin| bin.join("../@types"));
    if let Some(types) = types.into_iter().find(|types| types.is_dir()) {
        std::os::unix::fs::symlink(types.canonicalize()?, modules.join("@types"))?;
    }
    Ok(copy)
}
