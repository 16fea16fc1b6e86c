//! Where log lines go and how they look. Written to stderr: stdout belongs to the commands' results.

use anyhow::{Context, Result};
use tracing_subscriber::EnvFilter;

use crate::cli::LogFormat;

mod line;
mod reconcile;

pub use reconcile::Reconcile;

/// Sets the log up, once for the process.
pub fn start(format: LogFormat, filter: &str) -> Result<()> {
    let filter = EnvFilter::try_new(filter).with_context(|| {
        format!("--log {filter:?} is not a log filter such as info or plugin=debug,info")
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => {
            let colours = std::io::IsTerminal::is_terminal(&std::io::stderr())
                && std::env::var_os("NO_COLOR").is_none();
            builder
                .with_ansi(colours)
                .event_format(line::Text)
                .try_init()
        }
        LogFormat::Json => builder.event_format(line::Json).try_init(),
    }
    // Another subscriber is there already only in tests, which keep theirs.
    .ok();
    Ok(())
}
