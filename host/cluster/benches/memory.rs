//! Memory of a cached object: what the allocator was asked for, what it took from the system, and
//! how both grow.
//!
//! `cargo bench -p vmhost-cluster --bench memory` runs each measurement in a process of its own,
//! because freed memory is rarely returned to the system.

#![allow(clippy::print_stdout, reason = "a program that prints numbers")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use vmhost_cluster::Feed;

mod objects;

const COUNTS: [usize; 3] = [1_000, 20_000, 100_000];
const SIZE: usize = 2 << 10;
const PAGE: usize = 500;

/// Counts the allocated bytes.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static CHUNKS: AtomicUsize = AtomicUsize::new(0);

#[allow(
    unsafe_code,
    reason = "an allocator's interface is unsafe; it passes everything on as it came"
)]
// SAFETY: every call is passed to the system allocator with the same arguments; the counters
// allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        CHUNKS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: see above.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        CHUNKS.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: see above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

struct Sample {
    live: usize,
    chunks: usize,
    rss: usize,
    peak: usize,
}

impl Sample {
    fn take() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().strip_suffix("kB")?.trim().parse().ok()
        };
        Self {
            live: LIVE.load(Ordering::Relaxed),
            chunks: CHUNKS.load(Ordering::Relaxed),
            rss: field("VmRSS:").unwrap_or(0usize) << 10,
            peak: field("VmHWM:").unwrap_or(0usize) << 10,
        }
    }
}

const MODES: [&str; 6] = [
    "paged, whole",
    "paged, wanted",
    "streamed, whole",
    "streamed, wanted",
    "streamed, whole, 4 threads",
    "churned, whole",
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mode, count] = arguments.as_slice()
        && let Ok(count) = count.parse()
    {
        return one(mode, count);
    }
    println!(
        "{:>28} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "bytes an object of 2 KiB", "count", "text", "asked", "chunks", "RSS", "peak", "trimmed"
    );
    let own = std::env::current_exe().expect("it runs");
    for mode in MODES {
        for count in COUNTS {
            let status = Command::new(&own).arg(mode).arg(count.to_string()).status();
            assert!(status.is_ok_and(|status| status.success()));
        }
    }
}

/// Fills one store, and prints the bytes per object.
fn one(mode: &str, count: usize) {
    let mut feed = Feed::new(objects::spec(mode.contains("wanted")), None);
    // The first list loads pages of code and tables.
    feed.begin_list();
    assert!(feed.page(&objects::page(0..10, SIZE)));
    assert!(feed.end_list(1));
    let before = Sample::take();
    feed.begin_list();
    if mode.contains("paged") {
        for first in (0..count).step_by(PAGE) {
            assert!(feed.page(&objects::page(first..count.min(first + PAGE), SIZE)));
        }
    } else if mode.contains("threads") {
        in_turns(&mut feed, count, 4);
    } else {
        stream(&mut feed, 0..count);
    }
    assert!(feed.end_list(2));
    if mode.contains("churned") {
        churn(&mut feed, count);
    }
    let after = Sample::take();
    trim();
    let trimmed = Sample::take();
    let mut text = 0;
    feed.store().for_each(|object| text += object.text.len());
    assert_eq!((feed.store().len(), feed.skipped()), (count, 0));
    let each = |bytes: usize| bytes as f64 / count as f64;
    println!(
        "{mode:>28} {count:>8} {:>7.0} {:>7.0} {:>7.2} {:>7.0} {:>7.0} {:>7.0}",
        each(text),
        each(after.live.saturating_sub(before.live)),
        each(after.chunks.saturating_sub(before.chunks)),
        each(after.rss.saturating_sub(before.rss)),
        each(after.peak.saturating_sub(before.rss)),
        each(trimmed.rss.saturating_sub(before.rss)),
    );
}

fn stream(feed: &mut Feed, numbers: std::ops::Range<usize>) {
    for number in numbers {
        assert!(feed.line(&objects::line("ADDED", &objects::object(number, SIZE))));
    }
}

/// Fills like a task that moves between a runtime's threads, each of which has its own arena.
fn in_turns(feed: &mut Feed, count: usize, threads: usize) {
    const TURN: usize = 50;
    let (feed, next) = (Mutex::new(feed), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..threads {
            let (feed, next) = (&feed, &next);
            scope.spawn(move || {
                loop {
                    let turn = next.load(Ordering::Acquire);
                    if turn * TURN >= count {
                        return;
                    }
                    if turn % threads == number {
                        let mut feed = feed.lock();
                        stream(&mut feed, turn * TURN..count.min((turn + 1) * TURN));
                        next.store(turn + 1, Ordering::Release);
                    } else {
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
}

/// Changes the length and the version of every object a few times.
fn churn(feed: &mut Feed, count: usize) {
    for round in 1..=4 {
        for number in 0..count {
            let object = objects::object(number, SIZE + round * 97);
            let mut line = objects::line("MODIFIED", &object);
            objects::set_version(&mut line, (count * round + number) as u64 + 10);
            assert!(feed.line(&line));
        }
    }
}

/// Returns free memory to the system.
fn trim() {
    #[cfg(target_env = "gnu")]
    {
        #[allow(unsafe_code, reason = "glibc's own function")]
        unsafe extern "C" {
            safe fn malloc_trim(pad: usize) -> i32;
        }
        malloc_trim(0);
    }
}
