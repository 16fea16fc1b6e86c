//! The steps of one program in healthy members: start, engage, rest, load, restart. All is measured
//! from outside: a watch in each member, and `/proc`.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;
use tokio::time::sleep;
use vmhost_tests::median::quantile;
use vmhost_tests::member_load;
use vmhost_tests::members::{Member, Members};
use vmhost_tests::process::Memory;

use crate::entrant::{Entrant, Running};
use crate::settings::Settings;

/// A measure of one program.
pub struct Row {
    pub measure: &'static str,
    pub unit: &'static str,
    pub value: f64,
}

/// Runs a program through all steps. Names of objects begin with `prefix`.
pub async fn run(
    entrant: &Entrant,
    members: &Members,
    settings: &Settings,
    prefix: &str,
) -> Result<Vec<Row>> {
    let seed = format!("{prefix}-seed");
    members.empty().await?;
    members.create(&seed).await?;
    let running = entrant.spawn(&members.home.kubeconfig())?;
    running.until_ready().await?;
    let mut rows = engage(&running, members, settings, &seed).await?;
    rows.extend(work(&running, members, settings, prefix).await?);
    drop(running);
    rows.extend(restart(entrant, members, &seed).await?);
    Ok(rows)
}

/// Adds all members at once to a program that has none. Each has one object.
async fn engage(
    running: &Running,
    members: &Members,
    settings: &Settings,
    seed: &str,
) -> Result<Vec<Row>> {
    let cpu = running.quiet().await?;
    let without = rested(running, settings).await?;
    let start = Instant::now();
    for member in &members.all {
        members.add(&member.name, &member.kubeconfig()?).await?;
    }
    let engaged = members.until_marked(seed, 1).await? - start;
    let engaging = running.quiet().await? - cpu;
    let with = rested(running, settings).await?;
    let each = |with: f64, without: f64| (with - without) / members.all.len() as f64;
    let pss = |memory: Memory| memory.proportional.context("the kernel tells no PSS");
    let (with_pss, without_pss) = (pss(with)?, pss(without)?);
    Ok(vec![
        row("time to engage all members", "ms", millis(engaged)),
        row("CPU of that", "ms", engaging * 1e3),
        row("PSS without members", "MiB", without_pss),
        row("PSS with all members", "MiB", with_pss),
        row("PSS an idle member", "MiB", each(with_pss, without_pss)),
        row(
            "RSS an idle member",
            "MiB",
            each(with.resident, without.resident),
        ),
    ])
}

/// Puts a load on all members.
async fn work(
    running: &Running,
    members: &Members,
    settings: &Settings,
    prefix: &str,
) -> Result<Vec<Row>> {
    let before = running.quiet().await?;
    let all: Vec<&Member> = members.all.iter().collect();
    let until = sleep(settings.load);
    let mut load = member_load::steady(&all, prefix, settings.rate, until).await?;
    let cpu = running.quiet().await? - before;
    let idle = idle(running, settings.rest).await?;
    Ok(vec![
        row(
            "CPU an object",
            "us",
            cpu * 1e6 / load.created().max(1) as f64,
        ),
        row(
            "create to complete, p50",
            "ms",
            millis(quantile(&mut load.took, 0.5)?),
        ),
        row(
            "create to complete, p99",
            "ms",
            millis(quantile(&mut load.took, 0.99)?),
        ),
        row("objects lost", "", load.lost as f64),
        row("idle CPU", "% of a core", idle),
        row("peak RSS", "MiB", running.memory()?.peak),
    ])
}

/// Starts the program again, with all members in place and one object to mark in each.
async fn restart(entrant: &Entrant, members: &Members, seed: &str) -> Result<Vec<Row>> {
    for member in &members.all {
        member.change(seed, json!({ "cards": 2 })).await?;
    }
    let start = Instant::now();
    let running = entrant.spawn(&members.home.kubeconfig())?;
    let marked = members.until_marked(seed, 2).await? - start;
    let cpu = running.quiet().await?;
    Ok(vec![
        row("start with all members in place", "ms", millis(marked)),
        row("CPU of that start", "ms", cpu * 1e3),
    ])
}

/// Returns the memory of a program that has been idle for a while.
async fn rested(running: &Running, settings: &Settings) -> Result<Memory> {
    running.quiet().await?;
    sleep(settings.rest).await;
    running.memory()
}

/// Returns the used share of one core.
async fn idle(running: &Running, time: Duration) -> Result<f64> {
    let (before, start) = (running.cpu()?, Instant::now());
    sleep(time).await;
    Ok(100.0 * (running.cpu()? - before) / start.elapsed().as_secs_f64())
}

fn row(measure: &'static str, unit: &'static str, value: f64) -> Row {
    Row {
        measure,
        unit,
        value,
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
