//! The read side of one informer: what the cluster held when the watch last spoke.
//!
//! It owns the snapshots and who waits for them. It may be stale, but never torn: a snapshot is replaced whole, and `position` says what it is complete up to.
//! It must not know how its contents come (the informer is its only writer) nor who is told about a change.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::{oneshot, watch};
use vmhost_core::{LabelSelector, Metadata, Object, ObjectName, Snapshot};

/// What a store counts for an object besides its text: map entry (32), `Arc` and `Object` (72), name and uid (about 80).
const OVERHEAD: usize = 184;

/// Snapshots by name.
#[derive(Debug)]
pub struct Store {
    state: RwLock<State>,
    /// Those who wait for a position, by it and a number that makes it unique. Apart from `state`, so that waiting never blocks readers.
    waiters: Mutex<Waiters>,
    /// Counts changes, for those who wait for something else.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    objects: HashMap<ObjectName, Entry>,
    bytes: usize,
    position: u64,
    /// Number of the current or last list; an entry that an ended list did not mark is gone.
    list: u32,
    synced: bool,
    closed: bool,
}

#[derive(Debug)]
struct Entry {
    snapshot: Snapshot,
    list: u32,
}

#[derive(Debug, Default)]
struct Waiters {
    next: u64,
    by_position: BTreeMap<(u64, u64), oneshot::Sender<()>>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            state: RwLock::default(),
            waiters: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl Store {
    fn read(&self) -> RwLockReadGuard<'_, State> {
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
        self.read().objects.keys().cloned().collect()
    }

    /// Visits all objects, in no order. The store is locked meanwhile: be quick, and do not come back to it.
    pub fn for_each(&self, mut visit: impl FnMut(&Snapshot)) {
        self.read()
            .objects
            .values()
            .for_each(|entry| visit(&entry.snapshot));
    }

    /// Objects ordered by namespace and name: those behind `after`, at most `limit`; and the `after` of the next page, if there is more.
    pub fn page(
        &self,
        namespace: Option<&str>,
        selector: Option<&LabelSelector>,
        after: Option<&ObjectName>,
        limit: usize,
    ) -> (Vec<Snapshot>, Option<ObjectName>) {
        let mut found = Vec::new();
        self.for_each(|snapshot| {
            let name = &snapshot.name;
            if namespace.is_none_or(|namespace| name.namespace() == Some(namespace))
                && after.is_none_or(|after| name > after)
            {
                found.push(snapshot.clone());
            }
        });
        if let Some(selector) = selector {
            // What came in once with labels that cannot be read matches nothing.
            found.retain(|snapshot| {
                Metadata::parse(&snapshot.text)
                    .is_ok_and(|metadata| selector.matches_by(|key| metadata.labels.get(key)))
            });
        }
        let limit = limit.max(1);
        let more = found.len() > limit;
        if more {
            found.select_nth_unstable_by(limit - 1, |a, b| a.name.cmp(&b.name));
            found.truncate(limit);
        }
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let next = found
            .last()
            .filter(|_| more)
            .map(|snapshot| snapshot.name.clone());
        (found, next)
    }

    /// About how much memory it holds.
    pub fn bytes(&self) -> usize {
        self.read().bytes
    }

    /// Has the first list ended?
    pub fn is_synced(&self) -> bool {
        self.read().synced
    }

    /// Has its informer stopped? Then it changes no more, and nobody waits for it.
    pub fn is_closed(&self) -> bool {
        self.read().closed
    }

    /// Resolves when the first list has ended, or the store was closed.
    pub async fn synced(&self) {
        self.wait_until(Self::is_synced).await;
    }

    /// The highest resource version up to which it is complete: of a list, an event or a bookmark.
    pub fn position(&self) -> u64 {
        self.read().position
    }

    /// Resolves when it is complete up to this version, or was closed.
    pub async fn caught_up(&self, version: u64) {
        let (key, woken) = {
            let mut waiters = self.waiters();
            // Looked at under the waiters' lock: whoever moves the position takes it afterwards.
            let state = self.read();
            if state.position >= version || state.closed {
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

    /// Resolves when the condition holds, or the store was closed. It is asked after each change.
    pub async fn wait_until(&self, mut condition: impl FnMut(&Self) -> bool) {
        let mut changes = self.changes.subscribe();
        while !condition(self) && !self.is_closed() {
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

/// What a relist found missing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Removed {
    pub name: ObjectName,
    pub uid: Box<str>,
}

/// The write side. Only the informer calls it, from one task.
impl Store {
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let (result, position) = {
            let mut state: RwLockWriteGuard<'_, State> =
                self.state.write().unwrap_or_else(PoisonError::into_inner);
            let result = change(&mut state);
            (
                result,
                if state.closed {
                    u64::MAX
                } else {
                    state.position
                },
            )
        };
        let woken = {
            let mut waiters = self.waiters();
            if waiters
                .by_position
                .first_key_value()
                .is_some_and(|((version, _), _)| *version <= position)
            {
                let later = position
                    .checked_add(1)
                    .map(|above| waiters.by_position.split_off(&(above, 0)))
                    .unwrap_or_default();
                std::mem::replace(&mut waiters.by_position, later)
            } else {
                BTreeMap::new()
            }
        };
        for wake in woken.into_values() {
            let _ = wake.send(());
        }
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
        result
    }

    /// Puts an object in; the snapshot, if the store shows something else now. A lower version of the same uid never replaces a higher one.
    /// `moves`: an event of a watch, which is complete up to it; an item of a list is not.
    pub(crate) fn upsert(&self, object: Object, moves: bool) -> Option<Snapshot> {
        self.change(|state| {
            if moves {
                state.position = state.position.max(object.version);
            }
            let list = state.list;
            if let Some(entry) = state.objects.get_mut(&object.name) {
                entry.list = list;
                if entry.snapshot.uid == object.uid && entry.snapshot.version >= object.version {
                    return None;
                }
                state.bytes = state.bytes - entry.snapshot.text.len() + object.text.len();
                entry.snapshot = Arc::new(object);
                return Some(entry.snapshot.clone());
            }
            state.bytes += OVERHEAD + object.text.len();
            let snapshot = Arc::new(object);
            state.objects.insert(
                snapshot.name.clone(),
                Entry {
                    snapshot: snapshot.clone(),
                    list,
                },
            );
            Some(snapshot)
        })
    }

    /// Takes an object out; was it there? Another uid, or a higher version than the deletion's, stays.
    pub(crate) fn delete(&self, name: &ObjectName, uid: &str, version: u64, moves: bool) -> bool {
        self.change(|state| {
            if moves {
                state.position = state.position.max(version);
            }
            let doomed = state.objects.get(name).is_some_and(|entry| {
                &*entry.snapshot.uid == uid && entry.snapshot.version <= version
            });
            if doomed && let Some(entry) = state.objects.remove(name) {
                state.bytes -= OVERHEAD + entry.snapshot.text.len();
            }
            doomed
        })
    }

    /// A list begins: what it does not show until `end_list` is gone.
    pub(crate) fn begin_list(&self) {
        self.change(|state| state.list = state.list.wrapping_add(1));
    }

    /// The list has ended at this version: what it did not show is taken out.
    pub(crate) fn end_list(&self, version: u64) -> Vec<Removed> {
        self.change(|state| {
            let (list, mut freed, mut removed) = (state.list, 0, Vec::new());
            state.objects.retain(|name, entry| {
                if entry.list != list {
                    freed += OVERHEAD + entry.snapshot.text.len();
                    removed.push(Removed {
                        name: name.clone(),
                        uid: entry.snapshot.uid.clone(),
                    });
                }
                entry.list == list
            });
            state.bytes -= freed;
            state.position = state.position.max(version);
            state.synced = true;
            removed
        })
    }

    /// A bookmark: complete up to here.
    pub(crate) fn set_position(&self, version: u64) {
        self.change(|state| state.position = state.position.max(version));
    }

    /// Nobody writes any more: all who wait are woken.
    pub(crate) fn close(&self) {
        self.change(|state| state.closed = true);
    }
}

#[cfg(test)]
mod tests;
