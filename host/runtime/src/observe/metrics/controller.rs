//! One controller's metrics, looked up once, and the labels for the results of turns. This module
//! must not know how a turn runs.

use prometheus::{Histogram, IntCounter, IntCounterVec};
use vmhost_engine::CallError;
use vmhost_queue::Lane;

/// One controller's metrics, looked up once.
#[derive(Clone)]
pub struct ControllerMetrics {
    pub(super) adds: IntCounter,
    pub(super) queue_duration: Histogram,
    pub(super) work_duration: Histogram,
    pub(super) retries: IntCounter,
    pub(super) success: IntCounter,
    pub(super) error: IntCounter,
    pub(super) requeue: IntCounter,
    pub(super) requeue_after: IntCounter,
    pub(super) errors: IntCounter,
    pub(super) terminal: IntCounter,
    pub(super) panics: IntCounter,
    pub(super) timeouts: IntCounter,
    pub(super) reconcile_time: Histogram,
    pub(super) call_time: Histogram,
    pub(super) call_errors: IntCounterVec,
    pub(super) breaker: IntCounter,
    pub(super) plugin: String,
    pub(super) effects: IntCounterVec,
    pub(super) label: String,
    /// Applies that were skipped because they would have changed nothing.
    pub(crate) skipped_applies: IntCounter,
    /// Turns whose own writes did not show up in the store in time.
    pub(crate) own_write_timeouts: IntCounter,
    /// Counters of wake-ups.
    pub(crate) wakes: WakeMetrics,
}

/// Counters of a controller's wake-ups, and of changes and keys that were held back.
#[derive(Clone)]
pub(crate) struct WakeMetrics {
    /// Changes that a predicate filtered out.
    pub(crate) filtered: IntCounter,
    /// Predicate evaluations that failed, so that the change enqueued its keys.
    pub(crate) predicate_errors: IntCounter,
    /// Keys that were given up after their last retry.
    pub(crate) dropped: IntCounter,
    /// Keys that were held because their own turns kept waking them.
    pub(crate) hot: IntCounter,
    pub(super) mapped: [IntCounter; 2],
}

impl WakeMetrics {
    /// Counts a call of `map-changes` that ended in `success` or `error`.
    pub(crate) fn mapped(&self, result: &str) {
        self.mapped[usize::from(result != "success")].inc();
    }
}

/// The result of a turn, as controller-runtime counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnResult {
    /// The turn succeeded.
    Success,
    /// `requeue`.
    Requeue,
    /// `requeue-after-ms`.
    RequeueAfter,
    /// The turn failed and is retried.
    Error,
    /// The turn failed and is not retried until something changes.
    Terminal,
}

impl TurnResult {
    /// The name, as the label `result` of controller-runtime's metrics. There, terminal failures
    /// are errors too.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            TurnResult::Success => "success",
            TurnResult::Requeue => "requeue",
            TurnResult::RequeueAfter => "requeue_after",
            TurnResult::Error => "error",
            TurnResult::Terminal => "terminal",
        }
    }
}

/// The label of metrics and log lines: `<plugin>/<controller>`, or only the name if both are equal.
pub(crate) fn controller_label(plugin: &str, name: &str) -> String {
    if plugin == name {
        name.to_owned()
    } else {
        format!("{plugin}/{name}")
    }
}

impl ControllerMetrics {
    pub(super) fn turn(&self, result: TurnResult) {
        match result {
            TurnResult::Success => self.success.inc(),
            TurnResult::Requeue => self.requeue.inc(),
            TurnResult::RequeueAfter => self.requeue_after.inc(),
            TurnResult::Error => {
                self.error.inc();
                self.errors.inc();
            }
            TurnResult::Terminal => {
                self.error.inc();
                self.errors.inc();
                self.terminal.inc();
            }
        }
    }

    /// The label of the metrics. The same controller in several clusters has one.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// The number of turns since the host started, over all generations and clusters.
    pub(crate) fn turns(&self) -> u64 {
        let counters = [
            &self.success,
            &self.requeue,
            &self.requeue_after,
            &self.error,
        ];
        counters.iter().map(|counter| counter.get()).sum()
    }

    /// The number of these turns that failed.
    pub(crate) fn failed_turns(&self) -> u64 {
        self.error.get()
    }

    /// Counts a call that returned no outcome.
    pub(crate) fn call_error(&self, error: &CallError) {
        self.call_errors
            .with_label_values(&[self.plugin.as_str(), error.kind()])
            .inc();
        match error {
            CallError::Trap { .. } => self.panics.inc(),
            CallError::Deadline(_) => self.timeouts.inc(),
            _ => {}
        }
    }

    /// Counts an opening of the plugin's circuit breaker.
    pub(crate) fn breaker_opened(&self) {
        self.breaker.inc();
    }

    /// Counts an effect by its result.
    pub(crate) fn effect(&self, verb: &str, result: &str) {
        self.effects
            .with_label_values(&[self.label.as_str(), verb, result])
            .inc();
    }
}

impl vmhost_queue::Metrics for ControllerMetrics {
    fn add(&self, _lane: Lane) {
        self.adds.inc();
    }

    fn retry(&self) {
        self.retries.inc();
    }
}
