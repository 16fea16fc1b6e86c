//! Measures turns per second and core: `cargo bench -p vmhost-tests --bench turns`.
//!
//! Each turn is the whole path from the queue to `done` with the plugin `vm`: without a write
//! (machines that are complete), and with one (the watch brings a change of a machine, the turn
//! writes it, and the watch brings that back). The server is a function in this process, and its
//! work is included.

#![allow(clippy::print_stdout, reason = "a benchmark's result")]

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::runtime::Builder;
use vmhost_runtime::runtimes;
use vmhost_tests::in_process::InProcess;
use vmhost_tests::median::median;
use vmhost_tests::turns::Turns;

const MACHINES: usize = 20_000;
const ROUNDS: usize = 15;

fn main() -> Result<()> {
    look()?;
    grow()
}

/// Measures turns without a write: of a host with one thread, of a host with two threads, and of
/// two hosts with one thread each. The last pair shares nothing, and so shows the best result
/// possible with two threads on this machine. The three alternate, because a core's speed changes
/// from second to second.
fn look() -> Result<()> {
    let threads = [
        runtimes::guests(1)?,
        runtimes::guests(2)?,
        runtimes::guests(1)?,
    ];
    let here = Builder::new_current_thread().enable_all().build()?;
    here.block_on(async {
        let mut hosts = Vec::new();
        for threads in &threads {
            let server = InProcess::new(MACHINES, "complete", 512);
            hosts.push(Turns::start(server, threads.handle().clone()).await?);
        }
        let [one, two, other] = &hosts[..] else {
            unreachable!("as many hosts as runtimes");
        };
        let ways = [
            ("one thread", vec![one]),
            ("two threads", vec![two]),
            ("two hosts that share nothing", vec![one, other]),
        ];
        let mut took = vec![Vec::new(); ways.len()];
        for _ in 0..ROUNDS {
            for ((_, hosts), took) in ways.iter().zip(&mut took) {
                took.push(round(hosts).await);
            }
        }
        let one = median(&mut took[0])?;
        for ((way, _), took) in ways.iter().zip(&mut took) {
            // Sorted by `median`.
            let (median, best) = (median(took)?, took[0]);
            let times = one.as_secs_f64() / median.as_secs_f64();
            println!("turn without a write, {way}: median {median:.2?}, best {best:.2?}; {times:.2} times one thread");
        }
        for host in hosts {
            host.stop().await;
        }
        Ok(())
    })
}

/// Runs all keys of these hosts once, and returns the time of one turn.
async fn round(hosts: &[&Turns]) -> Duration {
    let start = Instant::now();
    let names: usize = hosts.iter().map(|host| host.wake_all()).sum();
    for host in hosts {
        host.wait_quietly().await;
    }
    start.elapsed() / names as u32
}

/// Measures turns of few machines and of many, all on one thread: the cost per object should not
/// depend on their number.
fn grow() -> Result<()> {
    let here = Builder::new_current_thread().enable_all().build()?;
    for machines in [1_000, MACHINES, 100_000] {
        here.block_on(async {
            let server = InProcess::new(machines, "complete", 512);
            let turns = Turns::start(server, tokio::runtime::Handle::current()).await?;
            let (mut looks, mut makes) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS / 3 {
                let start = Instant::now();
                turns.look_at_all().await;
                looks.push(start.elapsed() / machines as u32);
                let start = Instant::now();
                turns.make_all().await;
                makes.push(start.elapsed() / machines as u32);
            }
            let (look, make) = (median(&mut looks)?, median(&mut makes)?);
            println!("{machines} machines: a turn without a write {look:.2?}, with one, server included, {make:.2?}");
            turns.stop().await;
            anyhow::Ok(())
        })?;
    }
    Ok(())
}
