//! The flags of `vmhost canary`, as typed. This module must not know what a flag does.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::common::OutputFormat;
use super::running::HostArgs;
use crate::workshop::source::SourceArgs;

/// What is done with a canary.
#[derive(Debug, Subcommand)]
pub(crate) enum CanaryCommand {
    /// Run a new version for a share of the objects. It is aborted by itself if it is worse than
    /// the live version.
    Start(StartArgs),
    /// Show the canary that runs, or the last one, and each object that its candidate wrote.
    Status(ReportArgs),
    /// Make the new version the live one.
    Promote(EndArgs),
    /// Take the new version's objects back.
    Abort(EndArgs),
}

/// `vmhost canary start vm new.wasm --weight 5`.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// The plugin, as `vmhost status` names it.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: String,
    /// The new version: a component, or a folder of source that is built first.
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,
    /// The share of the objects that it runs, in percent: 5, 0.5. Default: the first step.
    #[arg(long, value_name = "PERCENT", required_unless_present = "step")]
    pub(crate) weight: Option<String>,
    /// The shares that follow each other, in percent: 5,25,100. After the time of a step with 100,
    /// the new version is promoted.
    #[arg(long, value_name = "PERCENTS", requires = "every")]
    pub(crate) step: Option<String>,
    /// The time of each step: 10m.
    #[arg(long, value_name = "DURATION", requires = "step")]
    pub(crate) every: Option<String>,
    /// How a folder of source is built.
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Which host is given the order.
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// `vmhost canary status vm`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
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

/// `vmhost canary promote vm`, `vmhost canary abort vm`.
#[derive(Debug, Args)]
pub(crate) struct EndArgs {
    /// The plugin, as `vmhost status` names it.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: String,
    /// The output format.
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
    /// Which host is given the order.
    #[command(flatten)]
    pub(crate) host: HostArgs,
}
