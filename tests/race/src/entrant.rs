//! The entrants, and how each is started: the same flags, the same kubeconfig, four workers.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::Name;

/// All entrants, in the order of a round.
pub const ALL: [Name; 7] = [
    Name::ClientGo,
    Name::ControllerRuntime,
    Name::KubeRs,
    Name::Vmhost,
    Name::VmhostWhole,
    Name::VmhostEvents,
    Name::Floor,
];

/// The number of workers of every entrant.
pub const WORKERS: &str = "4";

/// An entrant that is built.
#[derive(Clone, Debug)]
pub struct Entrant {
    pub name: Name,
    /// The version of the library or program that it represents.
    pub version: String,
    /// The path of its binary.
    pub program: PathBuf,
    /// For vmhost only: the component, and the folder of compiled images.
    pub plugin: Option<(PathBuf, PathBuf)>,
}

impl Name {
    /// Returns the title of its column.
    pub fn title(self) -> &'static str {
        match self {
            Name::ClientGo => "client-go",
            Name::ControllerRuntime => "controller-runtime",
            Name::KubeRs => "kube-rs",
            Name::Vmhost => "vmhost",
            Name::VmhostWhole => "vmhost, whole objects",
            Name::VmhostEvents => "vmhost, with Events",
            Name::Floor => "floor",
        }
    }
}

impl Entrant {
    /// Returns the command that starts it.
    pub fn command(&self, kubeconfig: &Path, namespace: &str) -> Command {
        let mut command = Command::new(&self.program);
        // The machine's settings must not influence a race.
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            let foreign = [
                "VMHOST_",
                "KUBE",
                "RUST_LOG",
                "GOGC",
                "GOMEMLIMIT",
                "GOMAXPROCS",
            ];
            if foreign.iter().any(|prefix| text.starts_with(prefix)) {
                command.env_remove(&name);
            }
        }
        command
            .env("KUBECONFIG", kubeconfig)
            .env("NO_COLOR", "1")
            .args(["--namespace", namespace, "--workers", WORKERS]);
        if !matches!(self.name, Name::KubeRs | Name::Floor) {
            command.arg("--kubeconfig").arg(kubeconfig);
        }
        if let Some((plugin, cache)) = &self.plugin {
            command.arg("--plugin").arg(plugin);
            command.arg("--cache").arg(cache);
            // The other entrants serve none of these.
            command.args([
                "--metrics-bind-address=0",
                "--health-probe-bind-address=0",
                "--admin-bind-address=0",
            ]);
        }
        command
    }

    /// Returns a part of the line in which it reports that its cache is filled and its workers
    /// start.
    pub fn synced(&self) -> &'static str {
        match self.plugin {
            Some(_) => "starting workers",
            None => "race: synced",
        }
    }
}
