//! What each further plugin costs: `cargo bench -p vmhost-tests --bench plugins`.
//!
//! Many plugins on one kind, each a component of its own: memory of the process when they are unloaded, and what they take in addition when they are called; how long
//! the first call of an unloaded one takes; and how many watches the server has.

#![allow(clippy::print_stdout, reason = "a benchmark's result")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::runtime::Builder;
use vmhost_core::ObjectName;
use vmhost_engine::Compiler;
use vmhost_queue::Queue;
use vmhost_runtime::config::Config;
use vmhost_runtime::deploy::idle::WARM;
use vmhost_runtime::deploy::loader::Loader;
use vmhost_runtime::deploy::slot::Slot;
use vmhost_runtime::manager::Manager;
use vmhost_runtime::observe::metrics::Metrics;
use vmhost_runtime::runtimes;
use vmhost_tests::guests;
use vmhost_tests::in_process::InProcess;
use vmhost_tests::median::median;

fn main() -> Result<ExitCode> {
    // Components are compiled by a child, as the host does: what a compiler leaves in its process is no plugin's.
    if let Some(exit) = vmhost_engine::as_child(std::env::args_os()) {
        return Ok(exit);
    }
    let guests = runtimes::guests(2)?;
    let here = Builder::new_current_thread().enable_all().build()?;
    here.block_on(async {
        let cache = tempfile::tempdir()?;
        let config = Config {
            cache: Some(cache.path().to_owned()),
            compiler: Compiler::child(),
            ..Config::inspecting()
        };
        let loader = Arc::new(Loader::new(config, guests.handle().clone())?);
        let server = InProcess::new(100, "complete", 512);
        let connection = server.connection();
        let manager = Manager::new(loader, connection, Metrics::new()?);
        let mut slots = Vec::new();
        // What as many bring as are there at once is not counted: their instances' memory serves those that come later.
        add(&manager, &mut slots, WARM).await?;
        rest(&slots);
        for count in [10, 100, 1000] {
            let unloaded = added(&manager, &mut slots, count).await?;
            println!("{count} further plugins: {unloaded:.0} KiB each, unloaded");
        }
        let mut first = Vec::new();
        for slot in slots.iter().rev().step_by(10) {
            first.push(call(slot).await?);
        }
        rest(&slots);
        let median = median(&mut first)?;
        println!(
            "first call of an unloaded one, from the queue to done: {median:.2?}, of {} nine in ten within {:.2?}",
            first.len(),
            first[first.len() * 9 / 10]
        );
        for count in [10, 100, 1000] {
            let warm = warmed(&slots[slots.len() - count..]).await?;
            println!("{count} plugins: {warm:.0} KiB more each, warm");
            rest(&slots);
        }
        println!("{} watches for {} plugins", server.watches(), slots.len());
        manager.shut_down().await;
        Ok(ExitCode::SUCCESS)
    })
}

/// KiB of each further plugin, unloaded. As in a host, no more than [`WARM`] are there at once.
async fn added(manager: &Arc<Manager>, slots: &mut Vec<Arc<Slot>>, count: usize) -> Result<f64> {
    let (before, end) = (rss()?, slots.len() + count);
    while slots.len() < end {
        let some = WARM.min(end - slots.len());
        add(manager, slots, some).await?;
        rest(slots);
    }
    Ok(each(before, rss()?, count))
}

/// KiB that each takes in addition, when all are called.
async fn warmed(slots: &[Arc<Slot>]) -> Result<f64> {
    let before = rss()?;
    for slot in slots {
        call(slot).await?;
    }
    Ok(each(before, rss()?, slots.len()))
}

fn each(before: usize, after: usize, count: usize) -> f64 {
    (after as f64 - before as f64) / 1024.0 / count as f64
}

async fn add(manager: &Arc<Manager>, slots: &mut Vec<Arc<Slot>>, count: usize) -> Result<()> {
    for _ in 0..count {
        let name = format!("p{}", slots.len());
        let text = format!(
            r#"{{"apiVersion":"vmhost/v1","name":"{name}","controllers":[{{"name":"{name}","primary":{{"group":"cloud.waibizi.com","version":"v1","kind":"VirtualMachine"}}}}]}}"#
        );
        let bytes = guests::describing(&text)?;
        let limit = manager.plugins.loader.config.limits.component;
        // As it is after a start with a cache: optimised, mapped from a file.
        let _best = manager
            .plugins
            .loader
            .engine
            .optimise(bytes.clone(), limit)
            .await?;
        let (plugin, _) = manager.plugins.loader.load(&bytes).await?;
        slots.push(manager.add(plugin).await?);
    }
    for slot in slots.iter().rev().take(count) {
        let generation = slot.current();
        for wired in generation.controllers.values() {
            wired.sources.synced().await;
            done(&wired.controller.queue).await;
        }
    }
    Ok(())
}

/// Until nothing is queued and nothing runs.
async fn done(queue: &Queue<ObjectName>) {
    while !queue.is_empty() || queue.stats().processing > 0 {
        tokio::task::yield_now().await;
    }
}

fn rest(slots: &[Arc<Slot>]) {
    for slot in slots {
        slot.current().plugin.rest(Instant::now());
    }
}

/// How long one turn takes, from the queue to done.
async fn call(slot: &Arc<Slot>) -> Result<Duration> {
    let generation = slot.current();
    let wired = generation.controllers.values().next();
    let wired = wired.context("no controller")?;
    let names = wired.sources.names();
    let start = Instant::now();
    wired.controller.queue.add(names[0].clone());
    done(&wired.controller.queue).await;
    Ok(start.elapsed())
}

/// Resident bytes of this process.
fn rss() -> Result<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line
        .and_then(|line| line.split_whitespace().next())
        .context("no VmRSS")?;
    Ok(kilobytes.parse::<usize>()? * 1024)
}
