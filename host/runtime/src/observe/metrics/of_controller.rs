//! The metrics of one plugin and of one controller, taken from those of the process. This module
//! must not know what a controller does.

use prometheus::IntCounterVec;

use super::Metrics;
use super::controller::{ControllerMetrics, TurnResult, controller_label};

/// The results of reloads that alerts count.
const RELOADS: [&str; 2] = ["swapped", "failed"];

/// The ends of canaries but a promotion.
const CANARY_ENDS: [&str; 5] = ["operator", "score", "leader", "new-bytes", "shutdown"];

/// The results of reviews that alerts count.
const REVIEWS: [&str; 2] = ["failed", "timed_out"];

/// How calls end without an outcome.
const CALL_ERRORS: [&str; 5] = ["trap", "deadline", "memory", "malformed", "busy"];

/// Makes counters appear with the value 0. Prometheus sees the increase of a counter only if it was
/// there before.
fn begin(counters: &IntCounterVec, label: &str, results: &[&str]) {
    for result in results {
        counters.with_label_values(&[label, *result]).inc_by(0);
    }
}

impl Metrics {
    /// Begins the counters of a plugin that alerts look at.
    pub(crate) fn plugin(&self, plugin: &str) {
        begin(&self.reloads, plugin, &RELOADS);
        begin(&self.canary.ends, plugin, &CANARY_ENDS);
        begin(&self.call_errors, plugin, &CALL_ERRORS);
    }

    /// Begins the counters of a webhook or conversion that alerts look at.
    pub(crate) fn reviewer(&self, plugin: &str, name: &str) {
        begin(&self.reviews, &controller_label(plugin, name), &REVIEWS);
    }

    /// The metrics of one controller, with all results at 0.
    pub(crate) fn controller(&self, plugin: &str, name: &str) -> ControllerMetrics {
        let all = &self.by_controller;
        let label = controller_label(plugin, name);
        let by_controller = &[label.as_str()];
        let by_queue = &[label.as_str(), label.as_str()];
        let result = |result: TurnResult| {
            all.reconcile_total
                .with_label_values(&[label.as_str(), result.as_str()])
        };
        ControllerMetrics {
            adds: all.adds.with_label_values(by_queue),
            queue_duration: all.queue_duration.with_label_values(by_queue),
            work_duration: all.work_duration.with_label_values(by_queue),
            retries: all.retries.with_label_values(by_queue),
            success: result(TurnResult::Success),
            error: result(TurnResult::Error),
            requeue: result(TurnResult::Requeue),
            requeue_after: result(TurnResult::RequeueAfter),
            errors: all.reconcile_errors.with_label_values(by_controller),
            terminal: all.terminal_errors.with_label_values(by_controller),
            panics: all.panics.with_label_values(by_controller),
            timeouts: all.timeouts.with_label_values(by_controller),
            reconcile_time: all.reconcile_time.with_label_values(by_controller),
            call_time: all.call_time.with_label_values(by_controller),
            call_errors: self.call_errors.clone(),
            breaker: self.breaker.with_label_values(&[plugin]),
            plugin: plugin.to_owned(),
            effects: all.effects.clone(),
            skipped_applies: all.skipped_applies.with_label_values(by_controller),
            own_write_timeouts: all.own_write_timeouts.with_label_values(by_controller),
            wakes: all.wakes.of(&label),
            label,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_alerts_look_at_begin_at_0() {
        let metrics = Metrics::new().unwrap();
        metrics.reviewer("p", "w");
        metrics.reviews.with_label_values(&["p/w", "failed"]).inc();
        // A swap begins them again.
        metrics.reviewer("p", "w");
        let text = String::from_utf8(metrics.render()).unwrap();
        for line in [
            r#"vmhost_reviews_total{controller="p/w",result="failed"} 1"#,
            r#"vmhost_reviews_total{controller="p/w",result="timed_out"} 0"#,
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
