//! The flags of `vmhost record` and `vmhost replay`, as typed. This module must not know what a
//! flag does.

use std::path::PathBuf;

use clap::Args;

use crate::cli::common::OutputFormat;
use crate::cli::running::HostArgs;
use crate::workshop::source::SourceArgs;

/// `vmhost record --failed --out plugins/vm/cases`.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Which turns are recorded.
    #[command(flatten)]
    pub(crate) which: WhichArgs,
    /// Only this many of the newest of them.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) count: u32,
    /// The folder to which they are written, each as a case in a folder of its own. A case that is
    /// there already is left as it is.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// The plugin that ran, a component or its folder of source. Each case is replayed once, to
    /// tell whether it is exact. Default: the host gives the version that ran.
    #[arg(long, value_name = "PATH")]
    pub(crate) plugin: Option<PathBuf>,
    /// The flags for building a folder.
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// The limits of a call.
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// The output format.
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
    /// Which host is asked.
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// Which turns are recorded: those that are all of this.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct WhichArgs {
    /// Turns of this object: `virtualmachine/default/public-wx`. Without a namespace: a
    /// cluster-scoped object, else one in `default`.
    #[arg(long, value_name = "KIND/[NAMESPACE/]NAME")]
    pub(crate) key: Option<String>,
    /// Turns of this controller, as `vmhost status` names it.
    #[arg(long, value_name = "NAME")]
    pub(crate) controller: Option<String>,
    /// Turns that failed.
    #[arg(long)]
    pub(crate) failed: bool,
}

/// `vmhost replay plugins/vm --from plugins/vm/cases`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The version to try: a folder of source, which is built first, or a component.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: PathBuf,
    /// The flags for building a folder.
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// The folder of the cases that `vmhost record` wrote.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) from: PathBuf,
    /// Replay only this case. May be repeated. Default: all cases.
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Vec<String>,
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

/// The limits of a call.
#[derive(Clone, Debug, Args)]
pub(crate) struct LimitArgs {
    /// The time limit of one call.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub(crate) call_timeout: String,
    /// The memory limit of one instance.
    #[arg(long, value_name = "SIZE", default_value = "64Mi")]
    pub(crate) memory_limit: String,
}
