//! The interface of informers to logs and metrics.

use vmhost_core::Gvk;

use super::state::InformerState;
use crate::text::IngestError;

/// Receives the state of informers for logs and metrics. Implementations must be quick.
pub trait InformerObserver: Send + Sync {
    /// The phase changed (not called for each retry). `state` formats as one line for the log.
    fn state(&self, kind: &Gvk, state: &InformerState);
    /// The informer lists again, for this reason.
    fn relist(&self, _kind: &Gvk, _reason: &str) {}
    /// Three times in a row the server had compacted a list's version before a watch from it
    /// delivered anything. The informer lists again, with growing delays. Called once, until a
    /// watch has delivered something.
    fn keeps_expiring(&self, _kind: &Gvk, _reason: &str) {}
    /// The API server's newest version, `to`, is lower than the store's, `from`. The next list
    /// overrides the store, and each of its objects is notified as [`super::NoticeCause::Rewound`].
    fn rewound(&self, _kind: &Gvk, _from: u64, _to: u64) {}
    /// An object could not be kept. Other objects are not affected.
    fn skipped(&self, _kind: &Gvk, _error: &IngestError) {}
    /// A request failed and will be retried. Called for each attempt.
    fn failed(&self, _kind: &Gvk, _error: &str) {}
}

/// An observer that does nothing.
#[derive(Debug)]
pub struct NoInformerObserver;

impl InformerObserver for NoInformerObserver {
    fn state(&self, _kind: &Gvk, _state: &InformerState) {}
}
