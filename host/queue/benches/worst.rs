//! The worst case of an add: a million keys, a thousand getters. `cargo bench -p vmhost-queue
//! --bench worst`.
//!
//! Each add is timed twice, by the wall clock and by the CPU time of its thread: on a shared
//! machine the wall clock also includes the time for which other programs had the core. The CPU
//! time is the queue's own. An add may also sleep on the queue's lock: that is a voluntary context
//! switch of the thread, and those are counted.
#![allow(clippy::print_stdout, reason = "a program that prints numbers")]

mod common;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use vmhost_queue::{Config, Decision, Queue};

use common::{Naive, Name, done};

const KEYS: u64 = 1_000_000;
const GETTERS: usize = 1000;

/// CPU time of this thread in nanoseconds.
fn cpu() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// How often this thread slept, and how often it was preempted.
fn switches() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let count = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|count| count.trim().parse().ok())
            .unwrap_or(0)
    };
    (
        count("voluntary_ctxt_switches:"),
        count("nonvoluntary_ctxt_switches:"),
    )
}

struct Times {
    wall: Vec<u64>,
    cpu: Vec<u64>,
    switches: (u64, u64),
}

/// Runs `action` for each number and measures each call.
fn time(mut action: impl FnMut(u64)) -> Times {
    let (mut wall, mut on_cpu) = (vec![0; KEYS as usize], vec![0; KEYS as usize]);
    let before = switches();
    for n in 0..KEYS {
        let (start, start_cpu) = (Instant::now(), cpu());
        action(black_box(n));
        on_cpu[n as usize] = cpu() - start_cpu;
        wall[n as usize] = start.elapsed().as_nanos() as u64;
    }
    let after = switches();
    Times {
        wall,
        cpu: on_cpu,
        switches: (after.0 - before.0, after.1 - before.1),
    }
}

fn row(name: &str, mut times: Vec<u64>) {
    let slow = times.iter().filter(|&&time| time > 1_000_000).count();
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "  {name:<12} p50 {:>7} ns, p99 {:>7} ns, p99.99 {:>8} ns, longest {:>9} ns, {slow} over 1 ms",
        at(0.5),
        at(0.99),
        at(0.9999),
        at(1.0)
    );
}

fn print(name: &str, times: Times) {
    let (slept, preempted) = times.switches;
    println!("{name}: slept {slept} times, preempted {preempted} times");
    row("wall clock", times.wall);
    row("CPU time", times.cpu);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .expect("a runtime")
}

/// Adds a million keys while a thousand getters take them.
fn with_getters(low_beside: bool) {
    let queue: Queue<u64> = Queue::new(Config::default());
    let (runtime, taken) = (runtime(), Arc::new(AtomicU64::new(0)));
    for _ in 0..GETTERS {
        let (queue, taken) = (queue.clone(), taken.clone());
        runtime.spawn(async move {
            while let Some(lease) = queue.get().await {
                taken.fetch_add(1, Relaxed);
                tokio::task::yield_now().await;
                lease.finish(Decision::Forget);
            }
        });
    }
    std::thread::sleep(Duration::from_millis(20));
    let stop = AtomicBool::new(false);
    let times = std::thread::scope(|scope| {
        if low_beside {
            let low = (KEYS..).take_while(|_| !stop.load(Relaxed));
            scope.spawn(|| queue.add_low_all(low.take(KEYS as usize)));
        }
        let times = time(|n| queue.add(n));
        stop.store(true, Relaxed);
        times
    });
    let beside = if low_beside {
        ", add_low_all beside"
    } else {
        ""
    };
    let taken = taken.load(Relaxed);
    print(
        &format!("add, 1M keys, 1000 getters{beside} ({taken} taken meanwhile)"),
        times,
    );
    queue.shut_down_now();
}

/// Adds a million keys while another million wait and a thousand are in processing.
fn on_top_of_a_million() {
    let queue: Queue<u64> = Queue::new(Config::default());
    (0..KEYS).for_each(|n| queue.add(n));
    let leases: Vec<_> = (0..GETTERS).map(|_| queue.try_get()).collect();
    print(
        "add, on top of 1M keys, 1000 in processing",
        time(|n| queue.add(KEYS + n)),
    );
    for lease in leases.into_iter().flatten() {
        lease.finish(Decision::Forget);
    }
    print(
        "get + done, of 2M keys",
        time(|_| {
            done(&queue);
        }),
    );
}

fn naive_with_getters() {
    let queue: Arc<Naive<u64>> = Arc::new(Naive::new());
    let runtime = runtime();
    for _ in 0..GETTERS {
        let queue = queue.clone();
        runtime.spawn(async move {
            loop {
                let key = queue.get().await;
                tokio::task::yield_now().await;
                queue.done(&key);
            }
        });
    }
    std::thread::sleep(Duration::from_millis(20));
    print("naive: add, 1M keys, 1000 getters", time(|n| queue.add(n)));
    runtime.shutdown_background();
}

/// Measures the time per key of adding and of draining.
fn growth() {
    println!("growth: ns a key to add, to get and end, and to add with a delay");
    for keys in [1_000, 10_000, 100_000, 1_000_000] {
        let names: Vec<Name> = (0..keys).map(Name::numbered).collect();
        let mut best = [f64::MAX; 3];
        let per_key = |best: &mut f64, start: Instant| {
            *best = best.min(start.elapsed().as_nanos() as f64 / keys as f64);
        };
        for _ in 0..(5_000_000 / keys).min(500) {
            let queue: Queue<Name> = Queue::new(Config::default());
            let start = Instant::now();
            names.iter().for_each(|name| queue.add(name.clone()));
            per_key(&mut best[0], start);
            let start = Instant::now();
            while done(&queue) {}
            per_key(&mut best[1], start);
            let start = Instant::now();
            names
                .iter()
                .for_each(|name| queue.add_after(name.clone(), Duration::from_secs(3600)));
            per_key(&mut best[2], start);
        }
        let [add, get, after] = best;
        println!("  {keys:>9} keys: {add:>6.1} {get:>6.1} {after:>6.1}");
    }
}

fn main() {
    growth();
    print("nothing", time(|n| _ = black_box(n)));
    let queue: Queue<u64> = Queue::new(Config::default());
    print(
        "add, growing from nothing to 1M keys",
        time(|n| queue.add(n)),
    );
    drop(queue);
    on_top_of_a_million();
    with_getters(false);
    with_getters(true);
    naive_with_getters();
}
