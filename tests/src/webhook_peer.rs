//! The webhook of controller-runtime in `race/peers/controller-runtime/webhook`, with the rule of
//! `image-policy`: built, and run as a process.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::guard::Guard;
use crate::host::without_settings;
use crate::image_policy::REGISTRIES;
use crate::{peers, report};

/// Where it serves reviews.
pub const PATH: &str = "/validate-images";

const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/race/peers/controller-runtime");

/// A running webhook, killed on drop.
pub struct Peer {
    guard: Guard,
    log: PathBuf,
    // Dropped after the process, which runs from there.
    _dir: TempDir,
}

impl Peer {
    /// Builds it, and starts it on the cluster of a kubeconfig. The folder `certificates` has
    /// `tls.crt` and `tls.key`. An error says what is missing, such as Go.
    pub fn start(kubeconfig: &Path, serves: SocketAddr, certificates: &Path) -> Result<Peer> {
        let dir = tempfile::tempdir().context("making a folder")?;
        let program = dir.path().join("webhook");
        let mut build = Command::new("go");
        build
            .current_dir(MODULE)
            .args(["build", "-trimpath", "-buildvcs=false", "-o"])
            .arg(&program)
            .arg("./webhook");
        peers::run(&mut build)?;
        let log = dir.path().join("log");
        let file = File::create(&log).context("making a log")?;
        let mut command = Command::new(program);
        without_settings(&mut command);
        command
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg(format!("--port={}", serves.port()))
            .arg("--certificates")
            .arg(certificates)
            .arg(format!("--registries={REGISTRIES}"))
            .stdin(Stdio::null())
            .stdout(file.try_clone().context("opening a log")?)
            .stderr(file);
        Ok(Peer {
            guard: Guard::spawn(&mut command, None)?,
            log,
            _dir: dir,
        })
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.guard.id()
    }

    /// Returns the last lines of its output.
    pub fn output(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        report::tail(&text, 20)
    }
}
