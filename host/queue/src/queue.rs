//! The queue's handle: each method hashes the key, takes the lock once, and delegates to `rules`
//! and `state`.
//!
//! The method names are those of client-go (`queue.go`, `delaying_queue.go`,
//! `rate_limiting_queue.go`) in Rust spelling.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::lease::Lease;
use crate::limit::nanos;
use crate::metrics::Stats;
use crate::rules::Cause;
use crate::state::{Next, Phase, State};
use crate::wait::Shared;

/// Number of keys that [`Queue::add_low_all`] adds in one hold of the lock: a few microseconds, so
/// that a concurrent fresh add spins for the lock and does not sleep.
const ADD_BATCH: usize = 32;

/// A workqueue; the crate's documentation lists its promises. Clones are handles of the same queue.
///
/// Adds of any kind after [`Queue::shut_down`] are silently ignored, as in client-go.
pub struct Queue<K> {
    pub(crate) shared: Arc<Shared<K>>,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Hash + Eq + Clone + Send + 'static> Queue<K> {
    /// Creates an empty queue. Starts no task and needs no runtime; only a waiting [`Queue::get`]
    /// needs one.
    pub fn new(config: Config) -> Self {
        Self {
            shared: Arc::new(Shared::new(State::new(config))),
        }
    }

    fn add_for(&self, key: K, cause: Cause) {
        let hash = self.shared.hash(&key);
        self.shared.with(|state| state.add(hash, key, cause));
    }

    /// Adds a key with a fresh change to the high lane. A key that waits in the low lane moves up.
    /// The add replaces a pending delayed add of the key: the key runs now, but keeps its failures.
    pub fn add(&self, key: K) {
        self.add_for(key, Cause::Fresh);
    }

    /// Adds a key without a change (initial list, resync, after a swap) to the low lane. Never
    /// moves a key down from the high lane, and keeps a pending `add_after`.
    pub fn add_low(&self, key: K) {
        self.add_for(key, Cause::Low);
    }

    /// As [`Queue::add_low`] for many keys, in small batches: other callers get the lock in
    /// between.
    pub fn add_low_all(&self, keys: impl IntoIterator<Item = K>) {
        let mut keys = keys.into_iter();
        let mut batch = Vec::with_capacity(ADD_BATCH);
        loop {
            batch.extend(
                keys.by_ref()
                    .take(ADD_BATCH)
                    .map(|key| (self.shared.hash(&key), key)),
            );
            if batch.is_empty() {
                return;
            }
            self.shared.with(|state| {
                for (hash, key) in batch.drain(..) {
                    state.add(hash, key, Cause::Low);
                }
            });
        }
    }

    /// Adds a key with the event of this host's own write: as [`Queue::add`], but does not shorten
    /// a backoff. An event that arrives during the run belongs to that run: if the run fails, the
    /// retry covers the event; if it succeeds, the key runs again.
    pub fn add_unless_backing_off(&self, key: K) {
        self.add_for(key, Cause::Own);
    }

    /// Adds the key to the high lane after a delay; the earliest of several pending delays wins. A
    /// zero delay is [`Queue::add`].
    pub fn add_after(&self, key: K, delay: Duration) {
        let hash = self.shared.hash(&key);
        self.shared
            .with(|state| state.add_after(hash, key, nanos(delay)));
    }

    /// Drops the key's failures. A pending delayed add stays, as in client-go. A worker uses
    /// [`crate::Decision::Forget`] instead.
    pub fn forget(&self, key: &K) {
        if self.shared.nothing_fails() {
            return;
        }
        let hash = self.shared.hash(key);
        self.shared.with(|state| state.forget(hash, key));
    }

    /// The key's counted failures since the last [`Queue::forget`].
    pub fn num_requeues(&self, key: &K) -> u32 {
        if self.shared.nothing_fails() {
            return 0;
        }
        let hash = self.shared.hash(key);
        self.shared.with(|state| state.num_requeues(hash, key))
    }

    /// Drops all failures, after a swap; keys that wait for a backoff go to the low lane at once,
    /// in no particular order. Delays of [`Queue::add_after`] stay. Works in batches: a failure
    /// that comes in meanwhile may stay.
    pub fn clear_back_offs(&self) {
        let mut from = Some(0);
        while let Some(at) = from {
            from = self.shared.with(|state| state.clear_back_offs(at));
        }
    }

    /// Every key that the queue knows: queued, delayed, running, or with failures. Works in
    /// batches: a key that comes or goes meanwhile may be missed.
    pub fn keys(&self) -> Vec<K> {
        let mut keys = Vec::new();
        let mut from = Some(0);
        while let Some(at) = from {
            from = self.shared.with(|state| state.keys(at, &mut keys));
        }
        keys
    }

    /// Waits for a key. Returns `None` once the queue is shut down and has nothing more to hand
    /// out. Cancel-safe: a dropped future takes no key and loses no wake-up. Must be polled in a
    /// tokio runtime with time enabled.
    pub async fn get(&self) -> Option<Lease<K>> {
        let mut next = self.shared.with(State::next);
        loop {
            match next {
                Next::Key(taken) => return Some(Lease::new(Arc::clone(&self.shared), taken)),
                Next::Closed => return None,
                Next::Nothing => next = self.shared.wait().await,
            }
        }
    }

    /// Returns a key if one is ready now.
    pub fn try_get(&self) -> Option<Lease<K>> {
        match self.shared.with(State::next) {
            Next::Key(taken) => Some(Lease::new(Arc::clone(&self.shared), taken)),
            Next::Closed | Next::Nothing => None,
        }
    }

    /// Starts a shutdown: new keys and pending delays are dropped; queued keys, and keys that are
    /// dirty at the end of a run, are still handed out (client-go's `ShutDown`), unless a floor
    /// holds them.
    pub fn shut_down(&self) {
        self.shared.with(|state| state.shut_down(Phase::Draining));
        self.shared.wake_all();
    }

    /// As [`Queue::shut_down`], but nothing is handed out any more: for a process that must end.
    pub fn shut_down_now(&self) {
        self.shared.with(|state| state.shut_down(Phase::Closed));
        self.shared.wake_all();
    }

    /// Resolves when no key is in processing and, after [`Queue::shut_down`], none is queued.
    /// Before a shutdown, a moment without runs may go unnoticed.
    pub async fn drained(&self) {
        self.shared.drained().await;
    }

    /// Queues the keys whose delay is over, so that observers see them.
    fn settle(&self) {
        while self.shared.with(State::fire) {}
    }

    /// Number of keys that wait in the lanes, without those in processing and the delayed ones.
    pub fn len(&self) -> usize {
        let stats = self.stats();
        stats.high + stats.low
    }

    /// Returns whether no key waits in the lanes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A snapshot of the queue. Takes time linear in the number of keys in processing.
    pub fn stats(&self) -> Stats {
        self.settle();
        self.shared.with(|state| state.stats())
    }
}

impl<K: Hash + Eq + Clone + Send + 'static> fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("stats", &self.stats())
            .finish()
    }
}
