//! Builds the programs that vmhost is measured beside, each with its own tools, outside of the
//! checkout.
//!
//! The race includes this file by its path. It must not know which programs there are.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A built program.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The path of its binary.
    pub program: PathBuf,
    /// The version of the library that it represents.
    pub version: String,
}

/// Returns the folder of what is built: `$XDG_CACHE_HOME/vmhost/race`.
pub fn cache() -> Result<PathBuf> {
    let given = env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty());
    let base = match given {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env::var_os("HOME").context("HOME is not set")?).join(".cache"),
    };
    let folder = base.join("vmhost/race");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    Ok(folder)
}

/// Builds the Go module in a folder. `library` is the module that it represents, one of those that
/// its go.mod pins.
pub fn go(source: &Path, library: &str) -> Result<Peer> {
    let name = source.file_name().context("a Go module has no folder")?;
    let program = cache()?.join(name);
    let mut build = Command::new("go");
    build
        .current_dir(source)
        .args(["build", "-trimpath", "-buildvcs=false", "-o"])
        .arg(&program)
        .arg(".");
    run(&mut build)?;
    let version = line_after(&source.join("go.mod"), &format!("{library} "))?;
    Ok(Peer { program, version })
}

/// Runs a command that must succeed. Its messages go to the terminal.
pub fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("there is no {program}"))?;
    if !status.success() {
        bail!("{program} failed ({status}); its messages are above");
    }
    Ok(())
}

/// Returns the rest of the line after this text.
pub fn line_after(file: &Path, text: &str) -> Result<String> {
    let all = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let rest = all.split_once(text).map(|(_, rest)| rest);
    let line = rest.and_then(|rest| rest.lines().next());
    let line = line.with_context(|| format!("{} does not name {text}", file.display()))?;
    Ok(line.trim().to_owned())
}
