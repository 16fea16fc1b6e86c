//! The metrics of one plugin and of one controller, taken from those of the process. This module
//! must not know what a controller does.

use prometheus::IntCounterVec;

use super::Metrics;
use super::controller::{ControllerMetrics, controller_label};

/// The results of reloads that alerts count.
const RELOADS: [&str; 2] = ["swapped", "failed"];

/// The ends of canaries but a promotion.
const CANARY_ENDS: [&str; 5] = ["operator", "score", "leader", "new-bytes", "shutdown"];

/// How calls end without an outcome.
const CALL_ERRORS: [&str; 5] = ["trap", "deadline", "memory", "malformed", "busy"];

impl Metrics {
    /// Begins the counters of a plugin that alerts look at. Prometheus sees the increase of a
    /// counter only if it was there before.
    pub(crate) fn plugin(&self, plugin: &str) {
        let begin = |counters: &IntCounterVec, values: &[&str]| {
            for value in values {
                counters.with_label_values(&[plugin, *value]).inc_by(0);
            }
        };
        begin(&self.reloads, &RELOADS);
        begin(&self.canary.ends, &CANARY_ENDS);
        begin(&self.call_errors, &CALL_ERRORS);
    }

    /// The metrics of one controller, with all results at 0.
    pub(crate) fn controller(&self, plugin: &str, name: &str) -> ControllerMetrics {
        let label = controller_label(plugin, name);
        let by_controller = &[label.as_str()];
        let by_queue = &[label.as_str(), label.as_str()];
        let result = |result: &str| {
            self.reconcile_total
                .with_label_values(&[label.as_str(), result])
        };
        ControllerMetrics {
            adds: self.adds.with_label_values(by_queue),
            queue_duration: self.queue_duration.with_label_values(by_queue),
            work_duration: self.work_duration.with_label_values(by_queue),
            retries: self.retries.with_label_values(by_queue),
            success: result("success"),
            error: result("error"),
            requeue: result("requeue"),
            requeue_after: result("requeue_after"),
            errors: self.reconcile_errors.with_label_values(by_controller),
            terminal: self.terminal_errors.with_label_values(by_controller),
            panics: self.panics.with_label_values(by_controller),
            timeouts: self.timeouts.with_label_values(by_controller),
            reconcile_time: self.reconcile_time.with_label_values(by_controller),
            call_time: self.call_time.with_label_values(by_controller),
            call_errors: self.call_errors.clone(),
            breaker: self.breaker.with_label_values(&[plugin]),
            plugin: plugin.to_owned(),
            effects: self.effects.clone(),
            skipped_applies: self.skipped_applies.with_label_values(by_controller),
            own_write_timeouts: self.own_write_timeouts.with_label_values(by_controller),
            wakes: self.wakes.of(&label),
            label,
        }
    }
}
