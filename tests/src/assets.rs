//! Finds the real kube-apiserver and etcd, and runs the scripts of the tests that build programs.
//!
//! No package registry ships them. So this looks in `$KUBEBUILDER_ASSETS`, on `PATH` and in a cache
//! outside the checkout, and otherwise `kubernetes.sh` builds them there from Go modules (about six
//! minutes on two cores, once for each machine and version). Without Go, the caller gets the
//! reason, and skips visibly or, with `VMHOST_REQUIRE_KUBE_APISERVER=1`, fails.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The exit code of a script when Go, which would build the program, is not installed.
const NO_GO: i32 = 3;

/// The paths of both binaries.
#[derive(Clone, Debug)]
pub struct Assets {
    /// The store.
    pub etcd: PathBuf,
    /// The server.
    pub kube_apiserver: PathBuf,
}

/// Returns whether a missing kube-apiserver is a failure instead of a skip.
pub fn required() -> bool {
    is_set("VMHOST_REQUIRE_KUBE_APISERVER")
}

/// Returns whether a variable is set to something other than `0`.
pub(crate) fn is_set(variable: &str) -> bool {
    env::var(variable).is_ok_and(|value| !value.is_empty() && value != "0")
}

/// Finds or builds the binaries. The error says why there are none.
pub fn find() -> Result<Assets> {
    if let Some(dir) = env::var_os("KUBEBUILDER_ASSETS").filter(|dir| !dir.is_empty()) {
        // The folder was named explicitly: a fallback would hide a typing error.
        return in_folder(Path::new(&dir)).with_context(|| {
            format!(
                "KUBEBUILDER_ASSETS={} does not contain etcd and kube-apiserver",
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
    let built = || {
        Ok(Assets {
            etcd: built("kube-apiserver", "etcd")?,
            kube_apiserver: built("kube-apiserver", "kube-apiserver")?,
        })
    };
    built().map_err(|error: anyhow::Error| error.context("not in $KUBEBUILDER_ASSETS or on PATH"))
}

fn in_folder(dir: &Path) -> Option<Assets> {
    let assets = Assets {
        etcd: dir.join("etcd"),
        kube_apiserver: dir.join("kube-apiserver"),
    };
    (assets.etcd.is_file() && assets.kube_apiserver.is_file()).then_some(assets)
}

/// Returns the first file of this name in the folders of `PATH`.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// Returns a program of one of the Go modules beside `kubernetes.sh`, from the cache or newly
/// built. Announces a build on the terminal, because the test then seems to hang for minutes.
pub(crate) fn built(module: &str, name: &str) -> Result<PathBuf> {
    run_script("tests/kubernetes.sh", &[module, name], name)
}

/// Returns the program whose path a script of the tests prints, after it has built the program if
/// need be.
pub(crate) fn run_script(script: &str, arguments: &[&str], name: &str) -> Result<PathBuf> {
    let script = find_script(script)?;
    let output = Command::new(&script)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {}", script.display()))?;
    match output.status.code() {
        Some(0) => {}
        Some(NO_GO) => bail!("{name} is not in the cache, and Go is not installed to build it"),
        _ => bail!(
            "the build of {name} failed ({}); its messages are above",
            output.status
        ),
    }
    let path = String::from_utf8(output.stdout).context("reading the path of what was built")?;
    Ok(PathBuf::from(path.trim_end()))
}

/// Searches upwards, because the race includes this file in another package.
fn find_script(script: &str) -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join(script))
        .find(|file| file.is_file())
        .with_context(|| format!("{script}, which builds a program, does not exist"))
}
