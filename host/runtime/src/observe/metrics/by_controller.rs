//! The metrics of queues and turns: each of them has the controller as a label. This module must
//! not know what a controller does.

use prometheus::{HistogramVec, IntCounterVec, Registry};

use super::buckets::{CALL_BUCKETS, RECONCILE_BUCKETS};
use super::vectors::{counters, histograms};
use super::wakes::WakeCounters;

/// The metrics of all controllers.
pub(super) struct ByController {
    pub(super) adds: IntCounterVec,
    pub(super) queue_duration: HistogramVec,
    pub(super) work_duration: HistogramVec,
    pub(super) retries: IntCounterVec,
    pub(super) reconcile_total: IntCounterVec,
    pub(super) reconcile_errors: IntCounterVec,
    pub(super) terminal_errors: IntCounterVec,
    pub(super) panics: IntCounterVec,
    pub(super) timeouts: IntCounterVec,
    pub(super) reconcile_time: HistogramVec,
    pub(super) call_time: HistogramVec,
    pub(super) effects: IntCounterVec,
    pub(super) skipped_applies: IntCounterVec,
    pub(super) own_write_timeouts: IntCounterVec,
    pub(super) wakes: WakeCounters,
}

impl ByController {
    pub(super) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let by_controller = &["controller"];
        let by_queue = &["name", "controller"];
        // client-go: ExponentialBuckets(10e-9, 10, 12).
        let queue_buckets = prometheus::exponential_buckets(1e-8, 10.0, 12)?;
        Ok(Self {
            adds: counters(
                registry,
                "workqueue_adds_total",
                "Total number of adds handled by workqueue",
                by_queue,
            )?,
            queue_duration: histograms(
                registry,
                "workqueue_queue_duration_seconds",
                "How long in seconds an item stays in workqueue before being requested",
                by_queue,
                &queue_buckets,
            )?,
            work_duration: histograms(
                registry,
                "workqueue_work_duration_seconds",
                "How long in seconds processing an item from workqueue takes.",
                by_queue,
                &queue_buckets,
            )?,
            retries: counters(
                registry,
                "workqueue_retries_total",
                "Total number of retries handled by workqueue",
                by_queue,
            )?,
            reconcile_total: counters(
                registry,
                "controller_runtime_reconcile_total",
                "Total number of reconciliations per controller",
                &["controller", "result"],
            )?,
            reconcile_errors: counters(
                registry,
                "controller_runtime_reconcile_errors_total",
                "Total number of reconciliation errors per controller",
                by_controller,
            )?,
            terminal_errors: counters(
                registry,
                "controller_runtime_terminal_reconcile_errors_total",
                "Total number of terminal reconciliation errors per controller",
                by_controller,
            )?,
            panics: counters(
                registry,
                "controller_runtime_reconcile_panics_total",
                "Total number of reconciliations that trapped, per controller",
                by_controller,
            )?,
            timeouts: counters(
                registry,
                "controller_runtime_reconcile_timeouts_total",
                "Total number of reconciliations past their deadline",
                by_controller,
            )?,
            reconcile_time: histograms(
                registry,
                "controller_runtime_reconcile_time_seconds",
                "Length of time per reconciliation per controller",
                by_controller,
                RECONCILE_BUCKETS,
            )?,
            call_time: histograms(
                registry,
                "vmhost_call_duration_seconds",
                "Duration of a call of the plugin",
                by_controller,
                CALL_BUCKETS,
            )?,
            effects: counters(
                registry,
                "vmhost_effects_total",
                "Effects by verb and result",
                &["controller", "verb", "result"],
            )?,
            skipped_applies: counters(
                registry,
                "vmhost_applies_skipped_total",
                "Applies that would have changed nothing and were not sent",
                by_controller,
            )?,
            own_write_timeouts: counters(
                registry,
                "vmhost_own_write_timeouts_total",
                "Turns whose own writes did not show up in the store in time",
                by_controller,
            )?,
            wakes: WakeCounters::new(registry)?,
        })
    }
}
