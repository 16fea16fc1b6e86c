//! The two programs that work in the members, as processes with the same policy: vmhost with the
//! example `fleet`, and `tests/race/peers/multicluster-runtime`.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use vmhost_tests::guard::Guard;
use vmhost_tests::guests::EXAMPLE_FLEET;
use vmhost_tests::host::{self, Host, HostCommand};
use vmhost_tests::members::NAMESPACE;
use vmhost_tests::peers::{self, Peer};
use vmhost_tests::process::{self, Memory};
use vmhost_tests::report;
use vmhost_tests::wait::eventually;

const PEER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/race/peers/multicluster-runtime"
);
const LIBRARY: &str = "sigs.k8s.io/multicluster-runtime";

/// What the peer prints when it has read the Secrets.
const READY: &str = "peer: ready";

/// The number of keys that `fleet` works on at once in each member.
const WORKERS: usize = 10;

/// The machine's settings that must not influence a peer.
const FOREIGN: [&str; 4] = ["KUBE", "GOGC", "GOMEMLIMIT", "GOMAXPROCS"];

/// A program that is built.
pub enum Entrant {
    /// The host under test, with a folder for compiled components.
    Vmhost { cache: PathBuf },
    /// The Go program. Its keys of all members are in one queue, so it gets the workers of all.
    Go {
        peer: Peer,
        workers: usize,
        log: PathBuf,
    },
}

/// A running program, killed on drop.
pub enum Running {
    Vmhost(Box<Host>),
    Go { guard: Guard, log: PathBuf },
}

/// Returns a host in the members of these Secrets.
pub fn vmhost(home: &Path, cache: &Path) -> Result<HostCommand> {
    Ok(host::on(home)?
        .plugin(EXAMPLE_FLEET)
        .env("VMHOST_CACHE", cache)
        .args(["--clusters", &format!("secrets:{NAMESPACE}")]))
}

impl Entrant {
    /// Builds the Go program, for this many members, with its output in a folder.
    pub fn go(members: usize, folder: &Path) -> Result<Entrant> {
        Ok(Entrant::Go {
            peer: peers::go(Path::new(PEER), LIBRARY)?,
            workers: WORKERS * members,
            log: folder.join("multicluster-runtime.log"),
        })
    }

    /// Returns the title of its column.
    pub fn title(&self) -> String {
        match self {
            Entrant::Vmhost { .. } => "vmhost".to_owned(),
            Entrant::Go { peer, .. } => format!("multicluster-runtime {}", peer.version),
        }
    }

    /// Starts the program at home. It logs no single turn.
    pub fn spawn(&self, home: &Path) -> Result<Running> {
        match self {
            Entrant::Vmhost { cache } => {
                let command = vmhost(home, cache)?.args(["--log", "warn"]);
                Ok(Running::Vmhost(Box::new(command.spawn()?)))
            }
            Entrant::Go { peer, workers, log } => {
                let output = File::create(log).with_context(|| log.display().to_string())?;
                let mut command = Command::new(&peer.program);
                for (name, _) in env::vars_os() {
                    let text = name.to_string_lossy();
                    if FOREIGN.iter().any(|prefix| text.starts_with(prefix)) {
                        command.env_remove(&name);
                    }
                }
                command
                    .arg("--kubeconfig")
                    .arg(home)
                    .args(["--namespace", NAMESPACE])
                    .args(["--workers", &workers.to_string()])
                    .stdin(Stdio::null())
                    .stdout(output.try_clone().context("sharing a log")?)
                    .stderr(output);
                let guard = Guard::spawn(&mut command, None)?;
                let log = log.clone();
                Ok(Running::Go { guard, log })
            }
        }
    }
}

impl Running {
    /// Waits until the program has read the Secrets at home.
    pub async fn until_ready(&self) -> Result<()> {
        match self {
            Running::Vmhost(host) => host.until_ready().await,
            Running::Go { log, .. } => {
                let ready = eventually("the peer is ready", async || {
                    let text = fs::read_to_string(log)?;
                    Ok(text.contains(READY).then_some(()))
                });
                ready.await.with_context(|| {
                    let text = fs::read_to_string(log).unwrap_or_default();
                    report::tail(&text, 20)
                })
            }
        }
    }

    /// Returns the CPU seconds so far.
    pub fn cpu(&self) -> Result<f64> {
        process::cpu(self.id())
    }

    /// Returns the CPU seconds once the process is idle.
    pub async fn quiet(&self) -> Result<f64> {
        process::quiet(self.id()).await
    }

    /// Returns the current memory.
    pub fn memory(&self) -> Result<Memory> {
        process::memory(self.id(), None)
    }

    fn id(&self) -> u32 {
        match self {
            Running::Vmhost(host) => host.id(),
            Running::Go { guard, .. } => guard.id(),
        }
    }
}
