//! Measures `vmhost preview` over 20,000 objects of 2 KiB, when no object changes:
//! `cargo bench -p vmhost-tests --bench preview`.
//!
//! Prints the time from the start of the process to its end, with the compilation of the component,
//! and the process's peak memory. The server is the embedded one, in another process.

#![allow(clippy::print_stdout, reason = "a benchmark's result")]

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::json;
use vmhost_tests::guests::EXAMPLE_VM;
use vmhost_tests::server::{Target, TestServer, Unavailable};
use vmhost_tests::vm::Vms;
use vmhost_tests::{host, real, run};

const OBJECTS: usize = 20_000;
const SIZE: usize = 2048;
const ROUNDS: usize = 3;
/// How many objects are created at once.
const CREATING: usize = 32;
/// How often the memory is read.
const PAUSE: Duration = Duration::from_millis(5);

fn main() -> Result<()> {
    run::runtime()?.block_on(measure())
}

async fn measure() -> Result<()> {
    let server = TestServer::own(Target::Embedded, real::Options::default()).await?;
    let server = match server {
        Ok(server) => server,
        Err(Unavailable(reason)) => bail!("no server: {reason}"),
    };
    let vms = Vms::install(&server).await?;
    let padding = json!({ "padding": "x".repeat(SIZE) });
    let created = stream::iter(0..OBJECTS).map(async |number| {
        let name = Vms::name(number);
        vms.create_with(&name, padding.clone(), "complete").await
    });
    let created = created.buffer_unordered(CREATING);
    created.try_collect::<()>().await?;
    println!("| round | elapsed, s | peak memory, MiB |");
    println!("|---|---|---|");
    for round in 1..=ROUNDS {
        let (took, peak) = preview(&server, &vms).await?;
        let peak = peak as f64 / 1024.0;
        println!("| {round} | {:.2} | {peak:.0} |", took.as_secs_f64());
    }
    Ok(())
}

/// Runs the command; returns how long it took, and its peak memory in KiB.
async fn preview(server: &TestServer, vms: &Vms) -> Result<(Duration, u64)> {
    let command = host::bare()?
        .arg("preview")
        .arg(EXAMPLE_VM)
        .arg("--kubeconfig")
        .arg(server.kubeconfig())
        .args(["--namespace", vms.namespace()]);
    let start = Instant::now();
    let running = command.spawn()?;
    let status = format!("/proc/{}/status", running.id());
    let mut peak = 0;
    while running.exited()?.is_none() {
        let status = fs::read_to_string(&status).unwrap_or_default();
        peak = peak.max(peak_of(&status).unwrap_or_default());
        tokio::time::sleep(PAUSE).await;
    }
    let took = start.elapsed();
    let exit = running.wait_exit().await?;
    let first = exit.stdout.first().context("a plan")?;
    ensure!(
        exit.status.success() && first.ends_with("20,000 unchanged"),
        "{exit:#?}"
    );
    Ok((took, peak))
}

/// Returns the highest resident memory in the text of `/proc/PID/status`, in KiB.
fn peak_of(status: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
