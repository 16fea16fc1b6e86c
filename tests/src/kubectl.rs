//! The kubectl versions that tests run: more than one, because users have old versions, which print
//! and send other things.
//!
//! `KUBECTL` names them, separated by colons; the default is the one on `PATH`, if there is one.
//! With `VMHOST_REQUIRE_KUBECTL=1`, as in CI, `kubernetes.sh` provides them from its cache or
//! builds them: one of the real kube-apiserver's version and an old one.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::assets::{built, is_set, on_path};
use crate::run;

/// The modules that build kubectl: an old one and one of the real server's version.
const MODULES: [&str; 2] = ["kubectl-old", "kube-apiserver"];

/// Returns the installed program of each version. Empty if there is none and none is required.
///
/// # Errors
///
/// A program is not kubectl, or programs are required and do not have two versions.
pub fn all() -> Result<Vec<PathBuf>> {
    let required = is_set("VMHOST_REQUIRE_KUBECTL");
    let mut versions = BTreeMap::new();
    for program in candidates(required)? {
        versions.entry(version(&program)?).or_insert(program);
    }
    ensure!(
        !required || versions.len() >= 2,
        "VMHOST_REQUIRE_KUBECTL is set, but instead of two versions of kubectl there are {:?}",
        versions.keys()
    );
    Ok(versions.into_values().collect())
}

/// Reports on the terminal that a test is skipped because [`all`] finds no kubectl.
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

/// Returns the reported version, such as `v1.36.3`.
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
    version.with_context(|| format!("{} is not kubectl: {output:?}", program.display()))
}
