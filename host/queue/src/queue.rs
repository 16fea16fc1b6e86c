//! The handle: each method hashes the key, takes the lock once, and leaves the meaning to `rules` and `state`.
//!
//! Method names are client-go's (`queue.go`, `delaying_queue.go`, `rate_limiting_queue.go`) in Rust spelling.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use crate::lease::Lease;
use crate::limit::{BackOff, Bucket, nanos};
use crate::metrics::{Metrics, NoMetrics, Stats};
use crate::rules::{Cause, Given};
use crate::state::{Next, Phase, State};
use crate::wait::Shared;

/// Keys added in one hold of the lock by [`Queue::add_low_all`]: a few microseconds, so that a fresh add in between waits no
/// longer than a spinning lock waits.
const ADD_BATCH: usize = 32;

/// How a queue behaves. The default is client-go's exponential back-off per key, no bucket, no metrics.
#[derive(Clone)]
pub struct Config {
    /// The wait of one key after its failures.
    pub back_off: BackOff,
    /// A rate limit over the failures of all keys. client-go has one by default, controller-runtime not.
    pub bucket: Option<Bucket>,
    /// Who is told.
    pub metrics: Arc<dyn Metrics>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            back_off: BackOff::default(),
            bucket: None,
            metrics: Arc::new(NoMetrics),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("back_off", &self.back_off)
            .field("bucket", &self.bucket)
            .finish_non_exhaustive()
    }
}

/// A workqueue; see the crate's page for its promises. Clones are handles of the same queue.
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
    /// An empty queue. Starts no task and needs no runtime; only a waiting [`Queue::get`] does.
    pub fn new(config: Config) -> Self {
        Self {
            shared: Arc::new(Shared::new(State::new(config))),
        }
    }

    fn add_for(&self, key: impl Given<K>, cause: Cause) {
        let hash = self.shared.hash(key.key());
        self.shared.with(|state| state.add(hash, key, cause));
    }

    /// A fresh change: into the high lane. A key that waits in the low lane moves up. A pending delayed add of the key is
    /// replaced: the key runs now, but keeps its failures.
    pub fn add(&self, key: K) {
        self.add_for(key, Cause::Fresh);
    }

    /// [`Queue::add`] of a key that the caller keeps: it is cloned only if the queue does not know it.
    pub fn add_ref(&self, key: &K) {
        self.add_for(key, Cause::Fresh);
    }

    /// No change, but look at it again (initial list, resync, after a swap): into the low lane. Never moves a key down from
    /// the high lane, and leaves a pending `add_after` alone.
    pub fn add_low(&self, key: K) {
        self.add_for(key, Cause::Low);
    }

    /// [`Queue::add_low`] for many keys, in small batches: other callers get the lock in between.
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

    /// The event of this host's own write: as [`Queue::add`], but does not shorten a back-off. One that arrives during the
    /// run is part of that run: if the run then fails, the retry covers it; if it succeeds, the key runs again.
    pub fn add_unless_backing_off(&self, key: K) {
        self.add_for(key, Cause::Own);
    }

    /// Adds the key after a delay, into the high lane; of several pending delays the earliest wins. Zero is [`Queue::add`].
    pub fn add_after(&self, key: K, delay: Duration) {
        let hash = self.shared.hash(&key);
        self.shared
            .with(|state| state.add_after(hash, key, nanos(delay)));
    }

    /// A failure: adds the key after its back-off and the bucket's wait, whichever is longer. A retry goes back to the lane
    /// of the run that failed, so that a swap that fails for every key does not get ahead of fresh changes.
    ///
    /// The failure of a run that had cut a back-off short is not counted; the retry comes when that back-off ends.
    pub fn add_rate_limited(&self, key: K) {
        self.add_rate_limited_at_least(key, Duration::ZERO);
    }

    /// [`Queue::add_rate_limited`], but not before `at_least`. As any back-off, it is cut short by
    /// [`Queue::add`].
    pub fn add_rate_limited_at_least(&self, key: K, at_least: Duration) {
        let hash = self.shared.hash(&key);
        self.shared
            .with(|state| state.add_rate_limited(hash, key, nanos(at_least), false));
    }

    /// [`Queue::add_rate_limited_at_least`] with a floor (Retry-After): until `at_least` is over
    /// the key is not handed out, whatever adds it meanwhile, nor after [`Queue::clear_back_offs`].
    /// An add within that time brings it up at its end.
    pub fn add_rate_limited_not_before(&self, key: K, at_least: Duration) {
        let hash = self.shared.hash(&key);
        self.shared
            .with(|state| state.add_rate_limited(hash, key, nanos(at_least), true));
    }

    /// The key is fine, or gone: its failures are dropped. A pending delayed add stays, as in client-go.
    pub fn forget(&self, key: &K) {
        // What nearly every run ends with.
        if self.shared.nothing_fails() {
            return;
        }
        let hash = self.shared.hash(key);
        self.shared.with(|state| state.forget(hash, key));
    }

    /// Counted failures since the last [`Queue::forget`].
    pub fn num_requeues(&self, key: &K) -> u32 {
        if self.shared.nothing_fails() {
            return 0;
        }
        let hash = self.shared.hash(key);
        self.shared.with(|state| state.num_requeues(hash, key))
    }

    /// After a swap: drops all failures; keys that wait for a back-off go to the low lane at once, in no particular order.
    /// Delays of [`Queue::add_after`] stay. Done in batches: a failure that comes in meanwhile may stay.
    pub fn clear_back_offs(&self) {
        let mut from = Some(0);
        while let Some(at) = from {
            from = self.shared.with(|state| state.clear_back_offs(at));
        }
    }

    /// Every key that the queue knows: queued, delayed, running, or with failures. Done in batches: one that comes or goes meanwhile may be missed.
    pub fn keys(&self) -> Vec<K> {
        let mut keys = Vec::new();
        let mut from = Some(0);
        while let Some(at) = from {
            from = self.shared.with(|state| state.keys(at, &mut keys));
        }
        keys
    }

    /// Waits for a key. `None` once the queue is shut down and has nothing more to hand out. Cancel-safe: a dropped future
    /// takes no key and loses no wake-up. Must be polled in a tokio runtime with time enabled.
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

    /// A key, if one is ready now.
    pub fn try_get(&self) -> Option<Lease<K>> {
        match self.shared.with(State::next) {
            Next::Key(taken) => Some(Lease::new(Arc::clone(&self.shared), taken)),
            Next::Closed | Next::Nothing => None,
        }
    }

    /// No new keys from now on, and no pending delays; what is queued, and what becomes dirty again by the end of a run, is
    /// still handed out (client-go's `ShutDown`), unless a floor holds it.
    pub fn shut_down(&self) {
        self.shared.with(|state| state.shut_down(Phase::Draining));
        self.shared.wake_all();
    }

    /// As [`Queue::shut_down`], but nothing is handed out any more: for a process that is told to end.
    pub fn shut_down_now(&self) {
        self.shared.with(|state| state.shut_down(Phase::Closed));
        self.shared.wake_all();
    }

    /// Resolves when no key is processed and, after [`Queue::shut_down`], none is queued. Before a shutdown, a moment without
    /// runs may pass unseen.
    pub async fn drained(&self) {
        self.shared.drained().await;
    }

    /// Queues what is due, so that observers see it.
    fn settle(&self) {
        while self.shared.with(State::fire) {}
    }

    /// Keys that wait in the lanes; not those in processing, nor delayed ones.
    pub fn len(&self) -> usize {
        let stats = self.stats();
        stats.high + stats.low
    }

    /// Whether no key waits in the lanes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The queue at this moment. Looks at each key in processing.
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
