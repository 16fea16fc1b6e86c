//! The host as a cluster runs it: built without the feature `dev`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};

use crate::host::{self, HostCommand};

/// Names the binary where it is built already, as `.ci/run` does beside the tests.
const GIVEN: &str = "VMHOST_WITHOUT_DEV";

/// Builds the binary, which `host/tests/bare.rs` needs. As a test of the whole workspace, so that
/// cargo takes the dependencies that the tests have, and compiles nothing but the binary.
const BUILD: [&str; 7] = [
    "test",
    "--locked",
    "--workspace",
    "--no-default-features",
    "--no-run",
    "--test",
    "bare",
];

/// The command without any flag.
pub fn bare() -> Result<HostCommand> {
    host::of(&path()?)
}

/// The program.
pub fn path() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| binary().map_err(|error| format!("{error:#}")));
    let built = built.as_ref().map_err(|error| anyhow!("{error}"))?;
    Ok(built.clone())
}

fn binary() -> Result<PathBuf> {
    if let Some(given) = env::var_os(GIVEN) {
        return Ok(given.into());
    }
    // <target>/<profile>/deps/<this program>
    let own = env::current_exe().context("finding the test binary")?;
    let profile = own
        .ancestors()
        .nth(2)
        .context("it is in no target folder")?;
    let target = profile.parent().context("it is in no target folder")?;
    let name = profile.file_name().unwrap_or_default();
    let mut cargo = cargo();
    cargo.args(BUILD).arg("--target-dir").arg(target);
    if name != "debug" {
        cargo.arg("--profile").arg(name);
    }
    let output = cargo.output().context("starting cargo")?;
    ensure!(
        output.status.success(),
        "vmhost without the feature `dev` is not built: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    // The next `cargo test` puts the program with the feature in its place.
    let bare = profile.join("vmhost-without-dev");
    fs::copy(profile.join("vmhost"), &bare).context("keeping vmhost without the feature `dev`")?;
    Ok(bare)
}

/// Cargo in this workspace, called as from a shell: what cargo sets for the tests' package would
/// make build scripts run once more.
pub fn cargo() -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(program);
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let of_package = [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_BIN_",
            "CARGO_CRATE_",
        ];
        if of_package.iter().any(|prefix| text.starts_with(prefix)) || text == "OUT_DIR" {
            cargo.env_remove(&name);
        }
    }
    cargo
}
