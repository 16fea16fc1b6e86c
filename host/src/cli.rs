//! The flags as the user typed them. No I/O, no decisions: [`crate::config`] makes sense of them.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use vmhost_cluster::CONFIGURATION_ORDER;
use vmhost_toolchain::{Language, Network};

/// Where `vmhost dev` writes its kubeconfig unless it is told another place.
pub const DEV_KUBECONFIG: &str = ".vmhost/kubeconfig";

/// Runs Kubernetes controllers whose logic is a WebAssembly component.
#[derive(Debug, Parser)]
#[command(
    name = "vmhost",
    version,
    about,
    after_help = "Environment: HTTPS_PROXY, HTTP_PROXY and NO_PROXY mean what they mean to kubectl; a server on loopback is reached without a proxy.",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Cli {
    /// What to do; none: run plugins against a cluster.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Flags of the run.
    #[command(flatten)]
    pub run: RunArgs,
}

/// The commands of a plugin's author.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build a plugin, run it on an embedded API server with its manifests, rebuild and swap it whenever its source is saved.
    Dev(Box<DevArgs>),
    /// Write a new plugin that builds and runs as it is, in a language of your choice.
    New(NewArgs),
    /// Build a folder of source, in any language, into a component: `plugins/vm` makes `plugins/vm.wasm`.
    Build(BuildArgs),
    /// Run a plugin's cases, without a cluster: files that say what it is given, and what it has to return.
    Test(TestArgs),
    /// Write types for the objects of a CustomResourceDefinition, with a generator of the language.
    Types(TypesArgs),
    /// Show which languages' tools are there, and how to install those that are not.
    Doctor(DoctorArgs),
    /// Show a component's size, digest, contract, imports, controllers, kinds and permissions.
    Inspect(InspectArgs),
    /// Show what a running vmhost is doing: plugins, controllers, stores, failing keys.
    Status(StatusArgs),
    /// Print the RBAC that a plugin needs, and no more, as YAML for `kubectl apply -f -`.
    Rbac(RbacArgs),
    /// List the objects that carry a plugin's finalizers; with --remove take these off, so that nothing is stranded when the plugin goes.
    Finalizers(FinalizersArgs),
}

/// `vmhost --plugin plugins/vm.wasm`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A component, or a folder of source that is built first. May be repeated.
    #[arg(
        long = "plugin",
        value_name = "PATH",
        env = "VMHOST_PLUGIN",
        value_delimiter = ',',
        required = true
    )]
    pub plugins: Vec<PathBuf>,
    /// A kubeconfig.
    #[arg(long, value_name = "FILE", env = "VMHOST_KUBECONFIG", help = kubeconfig_help())]
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; none: its current one.
    #[arg(long, env = "VMHOST_CONTEXT")]
    pub context: Option<String>,
    /// Fill the caches from a watch (client-go's WatchListClient) and not from lists in pages: spares etcd where the API server is older than 1.34.
    #[arg(long, env = "VMHOST_STREAMING_LISTS", value_parser = clap::builder::FalseyValueParser::new())]
    pub streaming_lists: bool,
    /// What both ways of running have.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Where /metrics and /debug/state are served; 0: nowhere.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "VMHOST_METRICS_BIND_ADDRESS",
        default_value = ":8080"
    )]
    pub metrics_bind_address: String,
    /// Where /healthz and /readyz are served; 0: nowhere.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "VMHOST_HEALTH_PROBE_BIND_ADDRESS",
        default_value = ":8081"
    )]
    pub health_probe_bind_address: String,
    /// Do not watch the plugins' files.
    #[arg(long, env = "VMHOST_NO_RELOAD", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_reload: bool,
    /// Let a swap ask for kinds and permissions that the plugin did not declare when it was first loaded.
    #[arg(long, env = "VMHOST_ALLOW_WIDER", value_parser = clap::builder::FalseyValueParser::new())]
    pub allow_wider: bool,
    /// Let plugins install the CustomResourceDefinitions that they carry.
    #[arg(long, env = "VMHOST_INSTALL_CRDS", value_parser = clap::builder::FalseyValueParser::new())]
    pub install_crds: bool,
    /// Which of several hosts works.
    #[command(flatten)]
    pub leader: LeaderArgs,
}

/// Leader election, with the flags of controller-runtime's managers.
#[derive(Clone, Debug, Args)]
pub struct LeaderArgs {
    /// Work only while this host holds a Lease: of several hosts one works, the others stand by.
    #[arg(
        long,
        value_name = "BOOL",
        env = "VMHOST_LEADER_ELECT",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_parser = clap::builder::FalseyValueParser::new()
    )]
    pub leader_elect: bool,
    /// The Lease's name. Hosts with the same one in the same namespace are one group: give hosts with other plugins another.
    #[arg(
        long,
        value_name = "NAME",
        env = "VMHOST_LEADER_ELECTION_ID",
        default_value = "vmhost"
    )]
    pub leader_election_id: String,
    /// The Lease's namespace; none: the pod's, else the kubeconfig context's, else `default`.
    #[arg(long, value_name = "NAME", env = "VMHOST_LEADER_ELECTION_NAMESPACE")]
    pub leader_election_namespace: Option<String>,
    /// How long a standby waits after the leader's last sign of life.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_LEADER_ELECTION_LEASE_DURATION",
        default_value = "15s"
    )]
    pub leader_election_lease_duration: String,
    /// How long the leader goes on without a renewal.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_LEADER_ELECTION_RENEW_DEADLINE",
        default_value = "10s"
    )]
    pub leader_election_renew_deadline: String,
    /// The pause between two tries to take or renew the Lease.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_LEADER_ELECTION_RETRY_PERIOD",
        default_value = "2s"
    )]
    pub leader_election_retry_period: String,
}

/// `vmhost dev plugins/vm`.
#[derive(Debug, Args)]
pub struct DevArgs {
    /// The plugin: a folder of source, or a component.
    #[arg(value_name = "PLUGIN")]
    pub plugin: PathBuf,
    /// What both ways of running have.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Where /metrics and /debug/state are served; 0: nowhere. Without it: 127.0.0.1:8080, or a
    /// free port if that is taken. `vmhost status` finds it beside the kubeconfig.
    #[arg(long, value_name = "ADDRESS", env = "VMHOST_METRICS_BIND_ADDRESS")]
    pub metrics_bind_address: Option<String>,
    /// Where /healthz and /readyz are served; 0: nowhere.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "VMHOST_HEALTH_PROBE_BIND_ADDRESS",
        default_value = "0"
    )]
    pub health_probe_bind_address: String,
    /// Manifests to apply; none: the plugin's folder `manifests`. May be repeated.
    #[arg(
        long,
        value_name = "PATH",
        env = "VMHOST_MANIFESTS",
        value_delimiter = ','
    )]
    pub manifests: Vec<PathBuf>,
    /// Where the embedded API server listens: a loopback address; port 0 takes a free one.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "VMHOST_API_BIND_ADDRESS",
        default_value = "127.0.0.1:0"
    )]
    pub api_bind_address: String,
    /// Where the kubeconfig is written.
    #[arg(
        long,
        value_name = "FILE",
        env = "VMHOST_WRITE_KUBECONFIG",
        default_value = DEV_KUBECONFIG
    )]
    pub write_kubeconfig: PathBuf,
}

/// How a folder of source is built.
#[derive(Clone, Copy, Debug, Args)]
pub struct SourceArgs {
    /// Download nothing for a build: a dependency or Rust target that is missing is an error.
    #[arg(long, env = "VMHOST_OFFLINE", value_parser = clap::builder::FalseyValueParser::new())]
    offline: bool,
}

impl SourceArgs {
    /// Whether a build may download.
    pub fn network(self) -> Network {
        match self.offline {
            true => Network::Offline,
            false => Network::Allowed,
        }
    }
}

/// What both ways of running have.
#[derive(Clone, Debug, Args)]
pub struct CommonArgs {
    /// How a folder of source is built.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Watch only this namespace. May be repeated; none: all.
    #[arg(
        long = "namespace",
        short = 'n',
        value_name = "NAME",
        env = "VMHOST_NAMESPACE",
        value_delimiter = ','
    )]
    pub namespaces: Vec<String>,
    /// How long a watch may bring neither an event nor a bookmark before its connection counts as
    /// dead: it is cut, and taken up where it was.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_WATCH_SILENCE",
        default_value = "150s"
    )]
    pub watch_silence: String,
    /// Keys that each controller works on at once; none: what the plugin's description says, else 4.
    #[arg(long, value_name = "N", env = "VMHOST_WORKERS", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub workers: Option<u32>,
    /// How long one call of a policy may take: 500ms, 10s, 1m.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_CALL_TIMEOUT",
        default_value = "10s"
    )]
    pub call_timeout: String,
    /// Memory of one instance of a policy: 64Mi, 1Gi, or bytes.
    #[arg(
        long,
        value_name = "SIZE",
        env = "VMHOST_MEMORY_LIMIT",
        default_value = "64Mi"
    )]
    pub memory_limit: String,
    /// Changes that each plugin may keep until its `map-changes` has mapped them: 64Mi, 1Gi, or
    /// bytes. Beyond it every key is looked at instead.
    #[arg(
        long,
        value_name = "SIZE",
        env = "VMHOST_MAP_BUFFER",
        default_value = "64Mi"
    )]
    pub map_buffer: String,
    /// Calls after which an instance is dropped; 1: a fresh one for each call.
    #[arg(long, value_name = "N", env = "VMHOST_INSTANCE_REUSE", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub instance_reuse: u32,
    /// A setting of a plugin, which it reads by `config.get`. May be repeated.
    #[arg(
        long = "setting",
        value_name = "PLUGIN.NAME=VALUE",
        env = "VMHOST_SETTING",
        value_delimiter = '\n'
    )]
    pub settings: Vec<String>,
    /// Normal Events that each plugin may write in a second, after a burst; 0: no limit. Warnings are not limited.
    #[arg(long, value_name = "N", env = "VMHOST_EVENT_QPS", default_value_t = 10)]
    pub event_qps: u32,
    /// Normal Events that each plugin may write at once; 0: no limit.
    #[arg(
        long,
        value_name = "N",
        env = "VMHOST_EVENT_BURST",
        default_value_t = 100
    )]
    pub event_burst: u32,
    /// Where compiled components are kept: a folder that only this user can write to; 0: nowhere. None: the user's cache folder.
    #[arg(long, value_name = "FOLDER", env = "VMHOST_CACHE")]
    pub cache: Option<PathBuf>,
    /// After how long without a call a plugin is unloaded, until it is called again: 5m, 1h; 0s: never.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_IDLE_UNLOAD",
        default_value = "5m"
    )]
    pub idle_unload: String,
    /// How log lines look.
    #[arg(
        long,
        value_name = "FORMAT",
        env = "VMHOST_LOG_FORMAT",
        default_value = "text"
    )]
    pub log_format: LogFormat,
    /// What is logged, as RUST_LOG: `info`, `debug`, `plugin=debug,info`.
    #[arg(
        long,
        value_name = "FILTER",
        env = "VMHOST_LOG",
        default_value = "info,kube_client=off"
    )]
    pub log: String,
    /// How long a new version of a plugin waits for the objects of kinds that it reads and the
    /// present one does not, before it counts as failed and is tried again.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_CACHE_SYNC_TIMEOUT",
        default_value = "30s"
    )]
    pub cache_sync_timeout: String,
    /// How long a shutdown waits for calls and writes in flight.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_SHUTDOWN_TIMEOUT",
        default_value = "30s"
    )]
    pub shutdown_timeout: String,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// `vmhost build plugins/vm`.
#[derive(Debug, Args)]
pub struct BuildArgs {
    /// A folder of source, or a core module.
    #[arg(value_name = "FOLDER")]
    pub source: PathBuf,
    /// Where the component is written; none: beside the folder, with `.wasm` added to its name.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How the folder is built.
    #[command(flatten)]
    pub tools: SourceArgs,
    /// How the result is printed.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
}

/// `vmhost test plugins/vm`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// A folder of source, which is built first, or a component.
    #[arg(value_name = "PLUGIN")]
    pub plugin: PathBuf,
    /// How a folder is built.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Write what came out as what is expected, where that differs or is missing.
    #[arg(long)]
    pub update: bool,
    /// Only this case. May be repeated; none: all.
    #[arg(long, value_name = "NAME")]
    pub case: Vec<String>,
    /// Where the cases are; none: the plugin's folder `cases`.
    #[arg(long, value_name = "FOLDER")]
    pub cases: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
    /// Where the result is written as JUnit's XML, too.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// How long one call may take.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub call_timeout: String,
    /// Memory of one instance.
    #[arg(long, value_name = "SIZE", default_value = "64Mi")]
    pub memory_limit: String,
}

/// `vmhost types manifests/crd.yaml`.
#[derive(Debug, Args)]
pub struct TypesArgs {
    /// A file with one CustomResourceDefinition.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The language: rust, ts, python, go; none: that of the plugin whose folder the file is in.
    #[arg(long, value_name = "LANGUAGE")]
    pub lang: Option<Language>,
    /// The version of the definition; none: the one that is stored.
    #[arg(long, value_name = "VERSION")]
    pub version: Option<String>,
    /// Where the types are written; none: printed.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `vmhost new my-controller --lang go`.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// The new folder, and the plugin's name: lower-case letters, digits and `-`.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The language: rust, js, ts, python, go, c, cpp, zig.
    #[arg(long, value_name = "LANGUAGE")]
    pub lang: Language,
    /// The kind that it works on, in CamelCase.
    #[arg(long, value_name = "KIND", default_value = "Foo")]
    pub kind: String,
    /// The kind's group: a domain of yours.
    #[arg(long, value_name = "GROUP", default_value = "example.com")]
    pub group: String,
    /// The kind's version.
    #[arg(long, value_name = "VERSION", default_value = "v1")]
    pub api_version: String,
}

/// `vmhost doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// A plugin's folder: tools that are installed in it are found, too.
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub folder: PathBuf,
    /// Where `vmhost` and `vmhost dev` keep compiled components (their --cache).
    #[arg(long, value_name = "FOLDER", env = "VMHOST_CACHE")]
    pub cache: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
}

/// `vmhost inspect plugins/vm.wasm`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// A component.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How the result is printed.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
}

/// `vmhost status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Where the host serves its metrics (--metrics-bind-address). Without it: where a `vmhost dev`
    /// that wrote $KUBECONFIG or ./.vmhost/kubeconfig serves them, then 127.0.0.1:8080.
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// How the result is printed.
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
}

/// `vmhost rbac plugins/vm.wasm`.
#[derive(Debug, Args)]
pub struct RbacArgs {
    /// A component.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Roles only: what none can grant is an error that names the field.
    #[arg(long, conflicts_with = "cluster_role")]
    pub role: bool,
    /// A ClusterRole for all that is not limited to namespaces. This is the default.
    #[arg(long)]
    pub cluster_role: bool,
    /// Whom it is granted to: the service account that vmhost runs as.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "default/vmhost")]
    pub service_account: String,
    /// The namespaces that vmhost will be run with (--namespace): Roles in these. May be repeated; none: all.
    #[arg(
        long = "namespace",
        short = 'n',
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub namespaces: Vec<String>,
    /// vmhost will be run with --leader-elect.
    #[arg(long)]
    pub leader_elect: bool,
    /// The Lease's name, as it will be run with.
    #[arg(long, value_name = "NAME", default_value = "vmhost")]
    pub leader_election_id: String,
    /// The Lease's namespace, as it will be run with; none: the service account's.
    #[arg(long, value_name = "NAME")]
    pub leader_election_namespace: Option<String>,
    /// vmhost will be run with --install-crds.
    #[arg(long)]
    pub install_crds: bool,
    /// A kubeconfig of a cluster that knows the kinds' plurals; none: they are those of the plugin's own definitions, of Kubernetes, or guessed as Kubernetes does.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig, likewise.
    #[arg(long)]
    pub context: Option<String>,
}

/// `vmhost finalizers plugins/vm.wasm`.
#[derive(Debug, Args)]
pub struct FinalizersArgs {
    /// A component.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Take them off. Stop vmhost first, or it puts them on again. What they stand for is not cleaned up.
    #[arg(long)]
    pub remove: bool,
    /// Only in this namespace. May be repeated; none: all.
    #[arg(
        long = "namespace",
        short = 'n',
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub namespaces: Vec<String>,
    /// A kubeconfig.
    #[arg(long, value_name = "FILE", env = "VMHOST_KUBECONFIG", help = kubeconfig_help())]
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; none: its current one.
    #[arg(long, env = "VMHOST_CONTEXT")]
    pub context: Option<String>,
}

/// How a command prints its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    Text,
    /// For scripts.
    Json,
}

fn kubeconfig_help() -> String {
    format!("A kubeconfig; without this flag and --context: {CONFIGURATION_ORDER}")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_help_and_the_readme_tell_the_order_of_configurations() {
        let readme = include_str!("../../README.md").replace('`', "");
        assert!(readme.contains(CONFIGURATION_ORDER));
        let mut cli = Cli::command();
        let finalizers = cli.find_subcommand_mut("finalizers").unwrap();
        let helps = [finalizers.render_help(), cli.render_help()];
        for help in helps {
            let help = help.to_string();
            let words: Vec<_> = help.split_whitespace().collect();
            assert!(words.join(" ").contains(CONFIGURATION_ORDER), "{help}");
        }
    }
}
