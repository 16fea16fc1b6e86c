//! Which kubectl tests run: more than one version, since users have old ones, and what they print
//! and send differs.
//!
//! `KUBECTL` names them, separated by colons; otherwise it is the one on `PATH`, if there is one.
//! With `VMHOST_REQUIRE_KUBECTL=1`, as in CI, they are those that `kubernetes.sh` has in its cache
//! or builds: one of the real kube-apiserver's version and an old one.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::assets::{built, is_set, on_path};
use crate::run;

/// What builds a kubectl: an old one and one of the real server's version.
const MODULES: [&str; 2] = ["kubectl-old", "kube-apiserver"];

/// The program of each version that is there. Empty where there is none and none is required.
///
/// # Errors
///
/// One of them is no kubectl, or they are required and not of two versions.
pub fn all() -> Result<Vec<PathBuf>> {
    let required = is_set("VMHOST_REQUIRE_KUBECTL");
    let mut versions = BTreeMap::new();
    for program in candidates(required)? {
        versions.entry(version(&program)?).or_insert(program);
    }
    ensure!(
        !required || versions.len() >= 2,
        "VMHOST_REQUIRE_KUBECTL is set, and of two versions of kubectl there are {:?}",
        versions.keys()
    );
    Ok(versions.into_values().collect())
}

/// Says on the terminal that a test is skipped because [`all`] finds none.
pub fn none(test: &str) -> Result<()> {
    run::skip(test, "there is no kubectl in KUBECTL or on PATH")
}

fn candidates(required: bool) -> Result<Vec<PathBuf>> {
    if let Some(list) = env::var_os("KUBECTL").filter(|list| !list.is_empty()) {
        return Ok(env::split_paths(&list).collect());
    }
    if required {
        return MODULES
            .iter()
            .map(|module| built(module, "kubectl"))
            .collect();
    }
    Ok(on_path("kubectl").into_iter().collect())
}

/// What it says about itself, such as `v1.36.3`.
fn version(program: &Path) -> Result<String> {
    let output = Command::new(program)
        .args(["version", "--client", "--output=json"])
        .output()
        .with_context(|| format!("starting {}", program.display()))?;
    let text = serde_json::from_slice::<Value>(&output.stdout);
    let version = text.ok().and_then(|text| {
        let version = text.pointer("/clientVersion/gitVersion")?;
        Some(version.as_str()?.to_owned())
    });
    version.with_context(|| format!("{} is no kubectl: {output:?}", program.display()))
}
