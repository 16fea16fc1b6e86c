//! One informer that runs: what its task and those who use it share.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{InformerObserver, Notice, Subscriber, WatchSpec, state};
use crate::store::Store;
use crate::text::Ingest;

/// An informer. Its end is the task's.
pub(super) struct Running {
    pub shared: Arc<Shared>,
    pub stop: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What an informer's task and its users share.
pub(crate) struct Shared {
    /// Tells informers apart, in the order of their start.
    pub(super) id: u64,
    /// What is watched, with what all who share it want; the indexes are the store's.
    pub(super) spec: WatchSpec,
    pub(super) store: Arc<Store>,
    /// How its objects are read.
    pub(super) ingest: Ingest,
    pub(super) observer: Arc<dyn InformerObserver>,
    /// Held from a change of the store until all are told, so that who comes or goes meanwhile misses nothing and is told nothing twice. No other lock is waited
    /// for under it but those that nobody holds for long.
    gate: Mutex<()>,
    /// Replaced as a whole, so that nobody is called under this lock.
    subscribers: Mutex<Arc<Subscribers>>,
    /// How many subscriptions use the store.
    pub(super) users: AtomicUsize,
    pub(super) progress: Mutex<state::Progress>,
    born: Instant,
    /// When the last sign of life came, in milliseconds after `born` plus 1; 0 before the first.
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
            born: Instant::now(),
            heard: AtomicU64::new(0),
        })
    }

    /// The list or the watch has brought something, or the head of its answer has come.
    pub(super) fn hear(&self) {
        let now = self.born.elapsed().as_millis() as u64;
        self.heard.store(now + 1, Ordering::Relaxed);
    }

    /// How long ago the last sign of life came; `None` before the first.
    pub(super) fn silence(&self) -> Option<Duration> {
        let heard = self.heard.load(Ordering::Relaxed).checked_sub(1)?;
        Some(
            self.born
                .elapsed()
                .saturating_sub(Duration::from_millis(heard)),
        )
    }

    /// The store does not change, and nobody is told anything, while this is held.
    pub(super) fn gate(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Both gates, in the one order in which all take them. They must be two.
    pub(super) fn gates<'a>(a: &'a Self, b: &'a Self) -> [MutexGuard<'a, ()>; 2] {
        let (first, second) = if a.id < b.id { (a, b) } else { (b, a) };
        [first.gate(), second.gate()]
    }

    /// From now on it is told.
    pub(super) fn add(&self, id: u64, subscriber: Arc<dyn Subscriber>) {
        Arc::make_mut(&mut self.subscribers()).push((id, subscriber));
    }

    /// From now on it is not told, but for a change that is being told already.
    pub(super) fn remove(&self, id: u64) {
        let mut subscribers = self.subscribers();
        if subscribers.iter().any(|(other, _)| *other == id) {
            Arc::make_mut(&mut subscribers).retain(|(other, _)| *other != id);
        }
    }

    /// Tells all. The store has changed already, and the gate is held.
    pub(super) fn notify(&self, notice: Notice<'_>) {
        let subscribers = self.subscribers().clone();
        for (_, subscriber) in subscribers.iter() {
            subscriber.notice(notice);
        }
    }

    fn subscribers(&self) -> MutexGuard<'_, Arc<Subscribers>> {
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the store however its task ends, so that nobody waits for ever.
pub(super) struct Closing(pub Arc<Store>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}
