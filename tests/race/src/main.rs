//! A race: the same policy on client-go, controller-runtime, kube-rs and vmhost, and on an HTTP client alone, in turn
//! against one real kube-apiserver. `tests/race/README.md` says how to read what it prints.
//!
//! ```text
//! args     what to run
//! make     builds every entrant, or says why it is skipped
//! entrant  who runs, and how each is started
//! field    the API server and the objects: create, change, empty
//! follow   sees from outside when an object is complete
//! run      one process of an entrant; proc: what it costs
//! scenario the rounds; course: what one process goes through
//! tally    all values, their medians; table: what is printed
//! ```
//!
//! It knows entrants as processes only. The server and its helpers are those of the tests, taken in by path: depending
//! on that crate would compile wasmtime once more.

mod args;
mod course;
mod entrant;
mod field;
mod follow;
mod machine;
mod make;
mod process;
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
