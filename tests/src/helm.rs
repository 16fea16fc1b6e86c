//! helm, as a user runs it: from `HELM`, from `PATH`, or, where clients are required
//! (`VMHOST_REQUIRE_KUBECTL=1`), built from its Go module by `helm.sh`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow};

use crate::assets::{is_set, on_path, run_script};
use crate::conformance::folder;
use crate::run;

/// helm on a cluster, or on none.
pub struct Helm {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Helm {
    /// Returns helm on the cluster of a kubeconfig. `None` if there is no helm and none is
    /// required; the test is then reported as skipped.
    pub fn on(test: &str, kubeconfig: &Path) -> Result<Option<Helm>> {
        let found = Helm::found(kubeconfig)?;
        if found.is_none() {
            run::skip(test, "there is no helm in HELM or on PATH")?;
        }
        Ok(found)
    }

    /// Returns helm on the cluster of a kubeconfig. `None` if there is no helm and none is
    /// required.
    pub fn found(kubeconfig: &Path) -> Result<Option<Helm>> {
        let Some(program) = find()? else {
            return Ok(None);
        };
        Ok(Some(Helm {
            program,
            kubeconfig: kubeconfig.to_owned(),
        }))
    }

    /// Returns helm without a cluster.
    pub fn alone(test: &str) -> Result<Option<Helm>> {
        Helm::on(test, Path::new("/nonexistent"))
    }

    /// Returns the program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Runs helm, and returns its output or its errors.
    pub fn try_run(&self, arguments: &[&str]) -> Result<Result<String, String>> {
        let output = Command::new(&self.program)
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .output()
            .with_context(|| format!("starting {}", self.program.display()))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(text(&output.stderr)),
        })
    }

    /// Runs helm, which must succeed.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        let ran = self.try_run(arguments)?;
        ran.map_err(|errors| anyhow!("helm {arguments:?}: {errors}"))
    }
}

/// Returns the program. `None` if there is none and none is required.
pub fn find() -> Result<Option<PathBuf>> {
    let given = env::var_os("HELM").filter(|given| !given.is_empty());
    Ok(match given.map(PathBuf::from).or_else(|| on_path("helm")) {
        None if is_set("VMHOST_REQUIRE_KUBECTL") => Some(run_script("tests/helm.sh", &[], "helm")?),
        found => found,
    })
}

/// Returns the chart's folder.
pub fn chart() -> String {
    folder("host/package/chart").display().to_string()
}
