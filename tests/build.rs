//! Builds the guests and the examples for wasm32-wasip2 and writes `guests.rs` with a constant for
//! the path of each.
//!
//! Reads the lists from the guests' workspace and from the examples' folder, so a new folder needs
//! no line here. `tests/suite/tidy.rs` checks that a test uses every guest, and
//! `tests/suite/examples_all.rs` does so for examples.

#![allow(clippy::print_stdout, reason = "how a build script speaks to cargo")]

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The target of guests and examples.
const TARGET: &str = "wasm32-wasip2";

/// The build profiles: guests have their own options, examples are built as they are shipped.
const GUESTS_PROFILE: &str = "release";
const EXAMPLES_PROFILE: &str = "dist";

/// The library that the guests share, which is not a guest.
const KIT: &str = "kit";

fn main() {
    if let Err(error) = build() {
        // Cargo shows this text instead of the Debug form of an error.
        println!("cargo::error={}", error.replace('\n', " "));
        std::process::exit(1);
    }
}

fn build() -> Result<(), String> {
    let here = PathBuf::from(var("CARGO_MANIFEST_DIR")?);
    let root = here.join("..");
    let guests = here.join("guests");
    let examples = examples(&root)?;
    // Folder by folder, because components of `vmhost dev` are beside them. A new folder comes with
    // a new member in the manifest.
    let folders = [
        "tests/guests",
        "wit",
        "plugins/sdk-rust",
        "Cargo.toml",
        "Cargo.lock",
    ];
    let own = examples.iter().map(|(_, folder)| folder.clone());
    for watched in folders.iter().map(|path| root.join(path)).chain(own) {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    let out = PathBuf::from(var("OUT_DIR")?);
    let target = target_dir(&out)?;
    need_target()?;
    compile(&guests, &target, GUESTS_PROFILE, &[])?;
    let packages: Vec<&str> = examples.iter().map(|(name, _)| name.as_str()).collect();
    compile(&root, &target, EXAMPLES_PROFILE, &packages)?;
    let built = |profile: &str| target.join(TARGET).join(profile);
    let mut text = String::new();
    for name in members(&guests)? {
        constant(&mut text, "", &name, &built(GUESTS_PROFILE))?;
    }
    for (name, _) in &examples {
        constant(&mut text, "EXAMPLE_", name, &built(EXAMPLES_PROFILE))?;
    }
    text.push_str(
        "/// All examples by name: their components.\npub const EXAMPLES: &[(&str, &str)] = &[",
    );
    for (name, _) in &examples {
        let constant = name.replace('-', "_").to_uppercase();
        write!(text, "({name:?}, EXAMPLE_{constant}), ").map_err(|error| error.to_string())?;
    }
    text.push_str("];\n");
    fs::write(out.join("guests.rs"), text).map_err(|error| format!("writing guests.rs: {error}"))
}

/// Writes the constant of one component.
fn constant(text: &mut String, prefix: &str, name: &str, built: &Path) -> Result<(), String> {
    let file = built.join(format!("{}.wasm", name.replace('-', "_")));
    let constant = name.replace('-', "_").to_uppercase();
    if !file.is_file() {
        return Err(format!("{name} was not built to {}", file.display()));
    }
    writeln!(
        text,
        "/// The component `{name}`.\npub const {prefix}{constant}: &str = {:?};",
        path(&file)?
    )
    .map_err(|error| error.to_string())
}

/// Returns the examples' packages and folders, which have the same names, and `plugins/vm`.
fn examples(root: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let folder = root.join("examples");
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut found = vec![("vm".to_owned(), root.join("plugins/vm"))];
    for entry in entries {
        let entry = entry.map_err(|error| error.to_string())?;
        if entry.path().join("Cargo.toml").is_file() {
            found.push((
                entry.file_name().to_string_lossy().into_owned(),
                entry.path(),
            ));
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the folder `guests` in the outer target folder. It cannot be cargo's own folder, whose
/// lock the outer build holds, and not a folder below OUT_DIR, whose name changes with features and
/// profiles.
fn target_dir(out: &Path) -> Result<PathBuf, String> {
    // <target>/<profile>/build/<package>/out
    out.ancestors()
        .nth(4)
        .map(|target| target.join("guests"))
        .ok_or_else(|| format!("OUT_DIR is not where cargo puts it: {}", out.display()))
}

/// Ensures that the compiler has the target, and lets rustup add it if it is missing, as
/// `vmhost build` does.
fn need_target() -> Result<(), String> {
    // The source is empty, but rustc still looks for the target's standard library.
    let mut probe = Command::new(var("RUSTC")?);
    probe.args([
        "--target",
        TARGET,
        "--crate-type=lib",
        "--emit=dep-info=-",
        "-",
    ]);
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", TARGET]);
    if succeeds(probe)? {
        return Ok(());
    }
    let offline = env::var("CARGO_NET_OFFLINE").is_ok_and(|set| set == "true");
    if !offline && succeeds(rustup).unwrap_or(false) {
        println!("cargo::warning=added the Rust target {TARGET} by rustup: guests need it");
        return Ok(());
    }
    Err(format!(
        "the guests need the Rust target {TARGET}: rustup target add {TARGET}"
    ))
}

/// Runs a command without input, and returns whether it succeeded; an error if it cannot be
/// started.
fn succeeds(mut command: Command) -> Result<bool, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("starting {:?}: {error}", command.get_program()))?;
    Ok(output.status.success())
}

/// Builds these packages of a workspace, or all if none are named.
fn compile(
    workspace: &Path,
    target: &Path,
    profile: &str,
    packages: &[&str],
) -> Result<(), String> {
    let mut cargo = Command::new(var("CARGO")?);
    cargo
        .current_dir(workspace)
        .args(["build", "--locked", "--profile", profile])
        .args(["--target", TARGET, "--target-dir"])
        .arg(target);
    for package in packages {
        cargo.args(["--package", package]);
    }
    // Settings of the outer build must not reach the inner one: clippy wraps rustc, coverage sets
    // flags.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let foreign = text.starts_with("CARGO_FEATURE_")
            || text.starts_with("CARGO_CFG_")
            || text.starts_with("CARGO_PROFILE_")
            || text.ends_with("RUSTFLAGS")
            || text.starts_with("RUSTC")
            || text == "CARGO_BUILD_TARGET"
            || text == "CLIPPY_ARGS";
        if foreign {
            cargo.env_remove(&name);
        }
    }
    let output = cargo
        .output()
        .map_err(|error| format!("starting cargo: {error}"))?;
    if !output.status.success() {
        let _ = std::io::stderr().write_all(&output.stderr);
        return Err("building the guests failed".into());
    }
    Ok(())
}

/// Returns the members that the guests' manifest lists, one per line.
fn members(guests: &Path) -> Result<Vec<String>, String> {
    let manifest =
        fs::read_to_string(guests.join("Cargo.toml")).map_err(|error| error.to_string())?;
    let list = manifest
        .split_once("members = [")
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(list, _)| list)
        .ok_or("guests/Cargo.toml has no list of members")?;
    let names = list
        .split(',')
        .map(|name| name.trim().trim_matches('"').to_owned());
    Ok(names
        .filter(|name| !name.is_empty() && name != KIT)
        .collect())
}

fn path(file: &Path) -> Result<&str, String> {
    file.to_str()
        .ok_or_else(|| format!("not UTF-8: {}", file.display()))
}

fn var(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}"))
}
