//! The flags as the user typed them. This module does no I/O and makes no decisions;
//! [`crate::flags`] interprets the values.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::workshop::args::Workshop;
use crate::workshop::source::PLUGIN;

pub(crate) mod canary;
pub(crate) mod clusters;
pub(crate) mod common;
pub(crate) mod install;
pub(crate) mod plugins;
pub(crate) mod registry;
pub(crate) mod running;
pub(crate) mod shadow;
pub(crate) mod webhooks;

use canary::CanaryCommand;
use clusters::ClustersArgs;
use common::{CommonArgs, MetricsAccess, OutputFormat, kubeconfig_help};
use install::{InstallArgs, PackageArgs};
use plugins::PluginsArgs;
use registry::{PullArgs, PushArgs, RegistryArgs, SignArgs, VerifyArgs};
use running::{HistoryArgs, RollbackArgs, StatusArgs, TurnsArgs, WhyArgs};
use shadow::ShadowCommand;
use webhooks::{AuditArgs, WebhookArgs, WebhooksArgs};

/// Runs Kubernetes controllers whose logic is a WebAssembly component.
#[derive(Debug, Parser)]
#[command(
    name = "vmhost",
    version,
    about,
    after_help = "Environment: HTTPS_PROXY, HTTP_PROXY and NO_PROXY work as in kubectl; servers on loopback are reached without a proxy.",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct Cli {
    /// The command. `None` runs plugins against a cluster.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// The flags without a command.
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The commands of a plugin's author.
    #[command(flatten)]
    Workshop(Workshop),
    /// Show a component's size, digest, contract, imports, controllers, kinds and permissions.
    Inspect(InspectArgs),
    /// Push a component to an OCI registry, in the CNCF Wasm artifact format. Credentials are those
    /// of docker.
    Push(PushArgs),
    /// Pull a component from an OCI registry.
    Pull(PullArgs),
    /// Sign an artifact of an OCI registry with a private key. Keyless signing is cosign's.
    Sign(SignArgs),
    /// Verify the signatures of an artifact of an OCI registry, and show the trusted signers.
    Verify(VerifyArgs),
    /// Show the state of a running vmhost: plugins, clusters, controllers, webhooks, stores,
    /// failing keys.
    Status(StatusArgs),
    /// Show why a running vmhost reconciled an object: what woke each turn, what the policy saw,
    /// read and did, what the API server answered, and what comes next.
    Why(WhyArgs),
    /// List the turns that a running vmhost remembers.
    Turns(TurnsArgs),
    /// Let another version of a plugin follow the turns of the running one, and show what it would
    /// do differently. Nothing that it wants is done.
    #[command(subcommand)]
    Shadow(ShadowCommand),
    /// List the versions of a plugin that ran: when, and why they ended.
    History(HistoryArgs),
    /// Run an older version of a plugin again, at once, and refuse the present one until the
    /// plugin's file has other bytes.
    Rollback(RollbackArgs),
    /// Give a new version of a plugin a share of the objects first.
    #[command(subcommand)]
    Canary(CanaryCommand),
    /// Print exactly the RBAC that a plugin needs, as YAML for `kubectl apply -f -`.
    Rbac(RbacArgs),
    /// Print what registers a plugin's webhooks and conversions, and the rights that vmhost needs
    /// for them, as YAML for `kubectl apply --server-side`.
    Webhooks(WebhooksArgs),
    /// Ask a plugin's webhooks about all objects that exist, and report which they would refuse.
    /// The exit code is 0 for none, 1 for some, and 2 after an error.
    Audit(AuditArgs),
    /// List the objects that carry a plugin's finalizers; with --remove, remove these finalizers so
    /// that the objects can be deleted without the plugin.
    Finalizers(FinalizersArgs),
    /// Install vmhost in a cluster as its chart does with the default values; or print the objects,
    /// or check an installation.
    Install(InstallArgs),
    /// Write what a team with one plugin commits: a kustomization, the least rights, and a
    /// Deployment or a Plugin.
    Package(PackageArgs),
}

/// `vmhost --plugin plugins/vm.wasm`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The plugins to run.
    #[arg(
        long = "plugin",
        value_name = "PATH",
        env = "VMHOST_PLUGIN",
        value_delimiter = ',',
        required_unless_present = "plugins_from_cluster",
        help = PLUGIN
    )]
    pub(crate) plugins: Vec<PathBuf>,
    /// Plugins that are objects of the cluster.
    #[command(flatten)]
    pub(crate) from_cluster: PluginsArgs,
    /// A kubeconfig.
    #[arg(long, value_name = "FILE", env = "VMHOST_KUBECONFIG", help = kubeconfig_help())]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig. Default: its current context.
    #[arg(long, env = "VMHOST_CONTEXT")]
    pub(crate) context: Option<String>,
    /// Clusters besides this one.
    #[command(flatten)]
    pub(crate) clusters: ClustersArgs,
    /// Fill the stores from a streaming list (client-go's WatchListClient) instead of paged lists.
    /// This spares etcd if the API server is older than 1.34.
    #[arg(long, env = "VMHOST_STREAMING_LISTS", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) streaming_lists: bool,
    /// Flags that are shared with `vmhost dev`.
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// The address that serves /metrics. 0 disables it.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "VMHOST_METRICS_BIND_ADDRESS",
        default_value = ":8080"
    )]
    pub(crate) metrics_bind_address: String,
    /// The address that serves /healthz and /readyz. 0 disables it.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "VMHOST_HEALTH_PROBE_BIND_ADDRESS",
        default_value = ":8081"
    )]
    pub(crate) health_probe_bind_address: String,
    /// The address that serves the state and the turns to `vmhost status`, `why` and `turns`, and
    /// takes orders. Orders need a token, and with --metrics-access token reads do, too. 0 disables
    /// it.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "VMHOST_ADMIN_BIND_ADDRESS",
        default_value = "127.0.0.1:8082"
    )]
    pub(crate) admin_bind_address: String,
    /// Who may read /metrics and use the admin address: everyone who reaches them (`open`), or
    /// users of the cluster (`token`), whose token and right to the path the API server confirms.
    #[arg(
        long,
        value_name = "WHO",
        env = "VMHOST_METRICS_ACCESS",
        default_value = "open"
    )]
    pub(crate) metrics_access: MetricsAccess,
    /// Serve /metrics over TLS. Default: with --metrics-access token, unless the address is a
    /// loopback one, and with --metrics-cert-dir.
    #[arg(
        long,
        value_name = "BOOL",
        env = "VMHOST_METRICS_SECURE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = clap::builder::FalseyValueParser::new()
    )]
    pub(crate) metrics_secure: Option<bool>,
    /// The folder with the certificate of /metrics, tls.crt and tls.key, which are read again when
    /// they change. Default: a certificate that the host makes, and that clients cannot verify.
    #[arg(long, value_name = "FOLDER", env = "VMHOST_METRICS_CERT_DIR")]
    pub(crate) metrics_cert_dir: Option<PathBuf>,
    /// Do not watch plugin files for changes.
    #[arg(long, env = "VMHOST_NO_RELOAD", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) no_reload: bool,
    /// Allow a new version of a plugin to use kinds and permissions that the version at the start
    /// did not declare.
    #[arg(long, env = "VMHOST_ALLOW_WIDER", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) allow_wider: bool,
    /// Allow plugins to install the CustomResourceDefinitions that they carry.
    #[arg(long, env = "VMHOST_INSTALL_CRDS", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) install_crds: bool,
    /// Another version of a plugin that follows the turns of the running one from the start, as
    /// with `vmhost shadow start`. May be repeated.
    #[arg(
        long = "shadow",
        value_name = "PLUGIN=NEW",
        env = "VMHOST_SHADOW",
        value_delimiter = ','
    )]
    pub(crate) shadows: Vec<String>,
    /// Leader election.
    #[command(flatten)]
    pub(crate) leader: LeaderArgs,
    /// Webhooks.
    #[command(flatten)]
    pub(crate) webhooks: WebhookArgs,
}

/// Leader election, with the flags of controller-runtime's managers.
#[derive(Clone, Debug, Args)]
pub(crate) struct LeaderArgs {
    /// Elect a leader among several hosts: only the host that holds the Lease works, the others
    /// stand by.
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
    /// The name of the Lease. Hosts with the same name in the same namespace form one group; hosts
    /// with other plugins need another name.
    #[arg(
        long,
        value_name = "NAME",
        env = "VMHOST_LEADER_ELECTION_ID",
        default_value = "vmhost"
    )]
    pub(crate) leader_election_id: String,
    /// The namespace of the Lease. Default: the pod's, else that of the kubeconfig's context, else
    /// `default`.
    #[arg(long, value_name = "NAME", env = "VMHOST_LEADER_ELECTION_NAMESPACE")]
    pub(crate) leader_election_namespace: Option<String>,
    /// How long a standby waits after the leader's last renewal before it takes over.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_LEADER_ELECTION_LEASE_DURATION",
        default_value = "15s"
    )]
    pub(crate) leader_election_lease_duration: String,
    /// How long the leader keeps leading without a renewal.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_LEADER_ELECTION_RENEW_DEADLINE",
        default_value = "10s"
    )]
    pub(crate) leader_election_renew_deadline: String,
    /// The pause between two attempts to take or renew the Lease.
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
    /// The component: a file, or an artifact of a registry (oci://REGISTRY/REPOSITORY:TAG).
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How the registry is reached.
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
    /// The output format.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

/// `vmhost rbac plugins/vm.wasm`.
#[derive(Debug, Args)]
pub(crate) struct RbacArgs {
    /// The component.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print Roles only. A right that no Role can grant is an error that names the field.
    #[arg(long, conflicts_with = "cluster_role")]
    pub(crate) role: bool,
    /// Print a ClusterRole for all rights that are not limited to namespaces. This is the default.
    #[arg(id = "cluster_role", long = "cluster-role")]
    pub(crate) _cluster_role: bool,
    /// The service account that vmhost runs as, which gets the rights.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "default/vmhost")]
    pub(crate) service_account: String,
    /// A namespace that vmhost will watch (its --namespace): print Roles for it. May be repeated.
    /// Default: all namespaces.
    #[arg(
        long = "namespace",
        short = 'n',
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub(crate) namespaces: Vec<String>,
    /// Include the rights for --leader-elect.
    #[arg(long)]
    pub(crate) leader_elect: bool,
    /// The name of the Lease that vmhost will use.
    #[arg(long, value_name = "NAME", default_value = "vmhost")]
    pub(crate) leader_election_id: String,
    /// The namespace of the Lease that vmhost will use. Default: that of the service account.
    #[arg(long, value_name = "NAME")]
    pub(crate) leader_election_namespace: Option<String>,
    /// Include the rights for --install-crds.
    #[arg(long)]
    pub(crate) install_crds: bool,
    /// Include the rights for --register-webhooks.
    #[arg(long)]
    pub(crate) register_webhooks: bool,
    /// `token`: include the rights for a vmhost with --metrics-access token.
    #[arg(long, value_name = "WHO", default_value = "open")]
    pub(crate) metrics_access: MetricsAccess,
    /// Leave out the rights to the Secret with the certificate authority of webhooks, for a vmhost
    /// with --webhook-cert-dir.
    #[arg(long)]
    pub(crate) webhook_cert_dir: bool,
    /// Print the rules as values of the chart (an entry of `plugins`), instead of roles.
    #[arg(long)]
    pub(crate) values: bool,
    /// A kubeconfig of a cluster from which the plurals of kinds are read. Default: the plurals of
    /// the plugin's own definitions and of Kubernetes, else guessed as Kubernetes does.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of that kubeconfig.
    #[arg(long)]
    pub(crate) context: Option<String>,
}

/// `vmhost finalizers plugins/vm.wasm`.
#[derive(Debug, Args)]
pub(crate) struct FinalizersArgs {
    /// The component.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Remove the finalizers. Stop vmhost first, or it adds them again. The clean-up that they
    /// stand for is skipped.
    #[arg(long)]
    pub(crate) remove: bool,
    /// Only objects in this namespace. May be repeated. Default: all namespaces.
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
    /// The context of the kubeconfig. Default: its current context.
    #[arg(long, env = "VMHOST_CONTEXT")]
    pub(crate) context: Option<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use vmhost_cluster::CONFIGURATION_ORDER;

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
