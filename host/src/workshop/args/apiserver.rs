//! The flags of `vmhost apiserver` and `vmhost envtest`, as typed. This module must not know what a
//! flag does.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::address::DEV_KUBECONFIG;

/// `vmhost apiserver --port 6443`.
#[derive(Debug, Args)]
pub(crate) struct ApiserverArgs {
    /// The port on 127.0.0.1. 0 uses a free port.
    #[arg(
        long,
        value_name = "PORT",
        env = "VMHOST_API_PORT",
        default_value_t = 0
    )]
    pub(crate) port: u16,
    /// A file or a folder with objects that exist from the start, such as
    /// CustomResourceDefinitions. May be repeated.
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    pub(crate) crds: Vec<PathBuf>,
    /// The file to which the kubeconfig is written.
    #[arg(
        long,
        value_name = "FILE",
        env = "VMHOST_WRITE_KUBECONFIG",
        default_value = DEV_KUBECONFIG
    )]
    pub(crate) kubeconfig_out: PathBuf,
    /// Let roles decide what a user may do. The kubeconfig is an administrator's.
    #[arg(long)]
    pub(crate) rbac: bool,
    /// A folder that keeps the cluster. A write is in it before it is answered. Default: the
    /// cluster ends with the process.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,
    /// Run this command with KUBECONFIG set, and end with it and with its exit code.
    #[arg(long, requires = "command")]
    pub(crate) for_command: bool,
    /// The command of --for-command, after `--`.
    #[arg(last = true, value_name = "COMMAND", requires = "for_command")]
    pub(crate) command: Vec<OsString>,
}

/// `export KUBEBUILDER_ASSETS=$(vmhost envtest)`.
#[derive(Debug, Args)]
pub(crate) struct EnvtestArgs {
    /// The folder. Default: in the user's cache folder.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}
