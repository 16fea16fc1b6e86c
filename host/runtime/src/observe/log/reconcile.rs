//! The turn that a log line belongs to. It is kept beside the turn and read only when a line is
//! written.
//!
//! A `tracing` span would do the same, but a span is formatted when it begins. Most turns write no
//! line, and would still pay for a span and a random id.

use std::sync::{Arc, OnceLock};

use tokio::task::futures::TaskLocalFuture;
use uuid::Uuid;
use vmhost_core::ObjectName;
use vmhost_otlp::Context;

use crate::observe::trace::TurnTrace;

tokio::task_local! {
    static CURRENT: Arc<Reconcile>;
}

/// A turn, with the field names that controller-runtime uses in its log.
#[derive(Debug)]
pub struct Reconcile {
    /// `controller`: the label in metrics.
    pub(crate) controller: Arc<str>,
    /// `generation`: the plugin's generation number.
    pub(crate) generation: u64,
    /// `object`, and its parts `namespace` and `name`.
    pub(crate) object: ObjectName,
    /// The turn's trace, if it is exported.
    pub(crate) trace: Option<Arc<TurnTrace>>,
    id: OnceLock<Uuid>,
}

impl Reconcile {
    /// A turn of this key.
    pub(crate) fn new(controller: Arc<str>, generation: u64, object: ObjectName) -> Arc<Self> {
        Arc::new(Self {
            controller,
            generation,
            object,
            trace: None,
            id: OnceLock::new(),
        })
    }

    /// `reconcileID`: a random id, the same on all lines of the turn.
    pub(crate) fn id(&self) -> Uuid {
        *self.id.get_or_init(Uuid::new_v4)
    }

    /// `trace_id` and `span_id`, if the turn is exported.
    pub(super) fn context(&self) -> Option<Context> {
        Some(self.trace.as_ref()?.root())
    }

    /// Runs `work` so that its log lines name this turn. This is not an `async fn`, which would
    /// hold `work` twice: once as an argument, once as it runs.
    pub(crate) fn scope<F: Future>(self: Arc<Self>, work: F) -> TaskLocalFuture<Arc<Self>, F> {
        CURRENT.scope(self, work)
    }

    /// Calls `look` with the turn of the current task, if there is one.
    pub(super) fn with_current<T>(look: impl FnOnce(&Self) -> T) -> Option<T> {
        CURRENT.try_with(|turn| look(turn)).ok()
    }
}
