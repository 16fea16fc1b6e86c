//! The flags of commands that ask a running host or give it orders, as typed. This module must not
//! know what a flag does.

use std::path::PathBuf;

use clap::Args;

use super::common::OutputFormat;

/// Which host is asked or given an order, and with which token.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct HostArgs {
    /// The admin address of the host (its --admin-bind-address), with https:// in front if it
    /// speaks TLS. Default: the address of a `vmhost dev` that wrote $KUBECONFIG or
    /// ./.vmhost/kubeconfig, else 127.0.0.1:8082.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) address: Option<String>,
    /// A PEM file with the certificate authorities of a host that has --admin-cert-dir, for an
    /// --address that begins with https://. Default: those of the machine.
    #[arg(long, value_name = "FILE", env = "VMHOST_ADMIN_CA")]
    pub(crate) admin_ca: Option<PathBuf>,
    /// The Deployment of a host in the cluster, whose leader is asked through `kubectl
    /// port-forward`, unless --address is given. Default of `kubectl vmhost`: vmhost-system/vmhost.
    #[arg(long, value_name = "[NAMESPACE/]NAME", env = "VMHOST_DEPLOYMENT")]
    pub(crate) deployment: Option<String>,
    /// The context of the kubeconfig for --deployment.
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// A file with the host's token (its --admin-token-file), which it wants for orders, and with
    /// --metrics-access token for reads too. Default: the file that a host of this user on this
    /// machine wrote.
    #[arg(long, value_name = "FILE", env = "VMHOST_ADMIN_TOKEN_FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,
}

/// `vmhost status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Which host is asked.
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// The output format.
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

/// `vmhost history vm`.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// The plugin, as `vmhost status` names it.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: String,
    /// The output format.
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
    /// Which host is asked.
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// `vmhost rollback vm`.
#[derive(Debug, Args)]
pub(crate) struct RollbackArgs {
    /// The plugin, as `vmhost status` names it.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: String,
    /// The version to run, by its digest as `vmhost history` shows it, or the beginning of it.
    /// Default: the version before the running one.
    #[arg(long, value_name = "DIGEST")]
    pub(crate) to: Option<String>,
    /// Which host is given the order.
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// `vmhost why virtualmachine default/public-wx`.
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The kind, as kubectl takes it: plural, singular, short name or kind, alone or with `.group`.
    #[arg(value_name = "KIND")]
    pub(crate) kind: String,
    /// The object. Without a namespace: a cluster-scoped object, else one in `default`.
    #[arg(value_name = "[NAMESPACE/]NAME")]
    pub(crate) object: String,
    /// Go on with the turns that end from now on, until the host stops.
    #[arg(long, short = 'f')]
    pub(crate) follow: bool,
    /// Show instead what the plugin's shadow would have done, in the last turns in which that is
    /// something else.
    #[arg(long, conflicts_with = "follow")]
    pub(crate) shadow: bool,
    /// The output format. JSON is one document; with --follow, one turn a line.
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
    /// Which host is asked.
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// `vmhost turns`.
#[derive(Debug, Args)]
pub(crate) struct TurnsArgs {
    /// Only turns that failed.
    #[arg(long)]
    pub(crate) failed: bool,
    /// Only turns that took at least this long: 100ms, 1s.
    #[arg(long, value_name = "DURATION")]
    pub(crate) slow: Option<String>,
    /// Only turns of this controller, as `vmhost status` names it.
    #[arg(long, value_name = "NAME")]
    pub(crate) controller: Option<String>,
    /// Go on with the turns that end from now on, until the host stops.
    #[arg(long, short = 'f')]
    pub(crate) follow: bool,
    /// The output format. JSON is one document; with --follow, one turn a line.
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
    /// Which host is asked.
    #[command(flatten)]
    pub(crate) host: HostArgs,
}
