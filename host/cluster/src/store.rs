//! **Store.** The read side of one informer: the cluster's objects as of the last watch event.
//!
//! This module owns the snapshots, their order, their indexes, and the tasks that wait for changes.
//! The store may be stale, but never torn: a snapshot is replaced as a whole, and `position` is the
//! version up to which the store is complete. It must not know where its contents come from (the
//! informer is its only writer), nor what is notified of a change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LockResult, PoisonError};

use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use vmhost_core::{ObjectName, Snapshot};

mod index;
mod page;
mod table;
mod write;

use index::Indexes;
pub use index::{Index, NotIndexed};
pub use page::Query;
use table::Table;
pub(crate) use write::{Older, Shows};

/// Estimated bytes per object besides its text: the header before the text and the allocator's
/// share (72); the name (48); an entry of the table, of which a third is spare (66); its place in
/// the order, half of it spare (34), which is the cost of paging and of queries by namespace.
/// `cargo bench --bench memory` measures the real value.
const OVERHEAD: usize = 220;

/// The snapshots of one informer, by name.
#[derive(Debug)]
pub struct Store {
    /// Read in each turn by all workers, written by one informer. Sharded, so that readers do not
    /// contend.
    state: ShardedLock<State>,
    /// The tasks that wait for a position, by position and a unique number. Separate from `state`,
    /// so that waiting never blocks readers.
    waiters: Mutex<Waiters>,
    /// Counts changes, for tasks that wait for other conditions.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    objects: Table,
    /// All names, ordered by namespace and name.
    order: BTreeSet<ObjectName>,
    indexes: Indexes,
    /// Estimated memory of the objects; the indexes count their own.
    bytes: usize,
    position: u64,
    /// Number of the current or last list; an entry that an ended list did not mark is gone.
    list: u32,
    /// Whether the current list overrides the store, because the server's versions went back.
    rewinding: bool,
    synced: bool,
    closed: bool,
    /// Whether the cluster no longer serves the kind.
    absent: bool,
    /// Whether no list has ended since the cluster stopped to serve the kind.
    vanished: bool,
}

impl State {
    /// Returns whether no change will come, so that waiting is pointless.
    fn is_still(&self) -> bool {
        self.closed || self.absent
    }
}

#[derive(Debug, Default)]
struct Waiters {
    next: u64,
    by_position: BTreeMap<(u64, u64), oneshot::Sender<()>>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            state: ShardedLock::default(),
            waiters: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl Store {
    fn read(&self) -> ShardedLockReadGuard<'_, State> {
        unpoisoned(self.state.read())
    }

    /// Returns the object with this name (`namespace/name`).
    pub fn get(&self, name: &str) -> Option<Snapshot> {
        self.read()
            .objects
            .get(name)
            .map(|entry| entry.snapshot.clone())
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Returns whether the store is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All names, in no particular order.
    pub fn names(&self) -> Vec<ObjectName> {
        let state = self.read();
        let names = state
            .objects
            .iter()
            .map(|entry| entry.snapshot.name.clone());
        names.collect()
    }

    /// Visits all objects, in no particular order. The store is locked meanwhile: `visit` must be
    /// quick and must not use the store.
    pub fn for_each(&self, mut visit: impl FnMut(&Snapshot)) {
        self.read()
            .objects
            .iter()
            .for_each(|entry| visit(&entry.snapshot));
    }

    /// All objects, in no particular order.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        let state = self.read();
        state
            .objects
            .iter()
            .map(|entry| entry.snapshot.clone())
            .collect()
    }

    /// Returns whether the cluster no longer serves the kind.
    pub(crate) fn is_absent(&self) -> bool {
        self.read().absent
    }

    /// The indexes of the store.
    pub fn indexes(&self) -> BTreeSet<Index> {
        self.read().indexes.kept.list().iter().cloned().collect()
    }

    /// Approximate memory of the store in bytes, including its indexes.
    pub fn bytes(&self) -> usize {
        let state = self.read();
        state.bytes + state.indexes.bytes()
    }

    /// Returns whether the first list has ended.
    pub fn is_synced(&self) -> bool {
        self.read().synced
    }

    /// Returns whether the store shows all objects of its kind: a list has ended, the cluster has
    /// served the kind ever since, and the informer still runs. Only then does an empty store mean
    /// that there are no objects.
    pub fn is_complete(&self) -> bool {
        let state = self.read();
        state.synced && !state.vanished && !state.closed
    }

    /// Returns whether the informer has stopped. Then the store no longer changes, and no task
    /// waits for it.
    pub fn is_closed(&self) -> bool {
        self.read().closed
    }

    /// Waits until the first list has ended or the store is closed; `is_synced` tells which.
    pub async fn synced(&self) {
        self.wait_until(Self::is_synced).await;
    }

    /// Returns whether the current list overrides the store, even with older data.
    pub(crate) fn is_rewinding(&self) -> bool {
        self.read().rewinding
    }

    /// The resource version up to which the store is complete: the highest of a list, an event or a
    /// bookmark, since the server's versions last went back.
    pub fn position(&self) -> u64 {
        self.read().position
    }

    /// Waits until the store is complete up to this version, or is closed, or the cluster no longer
    /// serves the kind; or until the server's versions went back, so that no task waits for a lost
    /// version.
    pub async fn caught_up(&self, version: u64) {
        let (key, woken) = {
            let mut waiters = self.waiters.lock();
            // Checked under the waiters' lock: a writer that moves the position takes that lock
            // afterwards.
            let state = self.read();
            if state.position >= version || state.is_still() {
                return;
            }
            waiters.next += 1;
            let key = (version, waiters.next);
            let (wake, woken) = oneshot::channel();
            waiters.by_position.insert(key, wake);
            (key, woken)
        };
        let _guard = Waiting { store: self, key };
        // An error means that the store dropped the sender: closed.
        let _ = woken.await;
    }

    /// Waits until the condition holds, the store is closed, or the cluster no longer serves the
    /// kind. The condition is checked after each change.
    pub async fn wait_until(&self, mut condition: impl FnMut(&Self) -> bool) {
        let mut changes = self.changes.subscribe();
        while !condition(self) && !self.read().is_still() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Returns a guard of the state, poisoned or not. An informer that panics closes its store while
/// unwinding (`Closing`), which takes the lock that it has poisoned; readers and waiters then learn
/// that the store is closed, and need not panic too.
fn unpoisoned<G>(guard: LockResult<G>) -> G {
    guard.unwrap_or_else(PoisonError::into_inner)
}

/// Removes its waiter from the list, woken or not.
struct Waiting<'a> {
    store: &'a Store,
    key: (u64, u64),
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.store.waiters.lock().by_position.remove(&self.key);
    }
}

#[cfg(test)]
mod index_tests;
#[cfg(test)]
mod tests;
