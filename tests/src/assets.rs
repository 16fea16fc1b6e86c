//! Where the real kube-apiserver and etcd come from.
//!
//! No package registry ships them, so they are looked for in `$KUBEBUILDER_ASSETS`, on `PATH` and in
//! a cache outside the checkout, and otherwise built there from Go modules (about six minutes on two
//! cores, once for each machine and version). Without Go the reason is handed to the caller, who
//! skips visibly or, with `VMHOST_REQUIRE_KUBE_APISERVER=1`, fails.

use std::env;
use std::fs::{self, File};
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// The module that builds both; its `go.mod` is the one place that names the versions.
const GO_MOD: &str = include_str!("../kube-apiserver/go.mod");

/// Both binaries, present on disk.
#[derive(Clone, Debug)]
pub struct Assets {
    /// The store.
    pub etcd: PathBuf,
    /// The server.
    pub kube_apiserver: PathBuf,
}

/// True where a missing kube-apiserver must be a failure and not a skip.
pub fn required() -> bool {
    env::var("VMHOST_REQUIRE_KUBE_APISERVER").is_ok_and(|v| !v.is_empty() && v != "0")
}

/// Finds or builds the binaries. The error says why there are none.
pub fn find() -> Result<Assets> {
    if let Some(dir) = env::var_os("KUBEBUILDER_ASSETS").filter(|dir| !dir.is_empty()) {
        // Somebody named a folder on purpose: falling back would hide a typing error.
        return in_folder(Path::new(&dir)).with_context(|| {
            format!(
                "KUBEBUILDER_ASSETS={} holds no etcd and kube-apiserver",
                Path::new(&dir).display()
            )
        });
    }
    if let (Some(etcd), Some(kube_apiserver)) = (on_path("etcd"), on_path("kube-apiserver")) {
        return Ok(Assets {
            etcd,
            kube_apiserver,
        });
    }
    let version = kubernetes_version()?;
    let folder = cache_root()?.join("k8s").join(version);
    if let Some(assets) = in_folder(&folder) {
        return Ok(assets);
    }
    let Some(go) = on_path("go") else {
        bail!(
            "not in $KUBEBUILDER_ASSETS, on PATH or in {}, and there is no Go to build it with",
            folder.display()
        );
    };
    build(&go, &folder, version)?;
    in_folder(&folder).with_context(|| format!("nothing in {} after the build", folder.display()))
}

/// The version that `go.mod` requires, such as `v1.36.3`.
fn kubernetes_version() -> Result<&'static str> {
    GO_MOD
        .lines()
        .filter_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "))
        .find(|version| version.starts_with('v'))
        .context("go.mod requires no k8s.io/kubernetes")
}

fn cache_root() -> Result<PathBuf> {
    let base = match env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => {
            PathBuf::from(env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?)
                .join(".cache")
        }
    };
    Ok(base.join("vmhost"))
}

fn in_folder(dir: &Path) -> Option<Assets> {
    let assets = Assets {
        etcd: dir.join("etcd"),
        kube_apiserver: dir.join("kube-apiserver"),
    };
    (assets.etcd.is_file() && assets.kube_apiserver.is_file()).then_some(assets)
}

fn on_path(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// Builds what is missing. Several test processes may come here at once: one builds, the others
/// wait for the lock and then find the files.
fn build(go: &Path, folder: &Path, version: &str) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let lock = File::create(folder.join(".lock")).context("making the lock file of the build")?;
    lock.lock().context("waiting for the lock of the build")?;
    let module = go_module()?;
    let package = "k8s.io/component-base/version";
    let (major, minor) = major_minor(version)?;
    let flags = format!(
        "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    );
    for (name, ldflags) in [("etcd", "-s -w"), ("kube-apiserver", flags.as_str())] {
        let target = folder.join(name);
        if target.is_file() {
            continue;
        }
        // Straight to the terminal: a test that seems to hang for minutes must say why.
        let _ = writeln!(
            stderr(),
            "building {name} ({version}) into {}: minutes, once",
            folder.display()
        );
        let unfinished = folder.join(format!(".{name}.unfinished"));
        let status = Command::new(go)
            .current_dir(&module)
            .args([
                "build",
                "-trimpath",
                "-buildvcs=false",
                "-ldflags",
                ldflags,
                "-o",
            ])
            .arg(&unfinished)
            .arg(format!("./cmd/{name}"))
            .stdin(Stdio::null())
            .status()
            .with_context(|| format!("starting {}", go.display()))?;
        ensure!(
            status.success(),
            "go build of {name} failed ({status}); its messages are above"
        );
        // Only a whole binary gets the name that others look for.
        fs::rename(&unfinished, &target)
            .with_context(|| format!("putting {} in place", target.display()))?;
    }
    Ok(())
}

/// The folder of `GO_MOD`. Looked for upwards, since the race takes this file into a package of its own.
fn go_module() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("tests/kube-apiserver"))
        .find(|folder| folder.join("go.mod").is_file())
        .context("the sources of the kube-apiserver's build are gone")
}

fn major_minor(version: &str) -> Result<(&str, &str)> {
    let mut parts = version.trim_start_matches('v').split('.');
    match (parts.next(), parts.next()) {
        (Some(major), Some(minor)) => Ok((major, minor)),
        _ => bail!("not a version: {version}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_go_mod() {
        let version = kubernetes_version().unwrap();
        assert!(version.starts_with("v1."), "{version}");
        assert_eq!(major_minor(version).unwrap().0, "1");
    }
}
