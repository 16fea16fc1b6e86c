//! Measures the time from new bytes on disk to the new policy, with 20,000 keys under load:
//! `cargo bench -p vmhost-tests --bench swap`.
//!
//! The load enqueues every key again as soon as all had their turn, on two guest threads. A swap
//! writes another version of the component over the plugin's file and ends when the new generation
//! is announced. Call times are compared with those of as many turns without a swap.

#![allow(clippy::print_stdout, reason = "a benchmark's result")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::runtime::Handle;
use vmhost_engine::Compiler;
use vmhost_runtime::config::Config;
use vmhost_runtime::deploy::source::Source;
use vmhost_runtime::deploy::swap;
use vmhost_tests::bench;
use vmhost_tests::guests::{self, Way};
use vmhost_tests::in_process::InProcess;
use vmhost_tests::median::median;
use vmhost_tests::turns::Turns;

const MACHINES: usize = 20_000;
const SWAPS: usize = 30;

fn main() -> Result<ExitCode> {
    bench::run(swaps)
}

async fn swaps(guests: Handle) -> Result<()> {
    let server = InProcess::new(MACHINES, "complete", 512);
    let config = Config {
        compiler: Compiler::child(),
        reload: true,
        ..Config::inspecting()
    };
    let turns = std::sync::Arc::new(Turns::configured(server, guests, config).await?);
    let bytes = guests::read(guests::EXAMPLE_VM)?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("vm.wasm");
    std::fs::write(&file, &bytes)?;
    let slot = turns.slot();
    tokio::spawn(swap::follow(
        turns.manager().plugins.clone(),
        slot.clone(),
        Source::File(file.clone()),
    ));
    let load = tokio::spawn({
        let turns = turns.clone();
        async move {
            loop {
                turns.wake_all();
                turns.wait_quietly().await;
            }
        }
    });
    tokio::time::sleep(Duration::from_secs(3)).await;
    let quiet = turns
        .calls_since(&turns.calls(), Duration::from_secs(3))
        .await;
    println!(
        "calls without a swap: p50 {:.0?}, p99 {:.0?}",
        quiet.0, quiet.1
    );
    let mut took = Vec::new();
    for number in 0..SWAPS {
        let before = turns.calls();
        let last = slot.last_reload.load_full();
        let next = guests::with_comment(&bytes, &format!("swap {number}"));
        let start = Instant::now();
        guests::install(&file, &next, Way::Rename)?;
        let (live, about) = loop {
            let now = slot.last_reload.load_full();
            if now.as_ref().map(std::sync::Arc::as_ptr) != last.as_ref().map(std::sync::Arc::as_ptr)
            {
                break (start.elapsed(), now.context("no reload")?.about.clone());
            }
            tokio::time::sleep(Duration::from_micros(100)).await;
        };
        let (p50, p99) = turns.calls_since(&before, Duration::from_millis(500)).await;
        println!("{live:.1?} from rename to live; calls p50 {p50:.0?}, p99 {p99:.0?}; {about}");
        took.push(live);
    }
    let median = median(&mut took)?;
    if let [least, .., most] = took[..] {
        println!("{SWAPS} swaps: median {median:.1?}, {least:.1?} to {most:.1?}");
    }
    load.abort();
    Ok(())
}
