//! How a benchmark of the host's own code starts. Must not know what it measures.

use std::future::Future;
use std::process::ExitCode;

use anyhow::Result;
use tokio::runtime::{Builder, Handle};
use vmhost_runtime::runtimes;

/// Runs a benchmark on a thread of its own. It gets two threads for guests. A child process of it
/// compiles components, as in the host.
pub fn run<F: Future<Output = Result<()>>>(measure: impl FnOnce(Handle) -> F) -> Result<ExitCode> {
    if let Some(exit) = vmhost_engine::as_child(std::env::args_os()) {
        return Ok(exit);
    }
    let guests = runtimes::guests(2)?;
    let here = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    here.block_on(measure(guests.handle().clone()))?;
    Ok(ExitCode::SUCCESS)
}
