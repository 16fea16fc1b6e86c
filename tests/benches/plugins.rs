//! Measures the cost of each additional plugin: `cargo bench -p vmhost-tests --bench plugins`.
//!
//! Loads many plugins on one kind, each a component of its own. Prints the memory per plugin while
//! unloaded, the additional memory after a call, the time of the first call of an unloaded plugin,
//! and the number of watches on the server.

#![allow(clippy::print_stdout, reason = "a benchmark's result")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::runtime::Builder;
use vmhost_core::ObjectName;
use vmhost_engine::Compiler;
use vmhost_queue::{Queue, Tag};
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
use vmhost_tests::process;

fn main() -> Result<ExitCode> {
    // A child process compiles components, as in the host: memory that a compiler leaves behind
    // does not count for a plugin.
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
        // The first plugins are not counted: later plugins reuse the memory of their instances.
        add(&manager, &mut slots, WARM).await?;
        rest(&slots);
        for count in [10, 100, 1000] {
            let unloaded = added(&manager, &mut slots, count).await?;
            println!("{count} additional plugins: {unloaded:.0} KiB each, unloaded");
        }
        let mut first = Vec::new();
        for slot in slots.iter().rev().step_by(10) {
            first.push(call(slot).await?);
        }
        rest(&slots);
        let median = median(&mut first)?;
        println!(
            "first call of an unloaded plugin, from the queue to done: median {median:.2?}, of {} nine in ten within {:.2?}",
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

/// Returns the KiB of each additional unloaded plugin. As in a host, at most [`WARM`] plugins are
/// loaded at once.
async fn added(manager: &Arc<Manager>, slots: &mut Vec<Arc<Slot>>, count: usize) -> Result<f64> {
    let (before, end) = (resident()?, slots.len() + count);
    while slots.len() < end {
        let some = WARM.min(end - slots.len());
        add(manager, slots, some).await?;
        rest(slots);
    }
    Ok(each(before, resident()?, count))
}

/// Returns the KiB that each plugin takes in addition when all are called.
async fn warmed(slots: &[Arc<Slot>]) -> Result<f64> {
    let before = resident()?;
    for slot in slots {
        call(slot).await?;
    }
    Ok(each(before, resident()?, slots.len()))
}

/// Returns the KiB of each of so many plugins, from MiB before and after.
fn each(before: f64, after: f64, count: usize) -> f64 {
    (after - before) * 1024.0 / count as f64
}

/// Returns the resident memory of this process in MiB.
fn resident() -> Result<f64> {
    Ok(process::memory(std::process::id(), None)?.resident)
}

async fn add(manager: &Arc<Manager>, slots: &mut Vec<Arc<Slot>>, count: usize) -> Result<()> {
    for _ in 0..count {
        let name = format!("p{}", slots.len());
        let text = format!(
            r#"{{"apiVersion":"vmhost/v1","name":"{name}","controllers":[{{"name":"{name}","primary":{{"group":"cloud.waibizi.com","version":"v1","kind":"VirtualMachine"}}}}]}}"#
        );
        let bytes = guests::describing(&text)?;
        let limit = manager.plugins.loader.config.limits.component;
        // As after a start with a cache: optimised, mapped from a file.
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

/// Waits until nothing is queued and no worker is busy.
async fn done<T: Tag>(queue: &Queue<ObjectName, T>) {
    while !queue.is_empty() || queue.stats().processing > 0 {
        tokio::task::yield_now().await;
    }
}

fn rest(slots: &[Arc<Slot>]) {
    for slot in slots {
        slot.current().plugin.rest(Instant::now());
    }
}

/// Returns the time of one turn, from the queue to done.
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
