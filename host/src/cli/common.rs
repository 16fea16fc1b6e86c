//! Flags that several commands share. This module must not know what a flag does.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use vmhost_cluster::CONFIGURATION_ORDER;

use crate::workshop::source::SourceArgs;

/// The log settings of commands that run no controller.
pub(crate) const QUIET: (LogFormat, &str) = (LogFormat::Text, "warn");

/// The help of --kubeconfig.
pub(crate) fn kubeconfig_help() -> String {
    format!("A kubeconfig; without this flag and --context: {CONFIGURATION_ORDER}")
}

/// Flags of `vmhost` and `vmhost dev`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CommonArgs {
    /// The flags for building a folder of source.
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Watch only this namespace. May be repeated. Default: all namespaces.
    #[arg(
        long = "namespace",
        short = 'n',
        value_name = "NAME",
        env = "VMHOST_NAMESPACE",
        value_delimiter = ','
    )]
    pub(crate) namespaces: Vec<String>,
    /// How long a watch may receive neither an event nor a bookmark before its connection counts as
    /// dead. It is then closed and resumed from the same position.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_WATCH_SILENCE",
        default_value = "150s"
    )]
    pub(crate) watch_silence: String,
    /// Keys that each controller processes at once. Default: the value in the plugin's description,
    /// else 4.
    #[arg(long, value_name = "N", env = "VMHOST_WORKERS", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) workers: Option<u32>,
    /// The time limit of one call of a plugin: 500ms, 10s, 1m.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_CALL_TIMEOUT",
        default_value = "10s"
    )]
    pub(crate) call_timeout: String,
    /// The memory limit of one instance of a plugin: 64Mi, 1Gi, or bytes.
    #[arg(
        long,
        value_name = "SIZE",
        env = "VMHOST_MEMORY_LIMIT",
        default_value = "64Mi"
    )]
    pub(crate) memory_limit: String,
    /// The size limit of a component: 64Mi, 8Mi, or bytes. Compiling a larger one takes longer and
    /// more memory, and whoever may create a Plugin brings one.
    #[arg(
        long,
        value_name = "SIZE",
        env = "VMHOST_COMPONENT_LIMIT",
        default_value = "64Mi"
    )]
    pub(crate) component_limit: String,
    /// The size of the buffer for changes that a plugin's `map-changes` has not mapped yet, in
    /// each cluster: 64Mi, 1Gi, or bytes. When it is full, every key is enqueued instead.
    #[arg(
        long,
        value_name = "SIZE",
        env = "VMHOST_MAP_BUFFER",
        default_value = "64Mi"
    )]
    pub(crate) map_buffer: String,
    /// The memory for records of turns, which `vmhost why` and `vmhost turns` show: 4Mi, 64Mi, or
    /// bytes. The oldest make way. 0 keeps none.
    #[arg(
        long,
        value_name = "SIZE",
        env = "VMHOST_RECORD_BYTES",
        default_value = "4Mi"
    )]
    pub(crate) record_bytes: String,
    /// Allow plugins to send HTTP requests to this host, *.DOMAIN or address, of those that their
    /// descriptions name; `none` allows no requests. May be repeated. Default: all that they name.
    /// A host with a private address needs this flag, too.
    #[arg(
        long,
        value_name = "HOST[:PORT]",
        env = "VMHOST_ALLOW_HTTP",
        value_delimiter = ','
    )]
    pub(crate) allow_http: Vec<String>,
    /// A PEM file with certificate authorities of services that plugins call, besides those of the
    /// machine. May be repeated.
    #[arg(
        long,
        value_name = "FILE",
        env = "VMHOST_HTTP_CA",
        value_delimiter = ','
    )]
    pub(crate) http_ca: Vec<PathBuf>,
    /// What records show as hashes, besides the values of Secrets and settings: all fields of a
    /// kind, or one: `Database=spec.password`. May be repeated.
    #[arg(
        long,
        value_name = "KIND[=PATH]",
        env = "VMHOST_SENSITIVE",
        value_delimiter = '\n'
    )]
    pub(crate) sensitive: Vec<String>,
    /// A file with the token that orders such as `vmhost rollback` must carry: one line of at least
    /// 16 characters. Default: a new token at each start, in a file that only this user can read.
    #[arg(long, value_name = "FILE", env = "VMHOST_ADMIN_TOKEN_FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,
    /// Calls after which an instance is dropped. 1 uses a fresh instance for each call.
    #[arg(long, value_name = "N", env = "VMHOST_INSTANCE_REUSE", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) instance_reuse: u32,
    /// A setting that a plugin reads with `config.get`. May be repeated.
    #[arg(
        long = "setting",
        value_name = "PLUGIN.NAME=VALUE",
        env = "VMHOST_SETTING",
        value_delimiter = '\n'
    )]
    pub(crate) settings: Vec<String>,
    /// Normal Events per second that each plugin may write after a burst, and Warnings besides. 0
    /// disables the limit.
    #[arg(long, value_name = "N", env = "VMHOST_EVENT_QPS", default_value_t = 10)]
    pub(crate) event_qps: u32,
    /// Normal Events that each plugin may write in a burst, and Warnings besides. 0 disables the
    /// limit.
    #[arg(
        long,
        value_name = "N",
        env = "VMHOST_EVENT_BURST",
        default_value_t = 100
    )]
    pub(crate) event_burst: u32,
    /// The folder for compiled components, which only this user may be able to write. 0 disables
    /// the cache. Default: the user's cache folder.
    #[arg(long, value_name = "FOLDER", env = "VMHOST_CACHE")]
    pub(crate) cache: Option<PathBuf>,
    /// The folder that keeps the versions of plugins that ran, for `vmhost rollback`, which only
    /// this user may be able to write. One vmhost at a time uses it. `off` keeps none. Default: in
    /// the user's cache folder; `vmhost dev` keeps them in memory.
    #[arg(long, value_name = "FOLDER", env = "VMHOST_HISTORY")]
    pub(crate) history: Option<PathBuf>,
    /// Roll a new version back by itself if all its calls fail within five minutes after its swap.
    #[arg(long, env = "VMHOST_AUTO_ROLLBACK", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) auto_rollback: bool,
    /// How long a plugin may go without a call before it is unloaded until the next call: 5m, 1h.
    /// 0s disables unloading.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_IDLE_UNLOAD",
        default_value = "5m"
    )]
    pub(crate) idle_unload: String,
    /// The format of log lines.
    #[arg(
        long,
        value_name = "FORMAT",
        env = "VMHOST_LOG_FORMAT",
        default_value = "text"
    )]
    pub(crate) log_format: LogFormat,
    /// The log filter, like RUST_LOG: `info`, `debug`, `plugin=debug,info`.
    #[arg(
        long,
        value_name = "FILTER",
        env = "VMHOST_LOG",
        default_value = "info,kube_client=off"
    )]
    pub(crate) log: String,
    /// How long a new version of a plugin waits for the first lists of kinds that only it reads,
    /// before the attempt fails and is retried.
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
    /// The log format and the log filter.
    pub(crate) fn logging(&self) -> (LogFormat, &str) {
        (self.log_format, self.log.as_str())
    }
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Who may read metrics and use the admin address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricsAccess {
    /// Everyone who reaches the addresses.
    Open,
    /// Users of the cluster who may use the path.
    Token,
}

/// The output format of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Text for people.
    Text,
    /// JSON for scripts.
    Json,
}
