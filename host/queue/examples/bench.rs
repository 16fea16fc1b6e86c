//! What the queue costs: `cargo run --release -p vmhost-queue --example bench`.
#![allow(clippy::print_stdout, reason = "a program that prints numbers")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use vmhost_queue::{Config, Lane, Metrics, Queue};

/// The best of many samples, in nanoseconds per round. A sample is shorter than a scheduler's time slice, so that the best one
/// was not interrupted even on a busy machine.
fn measure(name: &str, samples: u32, mut run: impl FnMut()) {
    const ROUNDS: u32 = 5_000;
    let best = (0..samples).map(|_| {
        let start = Instant::now();
        (0..ROUNDS).for_each(|_| run());
        start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
    });
    println!("{name:<58} {:>8.1} ns", best.fold(f64::MAX, f64::min));
}

struct Counters(AtomicU64);

impl Metrics for Counters {
    fn add(&self, _: Lane) {
        self.0.fetch_add(1, Relaxed);
    }
    fn queue_duration(&self, waited: Duration) {
        self.0.fetch_add(waited.as_nanos() as u64, Relaxed);
    }
}

fn one_thread() {
    let lock = std::sync::Mutex::new(0u64);
    measure("for reference: lock + unlock", 1_000, || {
        *black_box(&lock).lock().expect("a lock") += 1
    });
    measure("for reference: clock read", 1_000, || {
        _ = black_box(Instant::now())
    });
    let queue: Queue<u64> = Queue::new(Config::default());
    let mut n = 0;
    measure("add + get + done, u64", 1_000, || {
        n += 1;
        queue.add(black_box(n));
        drop(black_box(queue.try_get()));
    });
    queue.add(7);
    measure("duplicate add, u64", 1_000, || queue.add(black_box(7)));
    drop(queue.try_get());
    queue.add_after(9, Duration::from_secs(3600));
    measure("add + get + done, u64, with a timer pending", 1_000, || {
        n += 1;
        queue.add(black_box(n));
        drop(black_box(queue.try_get()));
    });

    let timed: Queue<u64> = Queue::new(Config {
        metrics: Arc::new(Counters(AtomicU64::new(0))),
        ..Config::default()
    });
    measure(
        "add + get + done, u64, with metrics and times",
        1_000,
        || {
            n += 1;
            timed.add(black_box(n));
            drop(black_box(timed.try_get()));
        },
    );

    let names: Vec<Arc<str>> = (0..1000)
        .map(|n| format!("namespace-{}/object-{n}", n % 10).into())
        .collect();
    let named: Queue<Arc<str>> = Queue::new(Config::default());
    let mut at = 0;
    measure(
        "add + get + done, Arc<str> of 24 bytes, 1000 keys",
        1_000,
        || {
            at = (at + 1) % names.len();
            named.add(names[at].clone());
            drop(black_box(named.try_get()));
        },
    );
    named.add(names[0].clone());
    measure("duplicate add, Arc<str>", 1_000, || {
        named.add(names[0].clone())
    });
}

/// A million keys come in while a thousand getters take them; each add is timed.
fn latency(low_beside: bool) {
    let queue: Queue<u64> = Queue::new(Config::default());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .expect("a runtime");
    let taken = Arc::new(AtomicU64::new(0));
    for _ in 0..1000 {
        let (queue, taken) = (queue.clone(), taken.clone());
        runtime.spawn(async move {
            while let Some(lease) = queue.get().await {
                taken.fetch_add(1, Relaxed);
                tokio::task::yield_now().await;
                drop(lease);
            }
        });
    }
    let stop = AtomicBool::new(false);
    let mut times: Vec<u32> = Vec::with_capacity(1_000_000);
    std::thread::scope(|scope| {
        if low_beside {
            scope.spawn(|| {
                queue.add_low_all(
                    (1 << 40..)
                        .take(1_000_000)
                        .take_while(|_| !stop.load(Relaxed)),
                )
            });
        }
        for n in 0..1_000_000 {
            let start = Instant::now();
            queue.add(n);
            times.push(start.elapsed().as_nanos() as u32);
        }
        stop.store(true, Relaxed);
    });
    print(
        if low_beside {
            "add, 1M items, 1000 getters, add_low_all beside"
        } else {
            "add, 1M items, 1000 getters"
        },
        times,
    );
    queue.shut_down_now();
    println!("{:<58} {:>8}", "  taken meanwhile", taken.load(Relaxed));
}

fn print(name: &str, mut times: Vec<u32>) {
    let slow = times.iter().filter(|&&time| time > 1_000_000).count();
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let (p50, p9999, max) = (at(0.5), at(0.9999), at(1.0));
    println!("{name:<58} p50 {p50} ns, p99.99 {p9999} ns, max {max} ns, {slow} over 1 ms");
}

fn main() {
    one_thread();
    let queue: Queue<u64> = Queue::new(Config::default());
    let timed = |n: u64, add: &dyn Fn(u64)| {
        let start = Instant::now();
        add(n);
        start.elapsed().as_nanos() as u32
    };
    print(
        "add, growing to 1M items",
        (0..1_000_000)
            .map(|n| timed(n, &|n| queue.add(n)))
            .collect(),
    );
    print(
        "try_get + done, draining 1M",
        (0..1_000_000)
            .map(|n| timed(n, &|_| drop(queue.try_get())))
            .collect(),
    );
    let hour = Duration::from_secs(3600);
    print(
        "add_after, growing to 1M timers",
        (0..1_000_000)
            .map(|n| timed(n, &|n| queue.add_after(n, hour)))
            .collect(),
    );
    // The reference: what this machine's scheduler does to a thread that shares its cores with others.
    print(
        "nothing but two clock reads",
        (0..1_000_000)
            .map(|n| timed(n, &|n| _ = black_box(n)))
            .collect(),
    );
    latency(false);
    latency(true);
}
