//! The flags of `vmhost preview`, as typed. This module must not know what a flag does.

use std::path::PathBuf;

use clap::Args;

use crate::cli::common::OutputFormat;
use crate::workshop::source::SourceArgs;

/// `vmhost preview plugins/vm --against vm.wasm`.
#[derive(Debug, Args)]
pub(crate) struct PreviewArgs {
    /// The version to preview: a component, or a folder of source, which is built first.
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,
    /// The version that runs now. Show only what the new one does differently.
    #[arg(long, value_name = "OLD")]
    pub(crate) against: Option<PathBuf>,
    /// The flags for building a folder.
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Run only objects with these labels, as kubectl selects them. The plugin still reads all.
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    pub(crate) selector: Option<String>,
    /// Watch only this namespace, as the host does. May be repeated. Default: all namespaces.
    #[arg(
        long = "namespace",
        short = 'n',
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub(crate) namespaces: Vec<String>,
    /// How many turns each object may have until nothing more changes.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) turns: u32,
    /// Also ask the API server for a dry run of the first write to each object, so that its
    /// admission, its CEL rules and its quotas count. Without this flag nothing but reads is sent.
    #[arg(long)]
    pub(crate) server_dry_run: bool,
    /// The output format.
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
    /// A setting that the plugin reads with `config.get`. May be repeated.
    #[arg(long = "setting", value_name = "PLUGIN.NAME=VALUE")]
    pub(crate) settings: Vec<String>,
    /// What is shown as `<redacted>`, besides the values of Secrets and settings: all fields of a
    /// kind, or one: `Database=spec.password`. May be repeated.
    #[arg(long, value_name = "KIND[=PATH]")]
    pub(crate) sensitive: Vec<String>,
    /// The time limit of one call.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub(crate) call_timeout: String,
    /// The memory limit of one instance.
    #[arg(long, value_name = "SIZE", default_value = "64Mi")]
    pub(crate) memory_limit: String,
    /// The folder for compiled components, as of the host. 0 disables the cache.
    #[arg(long, value_name = "FOLDER", env = "VMHOST_CACHE")]
    pub(crate) cache: Option<PathBuf>,
    /// A kubeconfig. Default: as for the host.
    #[arg(long, value_name = "FILE", env = "VMHOST_KUBECONFIG")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig. Default: its current context.
    #[arg(long, env = "VMHOST_CONTEXT")]
    pub(crate) context: Option<String>,
}
