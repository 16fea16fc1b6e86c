//! How an informer does, in words.

use std::fmt;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Shared, WatchSpec};

/// What an informer is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing was answered yet.
    #[default]
    Starting,
    /// The cluster does not serve the kind: it waits until it does.
    WaitingForKind,
    /// It lists.
    Listing,
    /// The store follows the cluster.
    Watching,
    /// RBAC does not allow it.
    Forbidden {
        /// `watch` or `list`.
        verb: &'static str,
        /// What the server said.
        message: String,
    },
    /// The last request failed; it tries again.
    Failing {
        /// What happened, on one line.
        reason: String,
    },
}

/// A snapshot of an informer. Displays as one line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InformerState {
    /// What it watches, and what it keeps for all who share it: the fields (`spec.wanted` displays as a short text) and the indexes.
    pub spec: WatchSpec,
    /// What it is doing.
    pub phase: Phase,
    /// Has the first list ended?
    pub synced: bool,
    /// Objects in the store.
    pub objects: usize,
    /// Memory of the store, about.
    pub bytes: usize,
    /// The version up to which the store is complete.
    pub position: u64,
    /// Lists after the first.
    pub relists: u64,
    /// Objects that could not be kept.
    pub skipped: u64,
    /// Failed requests.
    pub failures: u64,
    /// Subscriptions that use its store. None: it is about to stop, or its users wait for its first list elsewhere.
    pub subscribers: usize,
    /// How long ago the last sign of life came: an event, a bookmark, a part of a list, or the head
    /// of an answer. `None` before the first.
    pub silence: Option<Duration>,
}

#[derive(Debug, Default)]
pub(super) struct Progress {
    pub phase: Phase,
    pub relists: u64,
    pub skipped: u64,
    pub failures: u64,
}

impl Shared {
    pub(super) fn state(&self) -> InformerState {
        let store = &self.store;
        let (objects, bytes, position, synced) = (
            store.len(),
            store.bytes(),
            store.position(),
            store.is_synced(),
        );
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let Progress {
            ref phase,
            relists,
            skipped,
            failures,
        } = *progress;
        InformerState {
            spec: WatchSpec {
                indexes: store.indexes(),
                ..self.spec.clone()
            },
            phase: phase.clone(),
            synced,
            objects,
            bytes,
            position,
            relists,
            skipped,
            failures,
            subscribers: self.users.load(Ordering::Relaxed),
            silence: self.silence(),
        }
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut Progress)) {
        count(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Enters a phase. Only another one than before is told, so that a log has one line a change and not one a retry.
    pub(super) fn enter(&self, phase: Phase) {
        let mut changed = false;
        self.count(|progress| {
            changed = std::mem::discriminant(&progress.phase) != std::mem::discriminant(&phase);
            progress.phase = phase;
        });
        if changed {
            self.observer.state(&self.spec.kind, &self.state());
        }
    }
}

impl fmt::Display for InformerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = &self.spec.kind;
        let place = Place(&self.spec);
        match &self.phase {
            Phase::Starting => write!(f, "starting to watch {kind} {place}"),
            Phase::WaitingForKind => write!(
                f,
                "kind {kind} is not served by the cluster yet: waiting for its CRD"
            ),
            Phase::Listing => write!(f, "listing {kind} {place}"),
            Phase::Watching => write!(f, "watching {kind} {place}: {} objects", self.objects),
            Phase::Forbidden { verb, message } => {
                write!(
                    f,
                    "may not {verb} {kind} {place}: RBAC is missing, grant it; trying again ({message})"
                )
            }
            Phase::Failing { reason } => {
                write!(f, "cannot watch {kind} {place}; trying again: {reason}")
            }
        }
    }
}

/// Which objects of the kind.
struct Place<'a>(&'a WatchSpec);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.namespace {
            Some(namespace) => write!(f, "in namespace {namespace}")?,
            None => f.write_str("in all namespaces")?,
        }
        for selector in [&self.0.label_selector, &self.0.field_selector]
            .into_iter()
            .flatten()
        {
            write!(f, " ({selector})")?;
        }
        Ok(())
    }
}
