//! What the queue tells about itself: two of the hooks of client-go's `metrics.go`, and a snapshot.
//!
//! What is wanted for each key that is taken (how long it waited, how long the run took) is no hook: the [`crate::Lease`] has the first, its holder a clock, and
//! neither has to be told under the lock, where all workers meet.
//!
//! Knows no metrics library. The names in brackets are those of the Prometheus metrics that dashboards expect.

use std::time::Duration;

/// Which of the two first-in-first-out lists a key waits in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lane {
    /// Initial list, resync, re-enqueue after a swap.
    Low,
    /// Fresh changes, timers.
    High,
}

/// Told of each event while the queue's lock is held: an implementation must be quick (an atomic or two) and must not call
/// the queue. Every method does nothing unless overridden.
pub trait Metrics: Send + Sync {
    /// Whether the queue should read the clock for [`crate::Lease::wait`] and the running times of [`Stats`]. Asked once, by [`crate::Queue::new`].
    fn wants_times(&self) -> bool {
        true
    }

    /// A key became dirty; duplicates are not counted (`workqueue_adds_total`).
    fn add(&self, lane: Lane) {
        let _ = lane;
    }

    /// A delayed add of any kind (`workqueue_retries_total`).
    fn retry(&self) {}
}

/// No metrics, no clock.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoMetrics;

impl Metrics for NoMetrics {
    fn wants_times(&self) -> bool {
        false
    }
}

/// The queue at one moment (`workqueue_depth` and, of `processing`, `controller_runtime_active_workers`).
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Keys that wait in the high lane.
    pub high: usize,
    /// Keys that wait in the low lane.
    pub low: usize,
    /// Keys with a pending delayed add of any kind.
    pub delayed: usize,
    /// Those of `delayed` that wait for a back-off.
    pub backing_off: usize,
    /// Keys with failures that are not forgotten.
    pub failing: usize,
    /// Keys that are with a worker.
    pub processing: usize,
    /// How long the oldest run has been going (`workqueue_longest_running_processor_seconds`). Zero without times.
    pub longest_running: Duration,
    /// The running times of all unfinished runs together (`workqueue_unfinished_work_seconds`). Zero without times.
    pub unfinished: Duration,
}
