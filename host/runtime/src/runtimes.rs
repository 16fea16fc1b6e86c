//! The two runtimes of the process: one thread for watches and writes, and one thread per core for
//! guests, at a lower priority.
//!
//! This module owns the threads' number, names and priorities. It must not know what runs on them.

use anyhow::{Context, Result};
use rustix::process::{getpriority_process, setpriority_process};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use tokio::runtime::{Builder, Runtime};

/// Threads for watches, probes and writes. Watch data is read piece by piece, and a second thread
/// would be woken for each piece only to find nothing to do (measured: a seventh of the cost of a
/// write).
const IO_THREADS: usize = 1;

/// Polls between checks of timers and I/O. A guest may run for one epoch tick (10 ms) per poll, so
/// with the default of 61 timers would wait for 0.6 s.
const EVENT_INTERVAL: u32 = 8;

/// Polls between looks for tasks that other threads have woken. With more than one, a review would
/// wait for several ticks of guests that use all cores (measured with 300 reviews a second: 1.3 s).
const WOKEN_INTERVAL: u32 = 1;

/// The `nice` value of guest threads relative to this process's I/O and to the compiler of a new
/// version. When both compete for a core, the guest gets a quarter of it. Measured with guests on
/// all cores: a swap takes 63 to 79 ms, instead of 120 ms at equal priority; a drain costs the
/// same. Other processes are affected only if they share the cgroup, which containers do not.
const BEHIND: i32 = 5;

/// The lowest `nice` value.
const LAST: i32 = 19;
/// The scheduler's class for what runs when nothing else does. A thread that wakes up takes a core
/// from it at once, but would wait for the end of a slice of a thread that only has the lowest
/// `nice` value (measured beside a shadow that traps: the 99th percentile of a live turn is 0.8
/// ms).
const IDLE: ThreadSchedulePolicy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);

/// Starts the runtime for watches, writes, probes and everything else that waits.
pub fn io() -> Result<Runtime> {
    build(threads("vmhost-io", IO_THREADS).enable_all())
}

/// Starts the runtime for guests. It has no I/O driver, so that its threads wait for nothing but
/// their work: requests of a turn are sent on the I/O runtime.
pub fn guests(count: usize) -> Result<Runtime> {
    // Computed once and absolute, since a new thread starts with the priority of its parent.
    let behind = getpriority_process(None).map_or(BEHIND, |own| own + BEHIND);
    let step_back = move || {
        // If the system refuses, guests run at normal priority.
        let _ = setpriority_process(None, behind);
    };
    build(
        threads("vmhost-guest", count)
            .enable_time()
            .global_queue_interval(WOKEN_INTERVAL)
            .on_thread_start(step_back),
    )
}

/// Gives the calling thread, and all threads that it starts, the lowest priority.
pub(crate) fn step_aside() {
    // If the system refuses, the thread runs at normal priority.
    let _ = setpriority_process(None, LAST);
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, IDLE);
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
