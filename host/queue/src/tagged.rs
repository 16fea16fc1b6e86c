//! The functions that add keys to a queue, each with the tag for the run that it causes. This
//! module must not know what a tag says.

use std::hash::Hash;
use std::time::Duration;

use crate::limit::nanos;
use crate::rules::Cause;
use crate::tag::Tag;
use crate::wait::Shared;

/// Number of keys that [`Tagged::add_low_all`] adds in one hold of the lock: a few microseconds, so
/// that a concurrent fresh add spins for the lock and does not sleep.
const ADD_BATCH: usize = 32;

/// Adds keys to a queue, with a tag for the run that each add causes; see [`crate::Queue::tagged`].
#[derive(Clone, Copy)]
pub struct Tagged<'a, K, T: Tag> {
    pub(crate) shared: &'a Shared<K, T>,
    pub(crate) tag: T,
}

impl<K: Hash + Eq + Clone + Send + 'static, T: Tag> Tagged<'_, K, T> {
    fn add_for(&self, key: K, cause: Cause) {
        let hash = self.shared.hash(&key);
        self.shared
            .with(|state| state.add(hash, key, cause, self.tag));
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

    /// As [`crate::Queue::add_low`] for many keys, in small batches: other callers get the lock in
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
                    state.add(hash, key, Cause::Low, self.tag);
                }
            });
        }
    }

    /// Adds a key with the event of this host's own write: as [`crate::Queue::add`], but does not
    /// shorten a backoff. An event that arrives during the run belongs to that run: if the run
    /// fails, the retry covers the event; if it succeeds, the key runs again.
    pub fn add_unless_backing_off(&self, key: K) {
        self.add_for(key, Cause::Own);
    }

    /// Adds the key to the high lane after a delay; the earliest of several pending delays wins. A
    /// zero delay is [`crate::Queue::add`].
    pub fn add_after(&self, key: K, delay: Duration) {
        let hash = self.shared.hash(&key);
        self.shared
            .with(|state| state.add_after(hash, key, nanos(delay), self.tag));
    }
}
