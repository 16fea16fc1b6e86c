//! The command-line flags.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Runs the same policy on vmhost and on its rivals, in turn, and prints what each costs.
#[derive(Debug, Parser)]
#[command(name = "vmhost-race")]
pub struct Args {
    /// How often each entrant runs each scenario; the table shows medians.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// The entrants to run; all by default.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<Name>,
    /// The scenarios to run; all by default.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub scenario: Vec<Scenario>,
    /// A built vmhost; by default this checkout's binary of the profile `dist`.
    #[arg(long, value_name = "PATH")]
    pub vmhost: Option<PathBuf>,
    /// Run a twentieth of the objects and of the time: shows that everything works, but gives no
    /// useful figures.
    #[arg(long)]
    pub quick: bool,
    /// The file for every single value.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// An entrant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Name {
    /// The seed: client-go's dynamic informer.
    ClientGo,
    /// controller-runtime, typed.
    ControllerRuntime,
    /// kube's Controller, typed.
    KubeRs,
    /// vmhost, keeping only the fields that the policy wants.
    Vmhost,
    /// vmhost, keeping whole objects.
    VmhostWhole,
    /// vmhost with the shipped plugin, which also writes an Event for each object.
    VmhostEvents,
    /// kube's HTTP client alone.
    Floor,
}

/// The scenarios, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Scenario {
    /// Start without objects, then idle.
    Start,
    /// 3,000 objects of 512 bytes are created while it runs, then single ones.
    Drain,
    /// The same 3,000 objects exist before it starts.
    Backlog,
    /// 20,000 objects of 2 KiB are created while it runs.
    DrainLarge,
    /// Start with 20,000 objects of 2 KiB in place, one of them open.
    Restart,
    /// Hold these objects.
    Hold,
    /// List all of them again.
    Relist,
    /// 200 changes per second, for a minute, of 1,000 objects that are complete.
    Updates,
    /// 200 objects of 10 KiB, one after the other.
    #[value(name = "10k")]
    Of10k,
    /// 200 objects of 100 KiB, one after the other.
    #[value(name = "100k")]
    Of100k,
}

impl Args {
    /// Returns whether this entrant runs.
    pub fn runs(&self, name: Name) -> bool {
        self.only.is_empty() || self.only.contains(&name)
    }

    /// Returns whether this scenario runs.
    pub fn has(&self, scenario: Scenario) -> bool {
        self.scenario.is_empty() || self.scenario.contains(&scenario)
    }

    /// Returns a duration, shortened by `--quick`.
    pub fn seconds(&self, full: f64) -> std::time::Duration {
        std::time::Duration::from_secs_f64(if self.quick { full / 10.0 } else { full })
    }
}

impl Scenario {
    /// Returns the number of objects and their size in bytes.
    pub fn size(self, quick: bool) -> (usize, usize) {
        let (count, bytes) = match self {
            Scenario::Start => (0, 0),
            Scenario::Drain | Scenario::Backlog => (3_000, 512),
            Scenario::DrainLarge | Scenario::Restart | Scenario::Hold | Scenario::Relist => {
                (20_000, 2_048)
            }
            Scenario::Updates => (1_000, 2_048),
            Scenario::Of10k => (200, 10 * 1_024),
            Scenario::Of100k => (200, 100 * 1_024),
        };
        (if quick { count / 20 } else { count }, bytes)
    }

    /// Returns the scenario's title for the table.
    pub fn title(self, quick: bool) -> String {
        let (count, bytes) = self.size(quick);
        let bytes = match bytes {
            bytes if bytes >= 1_024 => format!("{} KiB", bytes / 1_024),
            bytes => format!("{bytes} B"),
        };
        match self {
            Scenario::Start => "start, no objects".into(),
            Scenario::Drain | Scenario::DrainLarge => format!("drain {count} x {bytes}"),
            Scenario::Backlog => format!("start on a backlog of {count} x {bytes}"),
            Scenario::Restart => format!("restart, {count} x {bytes} in place"),
            Scenario::Hold => format!("hold {count} x {bytes}"),
            Scenario::Relist => format!("relist {count} x {bytes}"),
            Scenario::Updates => format!("200 changes/s of {count} x {bytes}"),
            Scenario::Of10k | Scenario::Of100k => format!("{count} single objects of {bytes}"),
        }
    }
}
