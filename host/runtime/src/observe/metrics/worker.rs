//! One worker's own counters, which it adds to its controller's metrics now and then. If all
//! workers updated ten shared counters in each turn, that would cost two cores more than the turns
//! themselves. This module must not know how a turn runs.

use std::time::{Duration, Instant};

use prometheus::local::{LocalHistogram, LocalIntCounter};

use super::controller::{ControllerMetrics, TurnResult};

/// Turns after which the sums are handed over. A worker also hands them over before it waits for a
/// key.
const TURNS: u32 = 64;

/// Time after which the sums are handed over, so that a scrape does not miss the turns of a slow
/// plugin.
const AGE: Duration = Duration::from_millis(100);

pub(crate) struct WorkerMetrics {
    queue_duration: LocalHistogram,
    work_duration: LocalHistogram,
    reconcile_time: LocalHistogram,
    call_time: LocalHistogram,
    success: LocalIntCounter,
    controller: ControllerMetrics,
    turns: u32,
    flushed: Instant,
}

impl WorkerMetrics {
    /// The counters of a worker of this controller.
    pub(crate) fn new(controller: &ControllerMetrics) -> Self {
        Self {
            queue_duration: controller.queue_duration.local(),
            work_duration: controller.work_duration.local(),
            reconcile_time: controller.reconcile_time.local(),
            call_time: controller.call_time.local(),
            success: controller.success.local(),
            controller: controller.clone(),
            turns: 0,
            flushed: Instant::now(),
        }
    }

    /// Records the duration of a call.
    pub(crate) fn call(&mut self, took: Duration) {
        self.call_time.observe(took.as_secs_f64());
    }

    /// Records a turn: how long its key waited, when it began, and its result.
    pub(crate) fn turn(&mut self, waited: Duration, began: Instant, result: TurnResult) {
        let now = Instant::now();
        let worked = (now - began).as_secs_f64();
        self.queue_duration.observe(waited.as_secs_f64());
        self.work_duration.observe(worked);
        self.reconcile_time.observe(worked);
        match result {
            TurnResult::Success => self.success.inc(),
            other => self.controller.turn(other),
        }
        self.turns += 1;
        if self.turns >= TURNS || now - self.flushed >= AGE {
            self.flush();
            self.flushed = now;
        }
    }

    /// Adds the sums to the controller's metrics.
    pub(crate) fn flush(&mut self) {
        if self.turns == 0 {
            return;
        }
        self.turns = 0;
        for histogram in [
            &self.queue_duration,
            &self.work_duration,
            &self.reconcile_time,
            &self.call_time,
        ] {
            histogram.flush();
        }
        self.success.flush();
    }
}

impl Drop for WorkerMetrics {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::metrics::Metrics;

    #[test]
    fn nothing_is_lost_between_a_worker_and_its_controller() {
        let all = Metrics::new().unwrap();
        let controller = all.controller("p", "c");
        let mut worker = WorkerMetrics::new(&controller);
        let turns = TURNS + 7;
        for _ in 0..turns {
            worker.call(Duration::from_micros(3));
            worker.turn(Duration::ZERO, Instant::now(), TurnResult::Success);
        }
        worker.turn(Duration::ZERO, Instant::now(), TurnResult::Error);
        drop(worker);
        assert_eq!(controller.success.get(), u64::from(turns));
        assert_eq!(controller.errors.get(), 1);
        let counts = [
            &controller.queue_duration,
            &controller.work_duration,
            &controller.reconcile_time,
        ]
        .map(|histogram| histogram.get_sample_count());
        assert_eq!(counts, [u64::from(turns) + 1; 3]);
        assert_eq!(controller.call_time.get_sample_count(), u64::from(turns));
    }
}
