//! Who runs, and how each is started: the same flags, the same kubeconfig, four keys at once.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::Name;

/// Everyone, in the order of a round.
pub const ALL: [Name; 7] = [
    Name::ClientGo,
    Name::ControllerRuntime,
    Name::KubeRs,
    Name::Vmhost,
    Name::VmhostWhole,
    Name::VmhostEvents,
    Name::Floor,
];

/// Keys at once, for all.
pub const WORKERS: &str = "4";

/// One that is built.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// Which.
    pub name: Name,
    /// The version of what it stands for.
    pub version: String,
    /// Its binary.
    pub program: PathBuf,
    /// vmhost only: the component, and where compiled images are kept.
    pub plugin: Option<(PathBuf, PathBuf)>,
}

impl Name {
    /// The head of its column.
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
    /// The command that starts it.
    pub fn command(&self, kubeconfig: &Path, namespace: &str) -> Command {
        let mut command = Command::new(&self.program);
        // What is set on the machine must not decide a race.
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
            // Nobody else serves any.
            command.args(["--metrics-bind-address=0", "--health-probe-bind-address=0"]);
        }
        command
    }

    /// Part of the line by which it says that its cache is filled and its workers start.
    pub fn synced(&self) -> &'static str {
        match self.plugin {
            Some(_) => "starting workers",
            None => "race: synced",
        }
    }
}
