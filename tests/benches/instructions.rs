//! How many instructions the hot path takes, counted by Callgrind: the same number however busy the machine is. CI fails on more than 5 % growth.
//!
//! `cargo bench --profile dev -p vmhost-tests --bench instructions` needs valgrind and gungraun-runner (`.ci/run` installs both). The counts are of the test profile,
//! whose dependencies and hot crates are optimised, so that CI compiles no dependency twice; they are compared with `instructions.txt`, not with a release build.
//! The clock has little part in them: twelve runs of whole turns, half of them beside four loops that spin, lay within 1.2 %.
//! Whoever makes something faster writes the new number there; whoever makes it slower says in the commit why that is worth it.

#![allow(missing_docs, reason = "what gungraun's macros make has none")]

use std::hint::black_box;

use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};
use tokio::runtime::{Builder, Handle, Runtime};
use vmhost_cluster::{Informers, WatchSpec};
use vmhost_core::{Gvk, ObjectName};
use vmhost_queue::{Config, Decision, Queue};
use vmhost_tests::in_process::InProcess;
use vmhost_tests::turns::Turns;

/// `name count`, a line each.
const BASELINE: &str = include_str!("instructions.txt");

/// How far above its baseline a count may be.
const GROWTH_PERCENT: u64 = 5;

/// Keys of one count: what happens once weighs little, and a run takes seconds.
const KEYS: usize = 200;

/// Fails above the baseline.
fn limit(name: &str) -> LibraryBenchmarkConfig {
    let baseline = BASELINE
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(of, _)| *of == name)
        .and_then(|(_, count)| count.trim().parse::<u64>().ok());
    let limit = baseline.map(|count| count + count * GROWTH_PERCENT / 100);
    let mut callgrind = Callgrind::default();
    // One without a baseline fails, so that none is forgotten.
    callgrind.hard_limits([(EventKind::Ir, limit.unwrap_or(1))]);
    LibraryBenchmarkConfig::default().tool(callgrind).clone()
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// A host at rest.
fn turns() -> (Runtime, Turns) {
    let runtime = runtime();
    let server = InProcess::new(KEYS, "complete", 512);
    let turns = runtime
        .block_on(async {
            let turns = Turns::start(server, Handle::current()).await?;
            // The first round makes what later ones find.
            turns.make_all().await;
            anyhow::Ok(turns)
        })
        .expect("a host");
    (runtime, turns)
}

// get, call, settle, done.
#[library_benchmark(config = limit("turn-without-write"))]
#[bench::keys(setup = turns)]
fn turn_without_write((runtime, turns): (Runtime, Turns)) -> (Runtime, Turns) {
    runtime.block_on(turns.look_at_all());
    (runtime, turns)
}

// watch, store, enqueue, get, call, settle with a write, its event, done.
#[library_benchmark(config = limit("turn-with-write"))]
#[bench::keys(setup = turns)]
fn turn_with_write((runtime, turns): (Runtime, Turns)) -> (Runtime, Turns) {
    runtime.block_on(turns.make_all());
    (runtime, turns)
}

fn informers() -> (Runtime, Informers) {
    let runtime = runtime();
    let server = InProcess::new(KEYS, "complete", 2048);
    let _inside = runtime.enter();
    let reader = server.connection().reader();
    let informers = Informers::new(
        reader,
        std::sync::Arc::new(vmhost_cluster::NoInformerObserver),
    );
    (runtime, informers)
}

// The first list of objects of 2 KiB.
#[library_benchmark(config = limit("list"))]
#[bench::objects(setup = informers)]
fn list((runtime, informers): (Runtime, Informers)) -> (Runtime, Informers) {
    runtime.block_on(async {
        let kind = Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine");
        let subscription = informers.subscribe(WatchSpec::of(kind), None);
        subscription.synced().await;
        black_box(subscription.store().len());
    });
    (runtime, informers)
}

fn queue() -> (Queue<ObjectName>, Vec<ObjectName>) {
    let name = |number: usize| ObjectName::new(Some("default"), &format!("vm-{number:06}"));
    (Queue::new(Config::default()), (0..1000).map(name).collect())
}

// add, get, done, one key after the other.
#[library_benchmark(config = limit("queue"))]
#[bench::thousand(setup = queue)]
fn add_get_done((queue, keys): (Queue<ObjectName>, Vec<ObjectName>)) -> Queue<ObjectName> {
    for key in keys {
        queue.add(key);
        if let Some(lease) = black_box(queue.try_get()) {
            lease.finish(Decision::Forget);
        }
    }
    queue
}

library_benchmark_group!(
    name = hot_path,
    benchmarks = [list, add_get_done, turn_without_write, turn_with_write]
);

main!(library_benchmark_groups = hot_path);
