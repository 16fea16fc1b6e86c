//! Counters of wake-ups, and of changes and keys that were held back.

use prometheus::{IntCounterVec, Registry};

use super::controller::WakeMetrics;
use super::vectors::counters;

/// The counters of all controllers.
pub(super) struct WakeCounters {
    filtered: IntCounterVec,
    predicate_errors: IntCounterVec,
    mapped: IntCounterVec,
    dropped: IntCounterVec,
    hot: IntCounterVec,
}

impl WakeCounters {
    pub(super) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let by_controller = &["controller"];
        let counter = |name, help, labels: &[&str]| counters(registry, name, help, labels);
        Ok(Self {
            filtered: counter(
                "vmhost_predicate_filtered_total",
                "Changes that a predicate filtered out",
                by_controller,
            )?,
            predicate_errors: counter(
                "vmhost_predicate_errors_total",
                "Predicate evaluations that failed, so that the change enqueued its keys",
                by_controller,
            )?,
            mapped: counter(
                "vmhost_map_calls_total",
                "Calls of the plugin's map-changes by result",
                &["controller", "result"],
            )?,
            dropped: counter(
                "vmhost_retries_exhausted_total",
                "Keys that were given up after their last retry",
                by_controller,
            )?,
            hot: counter(
                "vmhost_hot_keys_total",
                "How often a key was held because its own turns kept waking it",
                by_controller,
            )?,
        })
    }

    pub(super) fn of(&self, label: &str) -> WakeMetrics {
        let by_controller = &[label];
        WakeMetrics {
            filtered: self.filtered.with_label_values(by_controller),
            predicate_errors: self.predicate_errors.with_label_values(by_controller),
            dropped: self.dropped.with_label_values(by_controller),
            hot: self.hot.with_label_values(by_controller),
            mapped: ["success", "error"]
                .map(|result| self.mapped.with_label_values(&[label, result])),
        }
    }
}
