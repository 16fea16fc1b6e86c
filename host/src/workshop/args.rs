//! The flags of a plugin's author, as typed. This module does no I/O and makes no decisions.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use vmhost_toolchain::Language;

pub(crate) mod apiserver;
pub(crate) mod recorded;

use self::apiserver::{ApiserverArgs, EnvtestArgs};
use self::recorded::{LimitArgs, RecordArgs, ReplayArgs};
use super::preview::args::PreviewArgs;
use super::source::SourceArgs;
use crate::address::DEV_KUBECONFIG;
use crate::cli::clusters::ClustersArgs;
use crate::cli::common::{CommonArgs, LogFormat, OutputFormat};
use crate::cli::running::HostArgs;

/// The commands of a plugin's author.
#[derive(Debug, Subcommand)]
pub(crate) enum Workshop {
    /// Build a plugin and run it on an embedded API server with its manifests; rebuild and swap it
    /// at each save.
    Dev(Box<DevArgs>),
    /// Run the embedded API server alone, for any Kubernetes client.
    Apiserver(ApiserverArgs),
    /// Write a folder that serves as KUBEBUILDER_ASSETS: `go test` of a kubebuilder project then
    /// runs on the embedded API server.
    Envtest(EnvtestArgs),
    /// Create a new plugin that builds and runs as it is, in a language of your choice.
    New(NewArgs),
    /// Build a folder of source, in any language, into a component: `plugins/vm` makes
    /// `plugins/vm.wasm`.
    Build(BuildArgs),
    /// Run a plugin's test cases without a cluster: files with the input and the expected result.
    Test(TestArgs),
    /// Show what a version of a plugin would do to the objects of a cluster, without changing them.
    /// The exit code is that of `kubectl diff`.
    Preview(Box<PreviewArgs>),
    /// Write turns of a running vmhost as test cases, with their clock and random numbers.
    Record(RecordArgs),
    /// Run another version of a plugin over recorded turns, and show what differs. Ends with 0 if
    /// nothing does, 1 if a turn differs, 2 if one could not be replayed.
    Replay(ReplayArgs),
    /// Generate types for the objects of a CustomResourceDefinition.
    Types(TypesArgs),
    /// Show which languages' tools are installed, and how to install the others.
    Doctor(DoctorArgs),
}

impl Workshop {
    /// The log format and the log filter.
    pub(crate) fn logging(&self) -> (LogFormat, &str) {
        match self {
            Self::Dev(args) => args.common.logging(),
            // The toolchain says what it installs, and which builds take long.
            _ => (LogFormat::Text, "warn,vmhost_toolchain=info"),
        }
    }

    /// Returns which running host the command asks; `None` if it asks none.
    pub(crate) fn host(&mut self) -> Option<&mut HostArgs> {
        match self {
            Self::Record(args) => Some(&mut args.host),
            _ => None,
        }
    }
}

/// `vmhost dev plugins/vm`.
#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// The plugin: a folder of source, or a component.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: PathBuf,
    /// Flags that are shared with `vmhost`.
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Clusters besides the embedded one.
    #[command(flatten)]
    pub(crate) clusters: ClustersArgs,
    /// The address that serves /metrics. 0 disables it. Default: 127.0.0.1:8080, or a free port if
    /// that is in use.
    #[arg(long, value_name = "ADDRESS", env = "VMHOST_METRICS_BIND_ADDRESS")]
    pub(crate) metrics_bind_address: Option<String>,
    /// The address that serves the state and the turns to `vmhost status`, `why` and `turns`. 0
    /// disables it. Default: 127.0.0.1:8082, or a free port if that is in use; these commands find
    /// the address beside the kubeconfig.
    #[arg(long, value_name = "ADDRESS", env = "VMHOST_ADMIN_BIND_ADDRESS")]
    pub(crate) admin_bind_address: Option<String>,
    /// The address that serves /healthz and /readyz. 0 disables it.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "VMHOST_HEALTH_PROBE_BIND_ADDRESS",
        default_value = "0"
    )]
    pub(crate) health_probe_bind_address: String,
    /// Manifests to apply. May be repeated. Default: the plugin's folder `manifests`.
    #[arg(
        long,
        value_name = "PATH",
        env = "VMHOST_MANIFESTS",
        value_delimiter = ','
    )]
    pub(crate) manifests: Vec<PathBuf>,
    /// The loopback address of the embedded API server. Port 0 uses a free port.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "VMHOST_API_BIND_ADDRESS",
        default_value = "127.0.0.1:0"
    )]
    pub(crate) api_bind_address: String,
    /// The file to which the kubeconfig is written.
    #[arg(
        long,
        value_name = "FILE",
        env = "VMHOST_WRITE_KUBECONFIG",
        default_value = DEV_KUBECONFIG
    )]
    pub(crate) write_kubeconfig: PathBuf,
}

/// `vmhost build plugins/vm`.
#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    /// A folder of source, or a core module.
    #[arg(value_name = "FOLDER")]
    pub(crate) source: PathBuf,
    /// The file to which the component is written. Default: beside the folder, with `.wasm` added
    /// to its name.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// The flags for building the folder.
    #[command(flatten)]
    pub(crate) tools: SourceArgs,
    /// The output format.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

/// `vmhost test plugins/vm`.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// A folder of source, which is built first, or a component.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: PathBuf,
    /// The flags for building a folder.
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Write the actual result as the expected one where they differ or none exists.
    #[arg(long)]
    pub(crate) update: bool,
    /// Run only this case. May be repeated. Default: all cases.
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Vec<String>,
    /// The folder of the cases. Default: the plugin's folder `cases`.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cases: Option<PathBuf>,
    /// The output format.
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
    /// A file to which the result is also written as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// The limits of a call.
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// `vmhost types manifests/crd.yaml`.
#[derive(Debug, Args)]
pub(crate) struct TypesArgs {
    /// A file with one CustomResourceDefinition.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The language: rust, ts, python, go. Default: that of the plugin whose folder contains the
    /// file.
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) lang: Option<Language>,
    /// The version of the definition. Default: the stored one.
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Option<String>,
    /// The file to which the types are written. Default: stdout.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// `vmhost new my-controller --lang go`.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// The name of the new folder and of the plugin: lower-case letters, digits and `-`.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The language: rust, js, ts, python, go, c, cpp, zig.
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) lang: Language,
    /// The kind that the plugin manages, in CamelCase.
    #[arg(long, value_name = "KIND", default_value = "Foo")]
    pub(crate) kind: String,
    /// The kind's API group: a domain of yours.
    #[arg(long, value_name = "GROUP", default_value = "example.com")]
    pub(crate) group: String,
    /// The kind's version.
    #[arg(long, value_name = "VERSION", default_value = "v1")]
    pub(crate) api_version: String,
    /// Make a policy that answers an admission webhook for the kind, and has no controller.
    #[arg(long)]
    pub(crate) webhook: bool,
}

/// `vmhost doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// A plugin's folder. Tools that are installed in it are found too.
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// The folder in which `vmhost` and `vmhost dev` keep compiled components (their --cache).
    #[arg(long, value_name = "FOLDER", env = "VMHOST_CACHE")]
    pub(crate) cache: Option<PathBuf>,
    /// The output format.
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}
