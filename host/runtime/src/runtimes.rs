//! The two runtimes of the process: one thread watches and writes, as many as there are cores run guests, a little behind it.
//!
//! It owns how many threads there are, what they are called and who goes first. It must not know what runs on them.

use anyhow::{Context, Result};
use rustix::process::{getpriority_process, setpriority_process};
use tokio::runtime::{Builder, Runtime};

/// Threads for watches, probes and writes. One: what a watch brings is read piece by piece, and a second thread would be woken for each piece only to find
/// nothing to do (measured: a seventh of what a write costs).
const IO_THREADS: usize = 1;

/// Polls between looks at timers and I/O. A guest may run for one epoch tick (10 ms) a poll, so that the default of 61 would make timers wait for 0.6 s.
const EVENT_INTERVAL: u32 = 8;

/// How far guests step back (`nice`) behind this process's I/O, and behind the compiler of a new version: where two of them want a core, the guest has a
/// quarter of it. Measured with all cores taken by guests: a swap takes 63 to 79 ms, beside guests that do not step back 120; a drain costs the same. Behind
/// other processes only where these are not in a cgroup of their own, as containers are.
const BEHIND: i32 = 5;

/// For watches, writes, probes and all else that waits.
pub fn io() -> Result<Runtime> {
    build(threads("vmhost-io", IO_THREADS).enable_all())
}

/// For guests. Without sockets, so that its threads sleep on nothing but their work: what a guest's turn sends belongs to the other one.
pub fn guests(count: usize) -> Result<Runtime> {
    // Absolute, and read once: a thread begins with the priority of the one that started it.
    let behind = getpriority_process(None).map_or(BEHIND, |own| own + BEHIND);
    let step_back = move || {
        // A machine that does not let it runs guests beside all else.
        let _ = setpriority_process(None, behind);
    };
    build(
        threads("vmhost-guest", count)
            .enable_time()
            .on_thread_start(step_back),
    )
}

fn threads(name: &str, count: usize) -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder
        .thread_name(name)
        .worker_threads(count)
        .event_interval(EVENT_INTERVAL);
    builder
}

fn build(builder: &mut Builder) -> Result<Runtime> {
    builder.build().context("cannot start threads")
}
