//! How many turns a core does: `cargo bench -p vmhost-tests --bench turns`.
//!
//! Each turn is the whole path from the queue to `done` with the plugin `vm`: without a write (machines that are complete), and with one (the change of a
//! machine comes by the watch, is written, and comes back by the watch). The server is a function in this process and its work is counted with the turn's.

#![allow(clippy::print_stdout, reason = "a benchmark's result")]

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::runtime::{Builder, Runtime};
use vmhost_tests::in_process::InProcess;
use vmhost_tests::turns::Turns;

const MACHINES: usize = 20_000;
const ROUNDS: usize = 5;

fn main() -> Result<()> {
    let one = look(1)?;
    let two = look(2)?;
    println!(
        "two threads do {:.2} times what one does",
        one.as_secs_f64() / two.as_secs_f64()
    );
    make()
}

fn guests(threads: usize) -> Result<Runtime> {
    Ok(Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?)
}

/// Turns without a write.
fn look(threads: usize) -> Result<Duration> {
    let guests = guests(threads)?;
    let here = Builder::new_current_thread().enable_all().build()?;
    here.block_on(async {
        let server = InProcess::new(MACHINES, "complete", 512);
        let turns = Turns::start(server, guests.handle().clone()).await?;
        let mut best = Duration::MAX;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let names = turns.wake_all();
            turns.wait_quietly().await;
            best = best.min(start.elapsed() / names as u32);
        }
        let rate = 1.0 / best.as_secs_f64();
        println!("turn without a write, {threads} guest thread(s): {best:.2?}, {rate:.0}/s");
        turns.stop().await;
        Ok(best)
    })
}

/// Turns with a write, all on one thread.
fn make() -> Result<()> {
    let here = Builder::new_current_thread().enable_all().build()?;
    here.block_on(async {
        let server = InProcess::new(3000, "complete", 512);
        let turns = Turns::start(server, tokio::runtime::Handle::current()).await?;
        let mut best = Duration::MAX;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            turns.make_all().await;
            best = best.min(start.elapsed() / turns.len() as u32);
        }
        println!("turn with a write, all on one thread, server included: {best:.2?}");
        turns.stop().await;
        Ok(())
    })
}
