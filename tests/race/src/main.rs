//! A race: the same policy on client-go, controller-runtime, kube-rs and vmhost, and on a plain
//! HTTP client, in turn against one real kube-apiserver. `tests/race/README.md` says how to read
//! the output.
//!
//! ```text
//! args     what to run
//! make     builds every entrant, or says why it is skipped
//! entrant  the entrants, and how each is started
//! field    the API server and the objects: create, change, empty
//! follow   observes from outside when an object is complete
//! run      one process of an entrant, and what it costs
//! scenario the rounds; course: the steps of one process
//! tally    all values, their medians; table: the output
//! ```
//!
//! The runner knows entrants only as processes. It includes the server and its helpers from the
//! tests by path, because a dependency on that crate would compile wasmtime again.

mod args;
mod course;
mod entrant;
mod field;
mod follow;
mod machine;
mod make;
mod run;
mod scenario;
mod table;
mod tally;

macro_rules! harness {
    ($($name:ident = $path:literal),* $(,)?) => { $(
        #[path = $path]
        #[allow(dead_code, reason = "the tests use the rest")]
        mod $name;
    )* };
}

harness! {
    assets = "../../src/assets.rs",
    guard = "../../src/guard.rs",
    kubeconfig = "../../src/kubeconfig.rs",
    net = "../../src/net.rs",
    peers = "../../src/peers.rs",
    process = "../../src/process.rs",
    real = "../../src/real.rs",
    report = "../../src/report.rs",
    wait = "../../src/wait.rs",
}

use anyhow::{Context, Result};
use clap::Parser;

fn main() -> Result<()> {
    let args = args::Args::parse();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("making a runtime")?
        .block_on(scenario::race(&args))
}
