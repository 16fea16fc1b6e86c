//! One controller's metrics, looked up once, and what they call the end of a turn.

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
    /// Applies that were left out since nothing would have changed.
    pub(crate) skipped_applies: IntCounter,
    /// Turns that did not see their own writes in time.
    pub(crate) own_write_timeouts: IntCounter,
    /// What wakes keys and what keeps them from it.
    pub(crate) wakes: WakeMetrics,
}

/// What wakes a controller's keys, and what keeps them from it.
#[derive(Clone)]
pub(crate) struct WakeMetrics {
    /// Changes that a predicate kept from waking anybody.
    pub(crate) filtered: IntCounter,
    /// Predicates that could not be decided, so that the change woke.
    pub(crate) predicate_errors: IntCounter,
    /// Keys that were given up after their last retry.
    pub(crate) dropped: IntCounter,
    /// How often a key was held since it kept itself busy.
    pub(crate) hot: IntCounter,
    pub(super) mapped: [IntCounter; 2],
}

impl WakeMetrics {
    /// A call of `map-changes` ended in `success` or `error`.
    pub(crate) fn mapped(&self, result: &str) {
        self.mapped[usize::from(result != "success")].inc();
    }
}

/// What a turn ended in, as controller-runtime counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnResult {
    /// All done.
    Success,
    /// `requeue`.
    Requeue,
    /// `requeue-after-ms`.
    RequeueAfter,
    /// Tried again.
    Error,
    /// Not tried again until something changes.
    Terminal,
}

/// `<plugin>/<controller>`, or the name alone when both are the same: the label of metrics and log lines.
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

    /// A call returned no outcome.
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

    /// The plugin's circuit breaker opened.
    pub(crate) fn breaker_opened(&self) {
        self.breaker.inc();
    }

    /// An effect was carried out or refused.
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
