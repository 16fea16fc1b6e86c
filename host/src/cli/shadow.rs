//! The flags of `vmhost shadow`, as typed. This module must not know what a flag does.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::common::OutputFormat;
use super::running::HostArgs;
use crate::workshop::source::SourceArgs;

/// What is done with a shadow.
#[derive(Debug, Subcommand)]
pub(crate) enum ShadowCommand {
    /// Let another version of a plugin follow the turns of the running one. Nothing that it wants
    /// is done, and it asks the API server nothing.
    Start(StartArgs),
    /// Show what the shadow of a plugin does differently: kinds of differences with an example
    /// each.
    Status(ShownArgs),
    /// End the shadow of a plugin. Its results stay until the next one.
    Stop(StopArgs),
}

/// `vmhost shadow start vm new.wasm`.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// The plugin's name, as `vmhost status` shows it.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: String,
    /// The other version: a component, or a folder of source that is built first.
    #[arg(value_name = "NEW")]
    pub(crate) candidate: PathBuf,
    /// How long it runs: 10m, 1h. Default: until it is stopped.
    #[arg(long = "for", value_name = "DURATION")]
    pub(crate) lasts: Option<String>,
    /// The flags for building a folder of source.
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Which host is given the order.
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// `vmhost shadow status vm`.
#[derive(Debug, Args)]
pub(crate) struct ShownArgs {
    /// The plugin's name, as `vmhost status` shows it.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: String,
    /// The output format.
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
    /// Which host is asked.
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// `vmhost shadow stop vm`.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// The plugin's name, as `vmhost status` shows it.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: String,
    /// Which host is given the order.
    #[command(flatten)]
    pub(crate) host: HostArgs,
}
