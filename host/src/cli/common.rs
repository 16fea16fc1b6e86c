//! Flags that several commands have.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::workshop::source::SourceArgs;

/// How a command logs that runs no controller.
pub(crate) const QUIET: (LogFormat, &str) = (LogFormat::Text, "warn");

/// What both ways of running have.
#[derive(Clone, Debug, Args)]
pub(crate) struct CommonArgs {
    /// How a folder of source is built.
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Watch only this namespace. May be repeated; none: all.
    #[arg(
        long = "namespace",
        short = 'n',
        value_name = "NAME",
        env = "VMHOST_NAMESPACE",
        value_delimiter = ','
    )]
    pub(crate) namespaces: Vec<String>,
    /// How long a watch may bring neither an event nor a bookmark before its connection counts as
    /// dead: it is cut, and taken up where it was.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_WATCH_SILENCE",
        default_value = "150s"
    )]
    pub(crate) watch_silence: String,
    /// Keys that each controller works on at once; none: what the plugin's description says, else 4.
    #[arg(long, value_name = "N", env = "VMHOST_WORKERS", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) workers: Option<u32>,
    /// How long one call of a policy may take: 500ms, 10s, 1m.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_CALL_TIMEOUT",
        default_value = "10s"
    )]
    pub(crate) call_timeout: String,
    /// Memory of one instance of a policy: 64Mi, 1Gi, or bytes.
    #[arg(
        long,
        value_name = "SIZE",
        env = "VMHOST_MEMORY_LIMIT",
        default_value = "64Mi"
    )]
    pub(crate) memory_limit: String,
    /// Changes that each plugin may keep until its `map-changes` has mapped them: 64Mi, 1Gi, or
    /// bytes. Beyond it every key is looked at instead.
    #[arg(
        long,
        value_name = "SIZE",
        env = "VMHOST_MAP_BUFFER",
        default_value = "64Mi"
    )]
    pub(crate) map_buffer: String,
    /// Calls after which an instance is dropped; 1: a fresh one for each call.
    #[arg(long, value_name = "N", env = "VMHOST_INSTANCE_REUSE", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) instance_reuse: u32,
    /// A setting of a plugin, which it reads by `config.get`. May be repeated.
    #[arg(
        long = "setting",
        value_name = "PLUGIN.NAME=VALUE",
        env = "VMHOST_SETTING",
        value_delimiter = '\n'
    )]
    pub(crate) settings: Vec<String>,
    /// Normal Events that each plugin may write in a second, after a burst; 0: no limit. Warnings are not limited.
    #[arg(long, value_name = "N", env = "VMHOST_EVENT_QPS", default_value_t = 10)]
    pub(crate) event_qps: u32,
    /// Normal Events that each plugin may write at once; 0: no limit.
    #[arg(
        long,
        value_name = "N",
        env = "VMHOST_EVENT_BURST",
        default_value_t = 100
    )]
    pub(crate) event_burst: u32,
    /// Where compiled components are kept: a folder that only this user can write to; 0: nowhere. None: the user's cache folder.
    #[arg(long, value_name = "FOLDER", env = "VMHOST_CACHE")]
    pub(crate) cache: Option<PathBuf>,
    /// After how long without a call a plugin is unloaded, until it is called again: 5m, 1h; 0s: never.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_IDLE_UNLOAD",
        default_value = "5m"
    )]
    pub(crate) idle_unload: String,
    /// How log lines look.
    #[arg(
        long,
        value_name = "FORMAT",
        env = "VMHOST_LOG_FORMAT",
        default_value = "text"
    )]
    pub(crate) log_format: LogFormat,
    /// What is logged, as RUST_LOG: `info`, `debug`, `plugin=debug,info`.
    #[arg(
        long,
        value_name = "FILTER",
        env = "VMHOST_LOG",
        default_value = "info,kube_client=off"
    )]
    pub(crate) log: String,
    /// How long a new version of a plugin waits for the objects of kinds that it reads and the
    /// present one does not, before it counts as failed and is tried again.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_CACHE_SYNC_TIMEOUT",
        default_value = "30s"
    )]
    pub(crate) cache_sync_timeout: String,
    /// How long a shutdown waits for calls and writes in flight.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_SHUTDOWN_TIMEOUT",
        default_value = "30s"
    )]
    pub(crate) shutdown_timeout: String,
}

impl CommonArgs {
    /// How log lines look, and which there are.
    pub(crate) fn logging(&self) -> (LogFormat, &str) {
        (self.log_format, self.log.as_str())
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// How a command prints its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people.
    Text,
    /// For scripts.
    Json,
}
