//! The format and the destination of log lines. They go to stderr, since stdout belongs to the
//! results of commands. This module must not know what is logged.

use std::io::IsTerminal;

use anyhow::{Context, Result};
use tracing_subscriber::EnvFilter;

mod line;
mod pretty;
pub(crate) mod reconcile;

pub use pretty::said;

/// The format of log lines.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// Text for people: short and aligned on a terminal, complete otherwise.
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging. Called once per process.
pub fn start(format: Format, filter: &str) -> Result<()> {
    let filter = EnvFilter::try_new(filter).with_context(|| {
        format!("--log {filter:?} is not a log filter such as info or plugin=debug,info")
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match format {
        Format::Text if std::io::stderr().is_terminal() => builder
            .with_ansi(std::env::var_os("NO_COLOR").is_none())
            .event_format(pretty::Pretty)
            .try_init(),
        Format::Text => builder.with_ansi(false).event_format(line::Text).try_init(),
        Format::Json => builder.event_format(line::Json).try_init(),
    }
    // Only tests already have a subscriber, and keep it.
    .ok();
    Ok(())
}
