//! The flags about plugins that are objects of the cluster, as typed. This module must not know
//! what a flag does.

use std::path::PathBuf;

use clap::Args;

use super::registry::RegistryArgs;

/// Which `Plugin` objects a host runs, and how.
#[derive(Clone, Debug, Args)]
pub(crate) struct PluginsArgs {
    /// Run what the Plugin objects of the cluster name, or those of one namespace
    /// (--plugins-from-cluster=NS). Their definitions have to be installed.
    #[arg(
        long,
        value_name = "NAMESPACE",
        env = "VMHOST_PLUGINS_FROM_CLUSTER",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "*"
    )]
    pub(crate) plugins_from_cluster: Option<String>,
    /// The folder below which a Plugin's spec.path names files. Default: spec.path is refused.
    #[arg(long, value_name = "FOLDER", env = "VMHOST_PLUGIN_FOLDER")]
    pub(crate) plugin_folder: Option<PathBuf>,
    /// Run only Plugins whose signers a PluginPolicy names.
    #[arg(long, env = "VMHOST_REQUIRE_SIGNATURES", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) require_signatures: bool,
    /// The name of this host in a Plugin's status.hosts. Default: the machine's, which is a pod's
    /// name.
    #[arg(long, value_name = "NAME", env = "VMHOST_HOST_NAME")]
    pub(crate) host_name: Option<String>,
    /// The trusted root of the identities that PluginPolicies name as signers: a sigstore
    /// trusted_root.json.
    #[arg(long, value_name = "FILE", env = "VMHOST_TRUSTED_ROOT")]
    pub(crate) trusted_root: Option<PathBuf>,
    /// A namespace whose Plugins may read images with this host's own registry login if they name
    /// no pull secret; * for all. May be repeated. The host's own namespace, which is that of its
    /// Lease by default, is always among them.
    #[arg(
        long = "registry-login-namespace",
        value_name = "NAMESPACE",
        env = "VMHOST_REGISTRY_LOGIN_NAMESPACE",
        value_delimiter = ','
    )]
    pub(crate) registry_login_namespaces: Vec<String>,
    /// How registries are reached.
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}
