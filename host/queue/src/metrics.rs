//! The queue's metrics: two of the hooks of client-go's `metrics.go`, and a snapshot.
//!
//! Values per taken key (how long it waited, how long its run took) need no hook: the
//! [`crate::Lease`] has the first, its holder can measure the second, and neither needs work under
//! the lock, which all workers share.
//!
//! This module knows no metrics library. The names in parentheses are the Prometheus metrics that
//! dashboards expect.

use std::time::Duration;

/// The two first-in-first-out lists in which keys wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lane {
    /// For initial lists, resyncs and the re-enqueue after a swap.
    Low,
    /// For fresh changes and timers.
    High,
}

/// Receives each event while the queue's lock is held: an implementation must be quick (an atomic
/// or two) and must not call the queue. The default methods do nothing.
pub trait Metrics: Send + Sync {
    /// Returns whether the queue reads the clock for [`crate::Lease::wait`] and the run times of
    /// [`Stats`]. Called once, by [`crate::Queue::new`].
    fn wants_times(&self) -> bool {
        true
    }

    /// A key became dirty; duplicates are not counted (`workqueue_adds_total`).
    fn add(&self, lane: Lane) {
        let _ = lane;
    }

    /// A delayed add of any kind was made (`workqueue_retries_total`).
    fn retry(&self) {}
}

/// Records no metrics and reads no clock.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoMetrics;

impl Metrics for NoMetrics {
    fn wants_times(&self) -> bool {
        false
    }
}

/// A snapshot of the queue (`workqueue_depth`, and with `processing`,
/// `controller_runtime_active_workers`).
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Keys that wait in the high lane.
    pub high: usize,
    /// Keys that wait in the low lane.
    pub low: usize,
    /// Keys with a pending delayed add of any kind.
    pub delayed: usize,
    /// The part of `delayed` that waits for a backoff.
    pub backing_off: usize,
    /// Keys with failures.
    pub failing: usize,
    /// Keys that a worker holds.
    pub processing: usize,
    /// How long the oldest run has lasted (`workqueue_longest_running_processor_seconds`). Zero
    /// without times.
    pub longest_running: Duration,
    /// The sum of the run times of all unfinished runs (`workqueue_unfinished_work_seconds`). Zero
    /// without times.
    pub unfinished: Duration,
}
