//! What each further plugin costs: `cargo bench -p vmhost-tests --bench plugins`.
//!
//! Many plugins on one kind, each a component of its own: memory of the process while all are warm, and when all are unloaded; how long the first call of an
//! unloaded one takes; and how many watches the server has.

#![allow(clippy::print_stdout, reason = "a benchmark's result")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::runtime::Builder;
use vmhost::config::Config;
use vmhost::manager::{Loader, Manager};
use vmhost::registry::Slot;
use vmhost::telemetry::Metrics;
use vmhost_cluster::Connection;
use vmhost_engine::Compiler;
use vmhost_tests::guests;
use vmhost_tests::in_process::InProcess;

fn main() -> Result<ExitCode> {
    // Components are compiled by a child, as the host does: what a compiler leaves in its process is no plugin's.
    if let Some(exit) = vmhost_engine::as_child(std::env::args_os()) {
        return Ok(exit);
    }
    let guests = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()?;
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
        let connection = Connection::from_client(server.client(), "in this process");
        let manager = Manager::new(loader, connection, Metrics::new()?);
        let mut slots = Vec::new();
        // What the first ones bring is not counted.
        add(&manager, &mut slots, 10).await?;
        for count in [10, 100, 1000] {
            let (loaded, unloaded) = cost(&manager, &mut slots, count).await?;
            println!("{count} further plugins: {loaded:.0} KiB each when warm, {unloaded:.0} KiB each when unloaded");
        }
        let slot = slots.last().context("no plugin")?;
        first_call(slot).await;
        println!("{} watches for {} plugins", server.watches(), slots.len());
        manager.shut_down().await;
        Ok(ExitCode::SUCCESS)
    })
}

/// RSS of each further plugin, warm and unloaded.
async fn cost(
    manager: &Arc<Manager>,
    slots: &mut Vec<Arc<Slot>>,
    count: usize,
) -> Result<(f64, f64)> {
    rest(slots);
    let before = rss()?;
    add(manager, slots, count).await?;
    let warm = rss()?;
    rest(slots);
    let unloaded = rss()?;
    let each = |after: usize| (after as f64 - before as f64) / 1024.0 / count as f64;
    Ok((each(warm), each(unloaded)))
}

async fn add(manager: &Arc<Manager>, slots: &mut Vec<Arc<Slot>>, count: usize) -> Result<()> {
    for _ in 0..count {
        let name = format!("p{}", slots.len());
        let text = format!(
            r#"{{"apiVersion":"vmhost/v1","name":"{name}","controllers":[{{"name":"{name}","primary":{{"group":"cloud.waibizi.com","version":"v1","kind":"VirtualMachine"}}}}]}}"#
        );
        let bytes = guests::describing(&text)?;
        let limit = manager.loader.config.limits.component;
        // As it is after a start with a cache: optimised, mapped from a file.
        let _best = manager.loader.engine.optimise(bytes.clone(), limit).await?;
        let (plugin, _) = manager.loader.load(&bytes).await?;
        slots.push(manager.add(plugin).await?);
    }
    let wired: Vec<_> = slots
        .iter()
        .flat_map(|slot| {
            slot.current()
                .controllers
                .values()
                .cloned()
                .collect::<Vec<_>>()
        })
        .collect();
    for wired in &wired {
        wired.sources.synced().await;
        let queue = &wired.controller.queue;
        while !queue.is_empty() || queue.stats().processing > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    Ok(())
}

fn rest(slots: &[Arc<Slot>]) {
    for slot in slots {
        slot.current().plugin.rest(Instant::now());
    }
}

async fn first_call(slot: &Arc<Slot>) {
    let generation = slot.current();
    let Some(wired) = generation.controllers.values().next() else {
        return;
    };
    let names = wired.sources.names();
    let start = Instant::now();
    wired.controller.queue.add(names[0].clone());
    let queue = &wired.controller.queue;
    while !queue.is_empty() || queue.stats().processing > 0 {
        tokio::task::yield_now().await;
    }
    println!(
        "first call of an unloaded one, from the queue to done: {:.2?}",
        start.elapsed()
    );
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
