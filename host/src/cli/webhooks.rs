//! The flags of webhooks: how a host serves them, and the commands about them. This module must not
//! know what a flag does.

use std::path::PathBuf;

use clap::Args;

use super::common::{OutputFormat, kubeconfig_help};

/// How a host serves admission and conversion webhooks.
#[derive(Clone, Debug, Args)]
pub(crate) struct WebhookArgs {
    /// The address that serves the webhooks and conversions of plugins over HTTPS, such as :9443.
    /// Default: they are not served.
    #[arg(long, value_name = "ADDRESS", env = "VMHOST_WEBHOOK_BIND_ADDRESS")]
    pub(crate) webhook_bind_address: Option<String>,
    /// A folder with the certificate of webhooks, as cert-manager's Secret is mounted: tls.crt,
    /// tls.key, and ca.crt if vmhost is to patch caBundle. It is read again when it changes.
    /// Default: a certificate authority of vmhost's own, in the Secret vmhost-webhook-ca.
    #[arg(long, value_name = "FOLDER", env = "VMHOST_WEBHOOK_CERT_DIR")]
    pub(crate) webhook_cert_dir: Option<PathBuf>,
    /// The Service by which the API server reaches the webhooks. The default port is 443.
    #[arg(
        long,
        value_name = "NAMESPACE/NAME[:PORT]",
        env = "VMHOST_WEBHOOK_SERVICE",
        conflicts_with = "webhook_url"
    )]
    pub(crate) webhook_service: Option<String>,
    /// The address by which the API server reaches the webhooks, if not by a Service.
    #[arg(long, value_name = "URL", env = "VMHOST_WEBHOOK_URL")]
    pub(crate) webhook_url: Option<String>,
    /// Register the webhooks and conversions of plugins as soon as they can answer, and again after
    /// each swap.
    #[arg(long, env = "VMHOST_REGISTER_WEBHOOKS", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) register_webhooks: bool,
}

/// `vmhost webhooks plugins/policy.wasm`.
#[derive(Debug, Args)]
pub(crate) struct WebhooksArgs {
    /// The component.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The Service by which the API server will reach the webhooks. Default: the one with the name
    /// of the service account.
    #[arg(
        long,
        value_name = "NAMESPACE/NAME[:PORT]",
        conflicts_with = "webhook_url"
    )]
    pub(crate) webhook_service: Option<String>,
    /// The address by which the API server will reach the webhooks, if not by a Service.
    #[arg(long, value_name = "URL")]
    pub(crate) webhook_url: Option<String>,
    /// The service account that vmhost runs as, which may then patch caBundle and keep its
    /// certificate authority.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "default/vmhost")]
    pub(crate) service_account: String,
}

/// `vmhost audit plugins/policy.wasm`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// The component.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Only objects in this namespace, and cluster-scoped ones. May be repeated. Default: all
    /// namespaces.
    #[arg(
        long = "namespace",
        short = 'n',
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub(crate) namespaces: Vec<String>,
    /// A setting that the plugin reads with `config.get`. May be repeated.
    #[arg(long = "setting", value_name = "PLUGIN.NAME=VALUE")]
    pub(crate) settings: Vec<String>,
    /// The output format.
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
    /// A kubeconfig.
    #[arg(long, value_name = "FILE", env = "VMHOST_KUBECONFIG", help = kubeconfig_help())]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig. Default: its current context.
    #[arg(long, env = "VMHOST_CONTEXT")]
    pub(crate) context: Option<String>,
}
