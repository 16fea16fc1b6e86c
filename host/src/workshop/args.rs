//! The flags of a plugin's author, as they were typed. No I/O, no decisions.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use vmhost_toolchain::Language;

use super::source::SourceArgs;
use crate::address::DEV_KUBECONFIG;
use crate::cli::common::{CommonArgs, LogFormat, OutputFormat, QUIET};

/// The commands of a plugin's author.
#[derive(Debug, Subcommand)]
pub(crate) enum Workshop {
    /// Build a plugin, run it on an embedded API server with its manifests, rebuild and swap it whenever its source is saved.
    Dev(Box<DevArgs>),
    /// Write a new plugin that builds and runs as it is, in a language of your choice.
    New(NewArgs),
    /// Build a folder of source, in any language, into a component: `plugins/vm` makes `plugins/vm.wasm`.
    Build(BuildArgs),
    /// Run a plugin's cases, without a cluster: files that say what it is given, and what it has to return.
    Test(TestArgs),
    /// Write types for the objects of a CustomResourceDefinition, with a generator of the language.
    Types(TypesArgs),
    /// Show which languages' tools are there, and how to install those that are not.
    Doctor(DoctorArgs),
}

impl Workshop {
    /// How log lines look, and which there are.
    pub(crate) fn logging(&self) -> (LogFormat, &str) {
        match self {
            Self::Dev(args) => args.common.logging(),
            _ => QUIET,
        }
    }
}

/// `vmhost dev plugins/vm`.
#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// The plugin: a folder of source, or a component.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: PathBuf,
    /// What both ways of running have.
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Where /metrics and /debug/state are served; 0: nowhere. Without it: 127.0.0.1:8080, or a
    /// free port if that is taken. `vmhost status` finds it beside the kubeconfig.
    #[arg(long, value_name = "ADDRESS", env = "VMHOST_METRICS_BIND_ADDRESS")]
    pub(crate) metrics_bind_address: Option<String>,
    /// Where /healthz and /readyz are served; 0: nowhere.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "VMHOST_HEALTH_PROBE_BIND_ADDRESS",
        default_value = "0"
    )]
    pub(crate) health_probe_bind_address: String,
    /// Manifests to apply; none: the plugin's folder `manifests`. May be repeated.
    #[arg(
        long,
        value_name = "PATH",
        env = "VMHOST_MANIFESTS",
        value_delimiter = ','
    )]
    pub(crate) manifests: Vec<PathBuf>,
    /// Where the embedded API server listens: a loopback address; port 0 takes a free one.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "VMHOST_API_BIND_ADDRESS",
        default_value = "127.0.0.1:0"
    )]
    pub(crate) api_bind_address: String,
    /// Where the kubeconfig is written.
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
    /// Where the component is written; none: beside the folder, with `.wasm` added to its name.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// How the folder is built.
    #[command(flatten)]
    pub(crate) tools: SourceArgs,
    /// How the result is printed.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

/// `vmhost test plugins/vm`.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// A folder of source, which is built first, or a component.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: PathBuf,
    /// How a folder is built.
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Write what came out as what is expected, where that differs or is missing.
    #[arg(long)]
    pub(crate) update: bool,
    /// Only this case. May be repeated; none: all.
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Vec<String>,
    /// Where the cases are; none: the plugin's folder `cases`.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cases: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
    /// Where the result is written as JUnit's XML, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// How long one call may take.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub(crate) call_timeout: String,
    /// Memory of one instance.
    #[arg(long, value_name = "SIZE", default_value = "64Mi")]
    pub(crate) memory_limit: String,
}

/// `vmhost types manifests/crd.yaml`.
#[derive(Debug, Args)]
pub(crate) struct TypesArgs {
    /// A file with one CustomResourceDefinition.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The language: rust, ts, python, go; none: that of the plugin whose folder the file is in.
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) lang: Option<Language>,
    /// The version of the definition; none: the one that is stored.
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Option<String>,
    /// Where the types are written; none: printed.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// `vmhost new my-controller --lang go`.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// The new folder, and the plugin's name: lower-case letters, digits and `-`.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The language: rust, js, ts, python, go, c, cpp, zig.
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) lang: Language,
    /// The kind that it works on, in CamelCase.
    #[arg(long, value_name = "KIND", default_value = "Foo")]
    pub(crate) kind: String,
    /// The kind's group: a domain of yours.
    #[arg(long, value_name = "GROUP", default_value = "example.com")]
    pub(crate) group: String,
    /// The kind's version.
    #[arg(long, value_name = "VERSION", default_value = "v1")]
    pub(crate) api_version: String,
}

/// `vmhost doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// A plugin's folder: tools that are installed in it are found, too.
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Where `vmhost` and `vmhost dev` keep compiled components (their --cache).
    #[arg(long, value_name = "FOLDER", env = "VMHOST_CACHE")]
    pub(crate) cache: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}
