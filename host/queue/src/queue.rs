//! **Get.** The queue's handle: each method hashes the key, takes the lock once, and delegates to
//! `rules` and `state`.
//!
//! The method names are those of client-go (`queue.go`, `delaying_queue.go`,
//! `rate_limiting_queue.go`) in Rust spelling.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::lease::Lease;
use crate::metrics::Stats;
use crate::state::{Next, Phase, State};
use crate::tag::Tag;
use crate::tagged::Tagged;
use crate::wait::Shared;

/// A workqueue; the crate's documentation lists its promises. Clones are handles of the same queue.
///
/// Adds of any kind after [`Queue::shut_down`] are silently ignored, as in client-go.
pub struct Queue<K, T: Tag = ()> {
    pub(crate) shared: Arc<Shared<K, T>>,
}

impl<K, T: Tag> Clone for Queue<K, T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Hash + Eq + Clone + Send + 'static, T: Tag> Queue<K, T> {
    /// Creates an empty queue. Starts no task and needs no runtime; only a waiting [`Queue::get`]
    /// needs one.
    pub fn new(config: Config) -> Self {
        Self {
            shared: Arc::new(Shared::new(State::new(config))),
        }
    }

    /// Returns the functions that add keys, with a tag for the run that each add causes.
    pub fn tagged(&self, tag: T) -> Tagged<'_, K, T> {
        Tagged {
            shared: &self.shared,
            tag,
        }
    }

    /// As [`Tagged::add`], without a tag.
    pub fn add(&self, key: K) {
        self.tagged(T::default()).add(key);
    }

    /// As [`Tagged::add_low`], without a tag.
    pub fn add_low(&self, key: K) {
        self.tagged(T::default()).add_low(key);
    }

    /// As [`Tagged::add_low_all`], without a tag.
    pub fn add_low_all(&self, keys: impl IntoIterator<Item = K>) {
        self.tagged(T::default()).add_low_all(keys);
    }

    /// As [`Tagged::add_unless_backing_off`], without a tag.
    pub fn add_unless_backing_off(&self, key: K) {
        self.tagged(T::default()).add_unless_backing_off(key);
    }

    /// As [`Tagged::add_after`], without a tag.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.tagged(T::default()).add_after(key, delay);
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

    /// As [`Queue::clear_back_offs`], for one key.
    pub fn clear_back_off(&self, key: &K) {
        let hash = self.shared.hash(key);
        self.shared.with(|state| state.clear_back_off(hash, key));
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
    pub async fn get(&self) -> Option<Lease<K, T>> {
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
    pub fn try_get(&self) -> Option<Lease<K, T>> {
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

impl<K: Hash + Eq + Clone + Send + 'static, T: Tag> fmt::Debug for Queue<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("stats", &self.stats())
            .finish()
    }
}
