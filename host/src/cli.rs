//! The flags as the user typed them. No I/O, no decisions: [`vmhost_runtime::config`] makes sense of them.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use vmhost_cluster::CONFIGURATION_ORDER;

use crate::workshop::args::Workshop;
use crate::workshop::source::PLUGIN;

pub(crate) mod common;

use common::{CommonArgs, OutputFormat};

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
pub(crate) struct Cli {
    /// What to do; none: run plugins against a cluster.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Flags of the run.
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Those of a plugin's author.
    #[command(flatten)]
    Workshop(Workshop),
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
pub(crate) struct RunArgs {
    /// What runs.
    #[arg(
        long = "plugin",
        value_name = "PATH",
        env = "VMHOST_PLUGIN",
        value_delimiter = ',',
        required = true,
        help = PLUGIN
    )]
    pub(crate) plugins: Vec<PathBuf>,
    /// A kubeconfig.
    #[arg(long, value_name = "FILE", env = "VMHOST_KUBECONFIG", help = kubeconfig_help())]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; none: its current one.
    #[arg(long, env = "VMHOST_CONTEXT")]
    pub(crate) context: Option<String>,
    /// Fill the caches from a watch (client-go's WatchListClient) and not from lists in pages: spares etcd where the API server is older than 1.34.
    #[arg(long, env = "VMHOST_STREAMING_LISTS", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) streaming_lists: bool,
    /// What both ways of running have.
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Where /metrics and /debug/state are served; 0: nowhere.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "VMHOST_METRICS_BIND_ADDRESS",
        default_value = ":8080"
    )]
    pub(crate) metrics_bind_address: String,
    /// Where /healthz and /readyz are served; 0: nowhere.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "VMHOST_HEALTH_PROBE_BIND_ADDRESS",
        default_value = ":8081"
    )]
    pub(crate) health_probe_bind_address: String,
    /// Do not watch the plugins' files.
    #[arg(long, env = "VMHOST_NO_RELOAD", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) no_reload: bool,
    /// Let a swap ask for kinds and permissions that the plugin did not declare when it was first loaded.
    #[arg(long, env = "VMHOST_ALLOW_WIDER", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) allow_wider: bool,
    /// Let plugins install the CustomResourceDefinitions that they carry.
    #[arg(long, env = "VMHOST_INSTALL_CRDS", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) install_crds: bool,
    /// Which of several hosts works.
    #[command(flatten)]
    pub(crate) leader: LeaderArgs,
}

/// Leader election, with the flags of controller-runtime's managers.
#[derive(Clone, Debug, Args)]
pub(crate) struct LeaderArgs {
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
    pub(crate) leader_elect: bool,
    /// The Lease's name. Hosts with the same one in the same namespace are one group: give hosts with other plugins another.
    #[arg(
        long,
        value_name = "NAME",
        env = "VMHOST_LEADER_ELECTION_ID",
        default_value = "vmhost"
    )]
    pub(crate) leader_election_id: String,
    /// The Lease's namespace; none: the pod's, else the kubeconfig context's, else `default`.
    #[arg(long, value_name = "NAME", env = "VMHOST_LEADER_ELECTION_NAMESPACE")]
    pub(crate) leader_election_namespace: Option<String>,
    /// How long a standby waits after the leader's last sign of life.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_LEADER_ELECTION_LEASE_DURATION",
        default_value = "15s"
    )]
    pub(crate) leader_election_lease_duration: String,
    /// How long the leader goes on without a renewal.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_LEADER_ELECTION_RENEW_DEADLINE",
        default_value = "10s"
    )]
    pub(crate) leader_election_renew_deadline: String,
    /// The pause between two tries to take or renew the Lease.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_LEADER_ELECTION_RETRY_PERIOD",
        default_value = "2s"
    )]
    pub(crate) leader_election_retry_period: String,
}

/// `vmhost inspect plugins/vm.wasm`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A component.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How the result is printed.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

/// `vmhost status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Where the host serves its metrics (--metrics-bind-address). Without it: where a `vmhost dev`
    /// that wrote $KUBECONFIG or ./.vmhost/kubeconfig serves them, then 127.0.0.1:8080.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) address: Option<String>,
    /// How the result is printed.
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

/// `vmhost rbac plugins/vm.wasm`.
#[derive(Debug, Args)]
pub(crate) struct RbacArgs {
    /// A component.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Roles only: what none can grant is an error that names the field.
    #[arg(long, conflicts_with = "cluster_role")]
    pub(crate) role: bool,
    /// A ClusterRole for all that is not limited to namespaces. This is the default.
    #[arg(id = "cluster_role", long = "cluster-role")]
    pub(crate) _cluster_role: bool,
    /// Whom it is granted to: the service account that vmhost runs as.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "default/vmhost")]
    pub(crate) service_account: String,
    /// The namespaces that vmhost will be run with (--namespace): Roles in these. May be repeated; none: all.
    #[arg(
        long = "namespace",
        short = 'n',
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub(crate) namespaces: Vec<String>,
    /// vmhost will be run with --leader-elect.
    #[arg(long)]
    pub(crate) leader_elect: bool,
    /// The Lease's name, as it will be run with.
    #[arg(long, value_name = "NAME", default_value = "vmhost")]
    pub(crate) leader_election_id: String,
    /// The Lease's namespace, as it will be run with; none: the service account's.
    #[arg(long, value_name = "NAME")]
    pub(crate) leader_election_namespace: Option<String>,
    /// vmhost will be run with --install-crds.
    #[arg(long)]
    pub(crate) install_crds: bool,
    /// A kubeconfig of a cluster that knows the kinds' plurals; none: they are those of the plugin's own definitions, of Kubernetes, or guessed as Kubernetes does.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig, likewise.
    #[arg(long)]
    pub(crate) context: Option<String>,
}

/// `vmhost finalizers plugins/vm.wasm`.
#[derive(Debug, Args)]
pub(crate) struct FinalizersArgs {
    /// A component.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Take them off. Stop vmhost first, or it puts them on again. What they stand for is not cleaned up.
    #[arg(long)]
    pub(crate) remove: bool,
    /// Only in this namespace. May be repeated; none: all.
    #[arg(
        long = "namespace",
        short = 'n',
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub(crate) namespaces: Vec<String>,
    /// A kubeconfig.
    #[arg(long, value_name = "FILE", env = "VMHOST_KUBECONFIG", help = kubeconfig_help())]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; none: its current one.
    #[arg(long, env = "VMHOST_CONTEXT")]
    pub(crate) context: Option<String>,
}

fn kubeconfig_help() -> String {
    format!("A kubeconfig; without this flag and --context: {CONFIGURATION_ORDER}")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_help_and_the_page_tell_the_order_of_configurations() {
        let page = include_str!("../README.md").replace('`', "");
        let words: Vec<_> = page.split_whitespace().collect();
        assert!(words.join(" ").contains(CONFIGURATION_ORDER));
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
