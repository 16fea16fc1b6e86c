//! What a controller remembers of its keys, from one turn to the next: why a key fails, which events
//! are the host's own, what was written last, what the last successful turn saw, and which keys keep
//! themselves busy.
//!
//! One lock for all of it, and no clean-up task. It is bounded by what it is about:
//!
//! | Part | Holds at most |
//! |---|---|
//! | failures | the keys whose last turn was no success |
//! | own writes | the keys whose turn is writing, or whose writes no watch has shown yet |
//! | last writes | 65,536 names of objects that were applied, or that no watch shows |
//! | previous | the keys of a controller with `previous`, each with one snapshot |
//! | busy keys | the keys that wrote within the last minute |
//!
//! It must not know queues, workers or effects: it never decides what becomes of a key.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use vmhost_cluster::Written;
use vmhost_core::{Apply, ObjectKey, ObjectName, Refusal, Snapshot};

use crate::rights::access::Required;

pub mod hot;
pub mod last_writes;
pub mod own_writes;

use hot::HotKeys;
use last_writes::LastWrites;
use own_writes::{Came, Origin, OwnWrites};

/// Collisions in a row that are nobody's business: somebody else was faster. More look like a name
/// that is taken, or a patch that never fits.
pub const COLLISIONS: u32 = 3;

/// The memory of one controller, or of the controllers that have followed each other in one place.
#[derive(Debug, Default)]
pub struct KeyMemory {
    keys: Mutex<Keys>,
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

/// What is remembered of a key between a failure and its next success.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failing {
    /// Failures since the last success.
    pub attempt: u32,
    /// The refused effect of the last turn.
    pub last: Option<Refusal>,
    /// Turns in a row that ended in a collision with what others wrote, up to the last one.
    pub collisions: u32,
    /// What is known of the rights for want of which the last turn ended.
    pub rights: Awaited,
}

impl Failing {
    /// Retries that count against `maxRetries`.
    pub fn retries(&self) -> u32 {
        let too_many = self.collisions.saturating_sub(COLLISIONS);
        self.attempt.saturating_add(too_many)
    }
}

/// Rights that a key waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Awaited {
    /// It waits for no right.
    #[default]
    None,
    /// It is woken when these are granted.
    Missing(Arc<Required>),
    /// All that it waited for was granted already when it was refused.
    Granted,
}

impl Awaited {
    fn is(&self, required: &Arc<Required>) -> bool {
        matches!(self, Self::Missing(these) if Arc::ptr_eq(these, required))
    }
}

impl KeyMemory {
    /// What is remembered of a key that fails.
    pub fn failing(&self, key: &ObjectName) -> Option<Failing> {
        self.if_troubled()?.failing.get(key).cloned()
    }

    /// How many keys fail, and some of them, in no order.
    pub fn some_failing(&self, limit: usize) -> (usize, Vec<(ObjectName, Failing)>) {
        let keys = self.keys.lock();
        let some = keys.failing.iter().take(limit);
        let some = some.map(|(key, failing)| (key.clone(), failing.clone()));
        (keys.failing.len(), some.collect())
    }

    /// The key's turn was a success, or the key is given up.
    pub fn recovered(&self, key: &ObjectName) {
        if let Some(mut keys) = self.if_troubled() {
            keys.failing.remove(key);
            self.note_troubles(&keys);
        }
    }

    /// The key's turn was no success.
    pub fn fails(&self, key: &ObjectName, failing: Failing) {
        let mut keys = self.keys.lock();
        keys.failing.insert(key.clone(), failing);
        self.note_troubles(&keys);
    }

    /// Returns whether the key still waits for these rights.
    pub fn awaits(&self, key: &ObjectName, required: &Arc<Required>) -> bool {
        let keys = self.if_troubled();
        let failing = keys.as_ref().and_then(|keys| keys.failing.get(key));
        failing.is_some_and(|failing| failing.rights.is(required))
    }

    /// The key's wait for these rights is over. Returns whether it waited for them.
    pub fn end_wait(&self, key: &ObjectName, required: &Arc<Required>, now: Awaited) -> bool {
        let Some(mut keys) = self.if_troubled() else {
            return false;
        };
        let failing = keys.failing.get_mut(key);
        let waiting = failing.filter(|failing| failing.rights.is(required));
        waiting.map(|failing| failing.rights = now).is_some()
    }

    /// How long a key that kept itself busy still rests.
    pub fn rest(&self, key: &ObjectName) -> Option<Duration> {
        let mut keys = self.if_troubled()?;
        let rest = keys.hot.rest(key);
        self.note_troubles(&keys);
        rest
    }

    /// A turn of the key ended that wrote, or that asked to come back at once. Returns whether the
    /// key rests from now on.
    pub fn was_busy(&self, key: &ObjectName) -> bool {
        let mut keys = self.keys.lock();
        let is_hot = keys.hot.count(key);
        self.note_troubles(&keys);
        is_hot
    }

    /// How many keys rest since they kept themselves busy.
    pub fn resting(&self) -> usize {
        self.keys.lock().hot.resting()
    }

    /// What the key's last successful turn saw.
    pub fn previous(&self, key: &ObjectName) -> Option<Snapshot> {
        self.keys.lock().previous.get(key).cloned()
    }

    /// A turn that saw this has succeeded. Without a snapshot, the object was gone.
    pub fn saw(&self, key: &ObjectName, object: Option<&Snapshot>) {
        let mut keys = self.keys.lock();
        let before = match object {
            Some(object) => keys.previous.insert(key.clone(), object.clone()),
            None => keys.previous.remove(key),
        };
        // A text may be large: freed without the lock.
        drop(keys);
        drop(before);
    }

    /// The key's object is gone, and its last turn has succeeded, or was given up: nothing will ask
    /// for what was written to it, nor for whose events are its own.
    pub fn gone(&self, key: &ObjectName) {
        let mut keys = self.keys.lock();
        keys.last_writes.forget(key);
        keys.own_writes.forget(key);
    }

    /// The keys whose end has not been told.
    pub fn unfinished(&self) -> Vec<ObjectName> {
        let keys = self.keys.lock();
        let failing = keys.failing.keys();
        failing.chain(keys.previous.keys()).cloned().collect()
    }

    /// A swap: the new code gets its chance with every key.
    pub fn forgive(&self) {
        let mut keys = self.keys.lock();
        let failing = std::mem::take(&mut keys.failing);
        let hot = std::mem::take(&mut keys.hot);
        self.note_troubles(&keys);
        // Freed without the lock, which all workers take.
        drop(keys);
        drop((failing, hot));
    }

    /// The key's turn is about to write.
    pub fn begin_writes(&self, key: &ObjectName) {
        self.keys.lock().own_writes.begin(key);
    }

    /// The key's turn wrote an object of these watches, which has this version now. Not for a write
    /// that changed nothing: no event will bring its version.
    pub fn wrote(&self, key: &ObjectName, sources: impl Iterator<Item = u16>, version: u64) {
        let mut keys = self.keys.lock();
        for source in sources {
            keys.own_writes.wrote(key, source, version);
        }
    }

    /// The writes of the key's turn are over. Returns what came for the key meanwhile.
    pub fn end_writes(&self, key: &ObjectName) -> Came {
        self.keys.lock().own_writes.end(key)
    }

    /// Returns whose change it is that an event of this watch, with this version, brings.
    pub fn origin(&self, key: &ObjectName, source: u16, version: u64) -> Origin {
        self.keys.lock().own_writes.origin(key, source, version)
    }

    /// Returns whether an apply would change nothing. `stored`: uid and version of the object in
    /// the store.
    pub fn is_repeated(&self, key: &ObjectKey, apply: &Apply, stored: (&str, u64)) -> bool {
        self.keys.lock().last_writes.is_repeated(key, apply, stored)
    }

    /// An apply was carried out.
    pub fn applied(&self, key: &ObjectKey, apply: &Apply, written: &Written) {
        self.keys.lock().last_writes.applied(key, apply, written);
    }

    /// The version that the last write has made of an object that no watch shows, if it is known.
    pub fn version(&self, key: &ObjectKey) -> Option<u64> {
        self.keys.lock().last_writes.version(key)
    }

    /// A write has made this version of an object that no watch shows.
    pub fn wrote_unseen(&self, key: &ObjectKey, version: u64) {
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
