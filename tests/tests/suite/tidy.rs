//! Checks of the tests' own sources: every guest must be used by a test, and every test must be
//! compiled.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Returns the entries of a folder of this package, sorted by name.
fn entries(folder: &str) -> Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut entries = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        entries.push(entry?.path());
    }
    entries.sort();
    Ok(entries)
}

/// Returns the name of a Rust file without its extension.
fn module(path: &Path) -> Option<&str> {
    path.extension()
        .filter(|extension| *extension == "rs")
        .and_then(|_| path.file_stem()?.to_str())
}

#[test]
fn every_test_is_part_of_the_one_program() -> Result<()> {
    let programs = entries("tests")?;
    ensure!(
        programs.iter().all(|path| path.ends_with("suite")),
        "a test program of its own is a link and two API servers more: move it into tests/suite, \
         or say here why its promise needs a process of its own: {programs:?}"
    );
    let main = include_str!("main.rs");
    for path in entries("tests/suite")? {
        let Some(name) = module(&path).filter(|name| *name != "main") else {
            continue;
        };
        ensure!(
            main.lines().any(|line| line == format!("mod {name};")),
            "{name}.rs has no line in tests/suite/main.rs, so that none of its tests runs"
        );
    }
    Ok(())
}

#[test]
fn every_guest_is_used() -> Result<()> {
    let mut sources = String::new();
    for path in [entries("src")?, entries("tests/suite")?].concat() {
        if module(&path).is_some() {
            sources += &fs::read_to_string(path)?;
        }
    }
    for path in entries("guests")? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !path.join("Cargo.toml").is_file() || name == "kit" {
            continue;
        }
        let constant = name.replace('-', "_").to_uppercase();
        ensure!(
            sources.contains(&constant),
            "no test uses guests/{name} ({constant})"
        );
    }
    Ok(())
}
