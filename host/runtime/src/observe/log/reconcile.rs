//! Which turn a log line is about: kept beside the turn, and looked at only when a line is written.
//!
//! A span of `tracing` would do the same, but is formatted when it begins: most turns write no line, and would pay for one, and for a random id.

use std::sync::{Arc, OnceLock};

use tokio::task::futures::TaskLocalFuture;
use uuid::Uuid;
use vmhost_core::ObjectName;

tokio::task_local! {
    static CURRENT: Arc<Reconcile>;
}

/// A turn, by the names that controller-runtime gives to these things in its log.
#[derive(Debug)]
pub struct Reconcile {
    /// `controller`: the label of its metrics.
    pub(crate) controller: Arc<str>,
    /// `generation` of the plugin.
    pub(crate) generation: u64,
    /// `object`, and its parts `namespace` and `name`.
    pub(crate) object: ObjectName,
    id: OnceLock<Uuid>,
}

impl Reconcile {
    /// A turn of this key.
    pub(crate) fn new(controller: Arc<str>, generation: u64, object: ObjectName) -> Arc<Self> {
        Arc::new(Self {
            controller,
            generation,
            object,
            id: OnceLock::new(),
        })
    }

    /// `reconcileID`: random, the same on all lines of the turn.
    pub(crate) fn id(&self) -> Uuid {
        *self.id.get_or_init(Uuid::new_v4)
    }

    /// Lines that `work` writes are about this turn. Not an `async fn`, which would hold `work` twice: once as it was given, once as it runs.
    pub(crate) fn scope<F: Future>(self: Arc<Self>, work: F) -> TaskLocalFuture<Arc<Self>, F> {
        CURRENT.scope(self, work)
    }

    /// Shows the turn that is running here, if there is one.
    pub(super) fn with_current<T>(look: impl FnOnce(&Self) -> T) -> Option<T> {
        CURRENT.try_with(|turn| look(turn)).ok()
    }
}
