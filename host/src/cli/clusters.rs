//! The flags about clusters besides the host's own, as typed. This module must not know what a flag
//! does.

use clap::Args;

/// Which clusters there are besides the host's own.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ClustersArgs {
    /// Where clusters are found that plugins work in besides this one: kubeconfig-contexts,
    /// secrets[:NAMESPACE], clusterprofiles[:NAMESPACE], field:KIND.VERSION.GROUP:PATH, or
    /// files:GLOB. May be repeated.
    #[arg(
        long,
        value_name = "SOURCE",
        env = "VMHOST_CLUSTERS",
        value_delimiter = '\n'
    )]
    pub(crate) clusters: Vec<String>,
    /// A field that kubeconfigs out of a cluster may use, although it reaches into this machine:
    /// exec, auth-provider, insecure-skip-tls-verify, proxy-url, certificate-authority,
    /// client-certificate, client-key, tokenFile. May be repeated.
    #[arg(
        long,
        value_name = "FIELD",
        env = "VMHOST_CLUSTERS_ALLOW",
        value_delimiter = ','
    )]
    pub(crate) clusters_allow: Vec<String>,
}
