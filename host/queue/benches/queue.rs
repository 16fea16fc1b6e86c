//! The cost of each operation, beside a naive queue: `cargo bench -p vmhost-queue --bench queue`.
//!
//! `tests/race/peers/queue-go` measures the same with client-go.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

mod common;

use std::hash::Hash;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use tokio::runtime::Runtime;
use vmhost_queue::{Config, Decision, Lane, Metrics, Queue};

use common::{Naive, Name, done};

const HOUR: Duration = Duration::from_secs(3600);
const BATCH: u64 = 1000;

/// Typical metrics: each event is one atomic increment, and the queue reads the clock.
struct Counters(AtomicU64);

impl Metrics for Counters {
    fn add(&self, _: Lane) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn queue<K: Hash + Eq + Clone + Send + 'static>() -> Queue<K> {
    Queue::new(Config::default())
}

/// A key for each number below `BATCH`, repeated: adding a key costs as much as cloning it.
struct Keys<K>(Vec<K>, usize);

impl<K: Clone> Keys<K> {
    fn new(key: fn(u64) -> K) -> Self {
        Self((0..BATCH).map(key).collect(), 0)
    }

    fn next(&mut self) -> K {
        self.1 = (self.1 + 1) % self.0.len();
        self.0[self.1].clone()
    }
}

fn cycle<K: Hash + Eq + Clone + Send + 'static>(c: &mut Criterion, kind: &str, key: fn(u64) -> K) {
    let mut keys = Keys::new(key);
    let ours = queue();
    c.bench_function(&format!("add+get+done/{kind}/vmhost"), |b| {
        b.iter(|| {
            ours.add(black_box(keys.next()));
            done(&ours);
        });
    });
    let naive = Naive::new();
    c.bench_function(&format!("add+get+done/{kind}/naive"), |b| {
        b.iter(|| {
            naive.add(black_box(keys.next()));
            if let Some(key) = black_box(naive.try_get()) {
                naive.done(&key);
            }
        });
    });
    c.bench_function(&format!("batch of 1000 add+get+done/{kind}/vmhost"), |b| {
        b.iter(|| {
            (0..BATCH).for_each(|_| ours.add(black_box(keys.next())));
            while done(&ours) {}
        });
    });
    c.bench_function(&format!("batch of 1000 add+get+done/{kind}/naive"), |b| {
        b.iter(|| {
            (0..BATCH).for_each(|_| naive.add(black_box(keys.next())));
            while let Some(key) = naive.try_get() {
                naive.done(black_box(&key));
            }
        });
    });
    ours.add(key(7));
    c.bench_function(&format!("duplicate add/{kind}/vmhost"), |b| {
        b.iter(|| ours.add(black_box(keys.0[7].clone())));
    });
    naive.add(key(7));
    c.bench_function(&format!("duplicate add/{kind}/naive"), |b| {
        b.iter(|| naive.add(black_box(keys.0[7].clone())));
    });
}

/// Takes a key and ends its run as a failure.
fn fail(queue: &Queue<u64>) {
    if let Some(lease) = queue.try_get() {
        lease.finish(Decision::RATE_LIMITED);
    }
}

/// The host's operations besides add, get and done.
fn rules(c: &mut Criterion) {
    let mut n = 0;
    let timed: Queue<u64> = Queue::new(Config {
        metrics: Arc::new(Counters(AtomicU64::new(0))),
        ..Config::default()
    });
    c.bench_function("add+get+done/u64, with metrics and times", |b| {
        b.iter(|| {
            n += 1;
            timed.add(black_box(n));
            done(&timed);
        });
    });
    let queue = queue();
    c.bench_function("forget/u64, nothing fails", |b| {
        b.iter(|| queue.forget(black_box(&0)));
    });
    (0..10_000).for_each(|n| queue.add_after(n, HOUR));
    c.bench_function("add+get+done/u64, with timers pending", |b| {
        b.iter(|| {
            n += 1;
            queue.add(black_box(n));
            done(&queue);
        });
    });
    c.bench_function(
        "add_after, replaced by add, get, done/u64, of 10000 timers",
        |b| {
            b.iter(|| {
                n += 1;
                queue.add_after(black_box(n), HOUR);
                queue.add(black_box(n));
                done(&queue);
            });
        },
    );
    c.bench_function("add_after/u64, already pending and sooner", |b| {
        b.iter(|| queue.add_after(black_box(77), 2 * HOUR));
    });
    c.bench_function("add, get, failed, add, get, done/u64", |b| {
        b.iter(|| {
            n += 1;
            queue.add(black_box(n));
            fail(&queue);
            queue.add(n);
            done(&queue);
        });
    });
    queue.add(7);
    fail(&queue);
    c.bench_function("forget/u64, another key fails", |b| {
        b.iter(|| queue.forget(black_box(&0)));
    });
}

/// The time per key when four tasks on two threads take keys from one adder.
fn workers(c: &mut Criterion) {
    const WORKERS: usize = 4;
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .build()
            .expect("a runtime")
    };
    let timed = |runtime: &Runtime, taken: &AtomicU64, keys: u64, add: &dyn Fn(u64)| {
        taken.store(0, Relaxed);
        let start = Instant::now();
        runtime.block_on(async {
            (0..keys).for_each(add);
            while taken.load(Relaxed) < keys {
                tokio::task::yield_now().await;
            }
        });
        start.elapsed()
    };
    let taken = Arc::new(AtomicU64::new(0));
    let (ours, first) = (queue(), runtime());
    for _ in 0..WORKERS {
        let (queue, taken) = (ours.clone(), taken.clone());
        first.spawn(async move {
            while let Some(lease) = queue.get().await {
                lease.finish(Decision::Forget);
                taken.fetch_add(1, Relaxed);
                tokio::task::coop::consume_budget().await;
            }
        });
    }
    c.bench_function("get with 4 workers/u64/vmhost", |b| {
        b.iter_custom(|keys| timed(&first, &taken, keys, &|n| ours.add(n)));
    });
    let (naive, second) = (Arc::new(Naive::new()), runtime());
    for _ in 0..WORKERS {
        let (queue, taken) = (naive.clone(), taken.clone());
        second.spawn(async move {
            loop {
                let key = queue.get().await;
                queue.done(&key);
                taken.fetch_add(1, Relaxed);
                tokio::task::coop::consume_budget().await;
            }
        });
    }
    c.bench_function("get with 4 workers/u64/naive", |b| {
        b.iter_custom(|keys| timed(&second, &taken, keys, &|n| naive.add(n)));
    });
    ours.shut_down_now();
    first.shutdown_background();
    second.shutdown_background();
}

fn reference(c: &mut Criterion) {
    let lock = std::sync::Mutex::new(0u64);
    c.bench_function("for reference/std lock + unlock", |b| {
        b.iter(|| *black_box(&lock).lock().expect("a lock") += 1);
    });
    c.bench_function("for reference/clock read", |b| b.iter(Instant::now));
}

fn all(c: &mut Criterion) {
    reference(c);
    cycle(c, "u64", |n| n);
    cycle(c, "name", Name::numbered);
    rules(c);
    workers(c);
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .without_plots();
    targets = all
}
criterion_main!(benches);
