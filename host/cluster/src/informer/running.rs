//! One running informer: the state that its task and its users share. This module must not know how
//! the task lists and watches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::notice::{Notice, Subscriber};
use super::observer::InformerObserver;
use super::spec::WatchSpec;
use super::state::{InformerState, Phase, Progress};
use crate::discovery::KindNames;
use crate::store::Store;
use crate::text::Ingest;

/// A running informer. Dropping it stops the task.
pub(super) struct Running {
    pub shared: Arc<Shared>,
    pub stop: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The state that an informer's task and its users share.
pub(crate) struct Shared {
    /// Number of the informer, in the order of their start.
    pub(super) id: u64,
    /// What is watched, with the fields that all its users want; the store knows the indexes.
    pub(super) spec: WatchSpec,
    pub(super) store: Arc<Store>,
    /// Parses the informer's objects.
    pub(super) ingest: Ingest,
    pub(super) observer: Arc<dyn InformerObserver>,
    /// Held from a change of the store until all subscribers are notified, so that a subscriber
    /// that comes or goes meanwhile misses nothing and gets nothing twice. While the gate is held,
    /// only locks with short holds may be taken.
    gate: Mutex<()>,
    /// Replaced as a whole, so that no subscriber is called under this lock.
    subscribers: Mutex<Arc<Subscribers>>,
    /// Number of subscriptions that use the store.
    pub(super) users: AtomicUsize,
    pub(super) progress: Mutex<Progress>,
    /// How users call the kind. `None` before the server has told it.
    pub(super) names: Mutex<Option<Arc<KindNames>>>,
    born: Instant,
    /// Time of the last sign of life, in milliseconds after `born` plus 1; 0 before the first.
    heard: AtomicU64,
}

type Subscribers = Vec<(u64, Arc<dyn Subscriber>)>;

impl Shared {
    pub(super) fn new(id: u64, spec: WatchSpec, observer: Arc<dyn InformerObserver>) -> Arc<Self> {
        Arc::new(Self {
            id,
            ingest: Ingest::new(&spec.kind, &spec.wanted),
            spec,
            store: Arc::default(),
            observer,
            gate: Mutex::default(),
            subscribers: Mutex::default(),
            users: AtomicUsize::new(0),
            progress: Mutex::default(),
            names: Mutex::default(),
            born: Instant::now(),
            heard: AtomicU64::new(0),
        })
    }

    /// Records a sign of life: data of a list or watch, or the head of an answer.
    pub(super) fn hear(&self) {
        let now = self.born.elapsed().as_millis() as u64;
        self.heard.store(now + 1, Ordering::Relaxed);
    }

    /// How long ago the last sign of life was; `None` before the first.
    pub(super) fn silence(&self) -> Option<Duration> {
        let heard = self.heard.load(Ordering::Relaxed).checked_sub(1)?;
        Some(
            self.born
                .elapsed()
                .saturating_sub(Duration::from_millis(heard)),
        )
    }

    /// Takes the gate: while it is held, the store does not change and no subscriber is notified.
    pub(super) fn gate(&self) -> MutexGuard<'_, ()> {
        self.gate.lock()
    }

    /// Takes the gates of two different informers, always in the same order.
    pub(super) fn gates<'a>(a: &'a Self, b: &'a Self) -> [MutexGuard<'a, ()>; 2] {
        let (first, second) = if a.id < b.id { (a, b) } else { (b, a) };
        [first.gate(), second.gate()]
    }

    /// Adds a subscriber to the notices.
    pub(super) fn add(&self, id: u64, subscriber: Arc<dyn Subscriber>) {
        Arc::make_mut(&mut self.subscribers.lock()).push((id, subscriber));
    }

    /// Removes a subscriber from the notices, except for a notice that is being delivered.
    pub(super) fn remove(&self, id: u64) {
        let mut subscribers = self.subscribers.lock();
        if subscribers.iter().any(|(other, _)| *other == id) {
            Arc::make_mut(&mut subscribers).retain(|(other, _)| *other != id);
        }
    }

    /// Notifies all subscribers. The store has already changed, and the caller holds the gate.
    pub(super) fn notify(&self, notice: Notice<'_>) {
        let subscribers = self.subscribers.lock().clone();
        for (_, subscriber) in subscribers.iter() {
            subscriber.notice(notice);
        }
    }
}

/// Closes the store however the task ends, so that no waiter hangs.
pub(super) struct Closing(pub Arc<Store>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
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
        let progress = self.progress.lock();
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
        count(&mut self.progress.lock());
    }

    /// Enters a phase. The observer is called only if the phase differs from the last one, so that
    /// a log has one line per change and not per retry.
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
