//! Memory of the queue, counted at the allocator: `cargo bench -p vmhost-queue --bench memory`.
#![allow(clippy::print_stdout, reason = "a program that prints numbers")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use vmhost_queue::{Config, Decision, Queue};

use common::{Naive, Name};

static BYTES: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[allow(unsafe_code, reason = "an allocator is unsafe by its trait")]
// Safety: every call is passed to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Relaxed);
        CALLS.fetch_add(1, Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(block, layout) }
    }
}

fn bytes() -> isize {
    BYTES.load(Relaxed) as isize
}

fn drain(queue: &Queue<Name>) {
    while let Some(lease) = queue.try_get() {
        lease.finish(Decision::Forget);
    }
}

fn line(what: &str, count: isize, unit: &str) {
    println!("{what:<64} {count:>10} {unit}");
}

fn main() {
    const KEYS: usize = 1_000_000;
    let config = Config::default();
    let before = bytes();
    let queue: Queue<Name> = Queue::new(config.clone());
    line("an empty queue", bytes() - before, "bytes");
    queue.add(Name::numbered(0));
    drain(&queue);
    line("one that had a key", bytes() - before, "bytes");
    let names: Vec<Name> = (0..KEYS as u64).map(Name::numbered).collect();
    let base = bytes();
    let held = || bytes() - base;
    for keys in [10, 1_000, 100_000, KEYS] {
        names[..keys]
            .iter()
            .for_each(|name| queue.add(name.clone()));
        line(
            &format!("{keys} queued keys, each"),
            held() / keys as isize,
            "bytes beside its text",
        );
        drain(&queue);
        line(
            &format!("after {keys} keys are drained"),
            bytes() - base,
            "bytes more than before",
        );
    }
    for name in &names {
        queue.add_after(name.clone(), Duration::from_secs(3600));
    }
    line(
        "1M delayed keys, each",
        held() / KEYS as isize,
        "bytes beside its text",
    );
    for name in &names {
        queue.add(name.clone());
    }
    drain(&queue);
    line(
        "after they are drained",
        bytes() - base,
        "bytes more than before",
    );

    queue.add(names[0].clone());
    drain(&queue);
    let calls = CALLS.load(Relaxed);
    for name in names.iter().cycle().take(KEYS) {
        queue.add(name.clone());
        queue.add(name.clone());
        if let Some(lease) = queue.try_get() {
            lease.finish(Decision::Forget);
        }
    }
    line(
        "1M times add, add, get, done",
        (CALLS.load(Relaxed) - calls) as isize,
        "allocations",
    );

    let naive = Naive::new();
    let base = bytes();
    names.iter().for_each(|name| naive.add(name.clone()));
    line(
        "naive: 1M queued keys, each",
        (bytes() - base) / KEYS as isize,
        "bytes beside its text",
    );
    while let Some(key) = naive.try_get() {
        naive.done(&key);
    }
    line(
        "naive: after they are drained",
        bytes() - base,
        "bytes more than before",
    );
}
