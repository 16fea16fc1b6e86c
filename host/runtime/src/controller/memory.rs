//! What a controller remembers about its keys from one turn to the next: why a key fails, which
//! events are the host's own writes, what was written last, what the last successful turn saw, and
//! which keys wake themselves again and again.
//!
//! One lock covers all parts, and no clean-up task is needed, because each part is bounded:
//!
//! | Part | Holds at most |
//! |---|---|
//! | failures | the keys whose last turn failed |
//! | own writes | the keys whose turn is writing, or whose writes are not back as events yet |
//! | last writes | 65,536 names of objects that were applied or are in no watch |
//! | previous | one snapshot per key, for a controller with `previous` |
//! | busy keys | the keys that wrote within the last minute |
//!
//! It must not know queues, workers or effects: it stores facts and never decides about a key.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use vmhost_cluster::Written;
use vmhost_core::{Apply, ObjectKey, ObjectName, Refusal, Snapshot};

use crate::rights::access::Required;

pub(crate) mod hot;
pub(crate) mod last_writes;
pub(crate) mod own_writes;

use hot::HotKeys;
use last_writes::{Digests, LastWrites};
use own_writes::{Came, Origin, OwnWrites};

/// Consecutive conflicts that are not reported, since another writer may simply have been faster.
/// More of them suggest a name that is taken, or a patch that never applies.
pub(crate) const COLLISIONS: u32 = 3;

/// Number of keys that are forgiven in one hold of the lock.
const BATCH: usize = 32;

/// The memory of one controller. A controller of the same kind that replaces it takes it over.
#[derive(Debug, Default)]
pub(crate) struct KeyMemory {
    keys: Mutex<Keys>,
    digests: Digests,
    /// True if a key fails or rests, so that the common case skips the lock.
    troubled: AtomicBool,
}

#[derive(Debug, Default)]
struct Keys {
    failing: HashMap<ObjectName, Failing>,
    own_writes: OwnWrites,
    last_writes: LastWrites,
    previous: HashMap<ObjectName, Snapshot>,
    hot: HotKeys,
}

/// The state of a key between its first failure and its next success.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failing {
    /// Failures since the last success.
    pub(crate) attempt: u32,
    /// The effect that the API server refused in the last turn.
    pub(crate) last: Option<Refusal>,
    /// Consecutive turns, up to the last one, that ended in a conflict with another writer.
    pub(crate) collisions: u32,
    /// The missing rights that ended the last turn, if any.
    pub(crate) rights: Awaited,
}

impl Failing {
    /// Retries that count against `maxRetries`.
    pub(crate) fn retries(&self) -> u32 {
        let too_many = self.collisions.saturating_sub(COLLISIONS);
        self.attempt.saturating_add(too_many)
    }
}

/// The rights that a key waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// The key waits for no right.
    #[default]
    None,
    /// The key is enqueued when these rights are granted.
    Missing(Arc<Required>),
    /// All the rights had been granted already when the turn was refused.
    Granted,
}

impl Awaited {
    fn is(&self, required: &Arc<Required>) -> bool {
        matches!(self, Self::Missing(these) if Arc::ptr_eq(these, required))
    }
}

impl KeyMemory {
    /// The failure state of a key. `None` if the key does not fail.
    pub(crate) fn failing(&self, key: &ObjectName) -> Option<Failing> {
        self.if_troubled()?.failing.get(key).cloned()
    }

    /// The number of failing keys, and up to `limit` of them in no order.
    pub(crate) fn some_failing(&self, limit: usize) -> (usize, Vec<(ObjectName, Failing)>) {
        let keys = self.keys.lock();
        let some = keys.failing.iter().take(limit);
        let some = some.map(|(key, failing)| (key.clone(), failing.clone()));
        (keys.failing.len(), some.collect())
    }

    /// The keys whose last turn failed, in no order.
    pub(crate) fn failing_keys(&self) -> Vec<ObjectName> {
        let keys = self.if_troubled();
        keys.map_or_else(Vec::new, |keys| keys.failing.keys().cloned().collect())
    }

    /// The self-waking keys that are held, in no order.
    pub(crate) fn held_keys(&self) -> Vec<ObjectName> {
        let keys = self.if_troubled();
        keys.map_or_else(Vec::new, |keys| keys.hot.held().cloned().collect())
    }

    /// Clears the failure state, after a success or when the key is given up.
    pub(crate) fn recovered(&self, key: &ObjectName) {
        if let Some(mut keys) = self.if_troubled() {
            keys.failing.remove(key);
            self.note_troubles(&keys);
        }
    }

    /// Stores the failure state of a key.
    pub(crate) fn fails(&self, key: &ObjectName, failing: Failing) {
        let mut keys = self.keys.lock();
        keys.failing.insert(key.clone(), failing);
        self.note_troubles(&keys);
    }

    /// Returns whether the key still waits for these rights.
    pub(crate) fn awaits(&self, key: &ObjectName, required: &Arc<Required>) -> bool {
        let keys = self.if_troubled();
        let failing = keys.as_ref().and_then(|keys| keys.failing.get(key));
        failing.is_some_and(|failing| failing.rights.is(required))
    }

    /// Ends the key's wait for these rights. Returns whether the key waited for them.
    pub(crate) fn end_wait(
        &self,
        key: &ObjectName,
        required: &Arc<Required>,
        now: Awaited,
    ) -> bool {
        let Some(mut keys) = self.if_troubled() else {
            return false;
        };
        let failing = keys.failing.get_mut(key);
        let waiting = failing.filter(|failing| failing.rights.is(required));
        waiting.map(|failing| failing.rights = now).is_some()
    }

    /// How much longer a self-waking key is held. `None` if it is not held.
    pub(crate) fn rest(&self, key: &ObjectName) -> Option<Duration> {
        let mut keys = self.if_troubled()?;
        let rest = keys.hot.rest(key);
        self.note_troubles(&keys);
        rest
    }

    /// Counts a turn of the key that wrote or asked to be requeued at once. Returns whether the key
    /// is held from now on.
    pub(crate) fn was_busy(&self, key: &ObjectName) -> bool {
        let mut keys = self.keys.lock();
        let (is_hot, over) = keys.hot.count(key);
        self.note_troubles(&keys);
        // Freed after the lock is released: the counts of all keys of the last window.
        drop(keys);
        drop(over);
        is_hot
    }

    /// The number of self-waking keys that are held.
    pub(crate) fn resting(&self) -> usize {
        self.keys.lock().hot.resting()
    }

    /// The snapshot that the key's last successful turn saw.
    pub(crate) fn previous(&self, key: &ObjectName) -> Option<Snapshot> {
        self.keys.lock().previous.get(key).cloned()
    }

    /// Stores the snapshot that a successful turn saw. `None` if the object was deleted.
    pub(crate) fn saw(&self, key: &ObjectName, object: Option<&Snapshot>) {
        let mut keys = self.keys.lock();
        let before = match object {
            Some(object) => keys.previous.insert(key.clone(), object.clone()),
            None => keys.previous.remove(key),
        };
        // Object text may be large, so it is freed after the lock is released.
        drop(keys);
        drop(before);
    }

    /// Forgets the writes of a key whose object is deleted and whose last turn succeeded or was
    /// given up. Nothing asks for them any more.
    pub(crate) fn gone(&self, key: &ObjectName) {
        let mut keys = self.keys.lock();
        keys.last_writes.forget(key);
        keys.own_writes.forget(key);
    }

    /// The keys that still fail, or whose deletion no successful turn has seen.
    pub(crate) fn unfinished(&self) -> Vec<ObjectName> {
        let keys = self.keys.lock();
        let failing = keys.failing.keys();
        failing.chain(keys.previous.keys()).cloned().collect()
    }

    /// Clears all failures and holds, so that the code of a new generation runs for every key.
    pub(crate) fn forgive(&self) {
        let mut keys = self.keys.lock();
        let failing = std::mem::take(&mut keys.failing);
        let hot = std::mem::take(&mut keys.hot);
        self.note_troubles(&keys);
        // Freed after the lock is released, since all workers take it.
        drop(keys);
        drop((failing, hot));
    }

    /// Clears the failures and holds of these keys. Returns the keys that had any.
    pub(crate) fn forgive_these(&self, these: &[ObjectName]) -> Vec<ObjectName> {
        let mut forgiven = Vec::new();
        // In batches, since all workers take the lock. The lock is taken even if no key is known to
        // fail: a key that does not fail may still have busy turns to forget, and another thread
        // may just have stored a failure.
        for batch in these.chunks(BATCH) {
            let mut keys = self.keys.lock();
            for key in batch {
                let failed = keys.failing.remove(key).is_some();
                if keys.hot.forgive(key) || failed {
                    forgiven.push(key.clone());
                }
            }
            self.note_troubles(&keys);
        }
        forgiven
    }

    /// Begins the write phase of the key's turn.
    pub(crate) fn begin_writes(&self, key: &ObjectName) {
        self.keys.lock().own_writes.begin(key);
    }

    /// Records that the key's turn wrote an object in these watches, which now has this version. A
    /// write that changed nothing must not be recorded, since no event will bring its version.
    pub(crate) fn wrote(&self, key: &ObjectName, sources: impl Iterator<Item = u16>, version: u64) {
        let mut keys = self.keys.lock();
        for source in sources {
            keys.own_writes.wrote(key, source, version);
        }
    }

    /// Ends the write phase of the key's turn. Returns which events arrived for the key in the
    /// meantime, and their numbers in the wake log.
    pub(crate) fn end_writes(&self, key: &ObjectName) -> (Came, Vec<u32>) {
        self.keys.lock().own_writes.end(key)
    }

    /// Returns the origin of the change with this version in this watch, and with this number in
    /// the wake log.
    pub(crate) fn origin(&self, key: &ObjectName, seen: (u16, u64), number: u32) -> Origin {
        self.keys.lock().own_writes.origin(key, seen, number)
    }

    /// Returns whether an apply would change nothing. `stored` is the uid and the version of the
    /// object in the store.
    pub(crate) fn is_repeated(&self, key: &ObjectKey, apply: &Apply, stored: (&str, u64)) -> bool {
        let last = self.keys.lock().last_writes.last_apply(key, apply, stored);
        last.is_some_and(|last| last == self.digests.of(apply))
    }

    /// Records a successful apply.
    pub(crate) fn applied(&self, key: &ObjectKey, apply: &Apply, written: &Written) {
        let digest = self.digests.of(apply);
        let mut keys = self.keys.lock();
        keys.last_writes.applied(key, apply, digest, written);
    }

    /// The version after the last write, if known, of an object that is in no watch.
    pub(crate) fn version(&self, key: &ObjectKey) -> Option<u64> {
        self.keys.lock().last_writes.version(key)
    }

    /// Records the version after a write to an object that is in no watch.
    pub(crate) fn wrote_unseen(&self, key: &ObjectKey, version: u64) {
        self.keys.lock().last_writes.wrote_unseen(key, version);
    }

    fn if_troubled(&self) -> Option<MutexGuard<'_, Keys>> {
        self.troubled
            .load(Ordering::Relaxed)
            .then(|| self.keys.lock())
    }

    fn note_troubles(&self, keys: &Keys) {
        let troubled = !keys.failing.is_empty() || keys.hot.resting() > 0;
        self.troubled.store(troubled, Ordering::Relaxed);
    }
}
