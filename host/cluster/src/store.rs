//! The read side of one informer: what the cluster held when the watch last spoke.
//!
//! It owns the snapshots, the order and the indexes by which they are found, and who waits for them. It may be stale, but never torn: a snapshot is replaced
//! whole, and `position` says what it is complete up to.
//! It must not know how its contents come (the informer is its only writer) nor who is told about a change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard};
use tokio::sync::{oneshot, watch};
use vmhost_core::{ObjectName, Snapshot};

mod index;
mod page;
mod table;
mod write;

use index::{Held, Indexes};
pub use index::{Index, NotIndexed};
pub use page::Query;
use table::Table;
pub(crate) use write::{Older, Shows};

/// What a store counts for an object besides its text: what stands before the text, and the allocator's part (72); the name (48); an entry of the table, of which
/// a third is spare (66); its place in the order, half of it spare (34), which is what paging and asking by namespace cost. `cargo bench --bench memory` says
/// what it is in fact.
const OVERHEAD: usize = 220;

/// Snapshots by name.
#[derive(Debug)]
pub struct Store {
    /// Read at each turn by all workers, written by one informer: readers do not meet.
    state: ShardedLock<State>,
    /// Those who wait for a position, by it and a number that makes it unique. Apart from `state`, so that waiting never blocks readers.
    waiters: Mutex<Waiters>,
    /// Counts changes, for those who wait for something else.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    objects: Table,
    /// All names by namespace and name.
    order: BTreeSet<ObjectName>,
    indexes: Indexes,
    /// Of the objects; the indexes count their own.
    bytes: usize,
    position: u64,
    /// Number of the current or last list; an entry that an ended list did not mark is gone.
    list: u32,
    /// The current list is believed whatever the store shows: the server's versions went back.
    rewinding: bool,
    synced: bool,
    closed: bool,
    /// The cluster does not serve the kind any more.
    absent: bool,
}

impl State {
    /// Is nothing to be waited for?
    fn is_still(&self) -> bool {
        self.closed || self.absent
    }
}

/// One object. Its name is the snapshot's.
#[derive(Debug)]
struct Entry {
    snapshot: Snapshot,
    held: Held,
    /// The last list that showed it. Only the informer writes it, and readers do not look at it.
    list: AtomicU32,
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
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object of this name (`namespace/name`).
    pub fn get(&self, name: &str) -> Option<Snapshot> {
        self.read()
            .objects
            .get(name)
            .map(|entry| entry.snapshot.clone())
    }

    /// How many objects.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// None at all?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All names, in no order.
    pub fn names(&self) -> Vec<ObjectName> {
        let state = self.read();
        let names = state
            .objects
            .iter()
            .map(|entry| entry.snapshot.name.clone());
        names.collect()
    }

    /// Visits all objects, in no order. The store is locked meanwhile: be quick, and do not come back to it.
    pub fn for_each(&self, mut visit: impl FnMut(&Snapshot)) {
        self.read()
            .objects
            .iter()
            .for_each(|entry| visit(&entry.snapshot));
    }

    /// All objects, in no order.
    pub(crate) fn snapshots(&self) -> Vec<Snapshot> {
        let state = self.read();
        state
            .objects
            .iter()
            .map(|entry| entry.snapshot.clone())
            .collect()
    }

    /// Does the cluster not serve the kind any more?
    pub(crate) fn is_absent(&self) -> bool {
        self.read().absent
    }

    /// Which indexes it keeps.
    pub fn indexes(&self) -> BTreeSet<Index> {
        self.read().indexes.kept.list().iter().cloned().collect()
    }

    /// About how much memory it holds, its indexes included.
    pub fn bytes(&self) -> usize {
        let state = self.read();
        state.bytes + state.indexes.bytes()
    }

    /// Has the first list ended?
    pub fn is_synced(&self) -> bool {
        self.read().synced
    }

    /// Has its informer stopped? Then it changes no more, and nobody waits for it.
    pub fn is_closed(&self) -> bool {
        self.read().closed
    }

    /// Resolves when the first list has ended, or the store was closed: ask `is_synced` which.
    pub async fn synced(&self) {
        self.wait_until(Self::is_synced).await;
    }

    /// Returns whether the current list is believed even where it is older than the store.
    pub(crate) fn is_rewinding(&self) -> bool {
        self.read().rewinding
    }

    /// The resource version up to which it is complete: the highest of a list, an event or a
    /// bookmark, since the server's versions last went back.
    pub fn position(&self) -> u64 {
        self.read().position
    }

    /// Resolves when it is complete up to this version, was closed, or the cluster does not serve
    /// the kind any more; or when the server's versions went back, so that nobody waits for one
    /// that was lost.
    pub async fn caught_up(&self, version: u64) {
        let (key, woken) = {
            let mut waiters = self.waiters();
            // Looked at under the waiters' lock: whoever moves the position takes it afterwards.
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

    /// Resolves when the condition holds, the store was closed, or the cluster does not serve the kind any more. It is asked after each change.
    pub async fn wait_until(&self, mut condition: impl FnMut(&Self) -> bool) {
        let mut changes = self.changes.subscribe();
        while !condition(self) && !self.read().is_still() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes its waiter out of the list, woken or not.
struct Waiting<'a> {
    store: &'a Store,
    key: (u64, u64),
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.store.waiters().by_position.remove(&self.key);
    }
}

#[cfg(test)]
mod index_tests;
#[cfg(test)]
mod tests;
