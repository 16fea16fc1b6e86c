//! The flags of `vmhost install` and `vmhost package`, as typed. This module must not know what a
//! flag does.

use std::path::PathBuf;

use clap::Args;

use super::common::kubeconfig_help;
use crate::workshop::source::SourceArgs;

/// `vmhost install`.
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Print the objects as YAML for `kubectl apply --server-side`, and change nothing.
    #[arg(long)]
    pub(crate) print: bool,
    /// Install nothing, but wait until an installation works: all replicas of its Deployment are
    /// available, and one holds the Lease.
    #[arg(long, conflicts_with = "print")]
    pub(crate) check: bool,
    /// The namespace of vmhost. It is created, except by --check.
    #[arg(
        long,
        short = 'n',
        value_name = "NAME",
        default_value = "vmhost-system"
    )]
    pub(crate) namespace: String,
    /// The image. Default: the chart's.
    #[arg(long, value_name = "IMAGE", conflicts_with = "check")]
    pub(crate) image: Option<String>,
    /// How many replicas run, of which one works.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 2,
        conflicts_with = "check",
        value_parser = clap::value_parser!(u32).range(1..=100)
    )]
    pub(crate) replicas: u32,
    /// The Deployment that --check looks at; its Lease has the same name.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "vmhost",
        requires = "check"
    )]
    pub(crate) name: String,
    /// --check expects no Lease.
    #[arg(long, requires = "check")]
    pub(crate) without_election: bool,
    /// How long --check waits.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "2m",
        requires = "check"
    )]
    pub(crate) timeout: String,
    /// A kubeconfig.
    #[arg(long, value_name = "FILE", env = "VMHOST_KUBECONFIG", help = kubeconfig_help())]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig. Default: its current context.
    #[arg(long, env = "VMHOST_CONTEXT")]
    pub(crate) context: Option<String>,
}

/// `vmhost package plugins/vm`.
#[derive(Debug, Args)]
pub(crate) struct PackageArgs {
    /// The plugin: a component or a folder of source.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: PathBuf,
    /// The folder to write. Default: `deploy` in the plugin's folder, or beside the component.
    /// Files of other names in it stay.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// The namespace in which the plugin is deployed.
    #[arg(long, short = 'n', value_name = "NAME", default_value = "default")]
    pub(crate) namespace: String,
    /// The component's reference in a registry, where `vmhost push` put it: write a Plugin for a
    /// vmhost that is installed, instead of a Deployment with a vmhost of its own.
    #[arg(long, value_name = "REFERENCE")]
    pub(crate) oci: Option<String>,
    /// The service account of the vmhost that runs the Plugin, which reads for it.
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        default_value = "vmhost-system/vmhost",
        requires = "oci"
    )]
    pub(crate) host_account: String,
    /// The image of vmhost in the Deployment. Default: the chart's.
    #[arg(long, value_name = "IMAGE", conflicts_with = "oci")]
    pub(crate) image: Option<String>,
    /// The flags for building a folder of source.
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::Cli;

    #[test]
    fn the_flags_of_a_check_are_refused_without_it() {
        let parse = |flags: &[&str]| {
            Cli::try_parse_from(["vmhost", "install"].iter().chain(flags)).map(drop)
        };
        for flags in [
            &["--timeout", "1s"][..],
            &["--name", "x"],
            &["--without-election"],
        ] {
            let error = parse(flags).unwrap_err().to_string();
            assert!(error.contains("--check"), "{flags:?}: {error}");
            parse(&[&["--check"][..], flags].concat()).unwrap();
        }
        parse(&[]).unwrap();
    }
}
