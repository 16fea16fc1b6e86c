//! Counts the instructions of the hot path with Callgrind. The counts do not depend on the
//! machine's load, and CI fails on more than 5 % growth.
//!
//! `cargo bench --profile dev --config tests/benches/instructions.toml --workspace --bench
//! instructions` needs valgrind and gungraun-runner (`.ci/run` installs both). The counts are of
//! the test profile, with the crates of this workspace optimised, so that no dependency is compiled
//! twice; they are compared with `instructions.txt`, not with a release build. Timing hardly
//! affects them: twelve runs of whole turns, half of them beside four busy loops, differed by at
//! most 1.2 %.
//!
//! A change that makes something faster updates the number there; a change that makes something
//! slower also does, and its commit message says why that is worth it.

#![allow(missing_docs, reason = "gungraun's macros generate items without docs")]

use std::hint::black_box;
use std::path::Path;

use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};
use tokio::runtime::{Builder, Handle, Runtime};
use vmhost_cluster::{Informers, WatchSpec};
use vmhost_core::{Gvk, ObjectName};
use vmhost_queue::{Decision, Queue};
use vmhost_runtime::config::Config;
use vmhost_runtime::journal::tag::WakeTag;
use vmhost_tests::in_process::InProcess;
use vmhost_tests::turns::{self, Turns};

/// A line `name count` for each benchmark.
const BASELINE: &str = include_str!("instructions.txt");

/// The maximum growth of a count over its baseline.
const GROWTH_PERCENT: u64 = 5;

/// The number of keys in one count: enough that one-time costs weigh little, few enough that a run
/// takes seconds.
const KEYS: usize = 200;

/// Returns a configuration that fails above the baseline.
fn limit(name: &str) -> LibraryBenchmarkConfig {
    let baseline = BASELINE
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(of, _)| *of == name)
        .and_then(|(_, count)| count.trim().parse::<u64>().ok());
    let limit = baseline.map(|count| count + count * GROWTH_PERCENT / 100);
    let mut callgrind = Callgrind::default();
    // A benchmark without a baseline fails, so that none is forgotten.
    callgrind.hard_limits([(EventKind::Ir, limit.unwrap_or(1))]);
    LibraryBenchmarkConfig::default().tool(callgrind).clone()
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Returns an idle host.
fn started() -> (Runtime, Turns) {
    let runtime = runtime();
    let server = InProcess::new(KEYS, "complete", 512);
    let turns = runtime
        .block_on(async {
            let config = Config {
                // Under Callgrind, compiling the policy takes two minutes.
                cache: Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("instructions")),
                ..turns::config()
            };
            let turns = Turns::configured(server, Handle::current(), config).await?;
            // The first round creates state that later rounds find.
            turns.make_all().await;
            anyhow::Ok(turns)
        })
        .expect("a host");
    (runtime, turns)
}

// The steps: get, call, settle, done.
#[library_benchmark(config = limit("turn-without-write"))]
#[bench::keys(setup = started)]
fn turn_without_write((runtime, turns): (Runtime, Turns)) -> (Runtime, Turns) {
    runtime.block_on(turns.look_at_all());
    (runtime, turns)
}

// The steps: watch, store, enqueue, get, call, settle with a write, its event, done.
#[library_benchmark(config = limit("turn-with-write"))]
#[bench::keys(setup = started)]
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

// Measures the first list of objects of 2 KiB.
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

fn queue() -> (Queue<ObjectName, WakeTag>, Vec<ObjectName>) {
    let name = |number: usize| ObjectName::new(Some("default"), &format!("vm-{number:06}"));
    (
        Queue::new(vmhost_queue::Config::default()),
        (0..1000).map(name).collect(),
    )
}

// Measures add, get and done, one key after the other.
#[library_benchmark(config = limit("queue"))]
#[bench::thousand(setup = queue)]
fn add_get_done(
    (queue, keys): (Queue<ObjectName, WakeTag>, Vec<ObjectName>),
) -> Queue<ObjectName, WakeTag> {
    for key in keys {
        queue.tagged(WakeTag::default()).add(key);
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
