//! **Store.** The write side of a store. Only the informer calls it, from one task; indexes come
//! and go from other threads. This module must not know how objects are listed and watched.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use vmhost_core::{Object, ObjectName, Snapshot};

use super::index::{Found, Held, Index, Indexes, Kept};
use super::table::Entry;
use super::{OVERHEAD, State, Store, unpoisoned};
use crate::text::Head;

/// What a store shows under a name.
#[derive(Debug)]
pub(crate) enum Shows {
    Nothing,
    /// This object in this version, or in a later one.
    This,
    /// Another object to replace: an earlier version, or another uid. Its successor takes over the
    /// name's allocation.
    Another(ObjectName),
}

/// The result of an upsert.
#[derive(Debug)]
pub(crate) struct Upserted {
    /// What the name showed before; possibly an object with another uid.
    pub old: Option<Snapshot>,
    /// What the name shows now.
    pub new: Snapshot,
}

/// The ended list is older than the store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Older;

impl Store {
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let (result, position) = {
            let mut state = unpoisoned(self.state.write());
            let result = change(&mut state);
            (
                result,
                if state.is_still() {
                    u64::MAX
                } else {
                    state.position
                },
            )
        };
        self.wake_up_to(position);
        // A waiter that subscribes from here on reads the state afterwards.
        if self.changes.receiver_count() > 0 {
            self.changes
                .send_modify(|count| *count = count.wrapping_add(1));
        }
        result
    }

    /// Wakes the tasks that wait for this version or a lower one.
    fn wake_up_to(&self, position: u64) {
        let woken = {
            let mut waiters = self.waiters.lock();
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
    }

    /// Returns what the store shows under an object's name, before the object is built. An object
    /// that the store already shows is marked as listed, and an event moves the position
    /// nevertheless.
    pub(crate) fn shows(&self, head: &Head<'_>, moves: bool) -> Shows {
        let position = {
            let state = self.read();
            let Some(entry) = state.objects.get(head.name.as_str()) else {
                return Shows::Nothing;
            };
            let present = &entry.snapshot;
            let believed = state.rewinding && entry.list.load(Ordering::Relaxed) != state.list;
            if believed || is_older(present, &head.uid, head.version) {
                return Shows::Another(present.name.clone());
            }
            // There is only one informer, so no list begins or ends meanwhile.
            entry.list.store(state.list, Ordering::Relaxed);
            state.position
        };
        if moves && position < head.version {
            self.set_position(head.version);
        }
        Shows::This
    }

    /// Puts an object into the store. Returns the change; `None` if there is none. A lower version
    /// of the same uid never replaces a higher one, unless the server's versions went back
    /// (`begin_rewind`). `moves` is set for an event of a watch, up to which the store is then
    /// complete; an item of a list does not move the position.
    pub(crate) fn upsert(&self, new: Snapshot, moves: bool) -> Option<Upserted> {
        // The text is parsed outside of the lock.
        let kept = self.read().indexes.kept.clone();
        let mut values = kept.values(&new.text);
        self.change(|state| {
            if moves {
                state.position = state.position.max(new.version);
            }
            if !Arc::ptr_eq(&kept, &state.indexes.kept) {
                values = state.indexes.kept.values(&new.text);
            }
            state.put(&new, &values).map(|old| Upserted {
                old,
                new: new.clone(),
            })
        })
    }

    /// Deletes an object and returns it. An object with another uid, or with a higher version than
    /// the deletion, stays.
    pub(crate) fn delete(
        &self,
        name: &ObjectName,
        uid: &str,
        version: u64,
        moves: bool,
    ) -> Option<Snapshot> {
        self.change(|state| {
            if moves {
                state.position = state.position.max(version);
            }
            let doomed = state.objects.get(name.as_str()).is_some_and(|entry| {
                entry.snapshot.uid() == uid && entry.snapshot.version <= version
            });
            doomed.then(|| state.take(name)).flatten()
        })
    }

    /// Begins a list: objects that it does not show before `end_list` are deleted.
    pub(crate) fn begin_list(&self) {
        self.begin(false);
    }

    /// As [`Self::begin_list`], for a list that overrides the store although it may be older: the
    /// server's versions went back, because etcd was restored from a backup. Each object of the
    /// list replaces the present one, even an equal one.
    pub(crate) fn begin_rewind(&self) {
        self.begin(true);
    }

    fn begin(&self, rewinding: bool) {
        self.change(|state| {
            state.list = state.list.wrapping_add(1);
            state.absent = false;
            state.rewinding = rewinding;
        });
    }

    /// Ends the list at this version: deletes and returns the objects that it did not show. A list
    /// that is older than the store changes nothing, unless it began with [`Self::begin_rewind`];
    /// then all waiting tasks are woken, because the versions that they wait for may be lost.
    pub(crate) fn end_list(&self, version: u64) -> Result<Vec<Snapshot>, Older> {
        let (rewound, removed) = self.change(|state| {
            let rewound = version < state.position;
            if rewound && !state.rewinding {
                return Err(Older);
            }
            let list = state.list;
            let old = |entry: &&Entry| entry.list.load(Ordering::Relaxed) != list;
            let gone = state.objects.iter().filter(old);
            let gone: Vec<ObjectName> = gone.map(|entry| entry.snapshot.name.clone()).collect();
            let removed = gone.iter().filter_map(|name| state.take(name)).collect();
            state.position = version;
            state.synced = true;
            state.vanished = false;
            state.rewinding = false;
            Ok((rewound, removed))
        })?;
        if rewound {
            self.wake_up_to(u64::MAX);
        }
        Ok(removed)
    }

    /// Deletes and returns all objects, because the cluster no longer serves the kind. The store
    /// stays synced, and waiting tasks are woken.
    pub(crate) fn vanish(&self) -> Vec<Snapshot> {
        self.change(|state| {
            state.absent = true;
            state.vanished = true;
            let names = state
                .objects
                .iter()
                .map(|entry| entry.snapshot.name.clone());
            let names: Vec<ObjectName> = names.collect();
            names.iter().filter_map(|name| state.take(name)).collect()
        })
    }

    /// Records that the store is complete up to this version.
    pub(crate) fn set_position(&self, version: u64) {
        self.change(|state| state.position = state.position.max(version));
    }

    /// Closes the store, which has no writer any more, and wakes all waiting tasks.
    pub(crate) fn close(&self) {
        self.change(|state| state.closed = true);
    }

    /// Keeps exactly these indexes. New ones are filled by one scan, outside of the lock except for
    /// objects that change meanwhile.
    pub(crate) fn keep_indexes(&self, indexes: &BTreeSet<Index>) {
        if self.read().indexes.kept.list().iter().eq(indexes) {
            return;
        }
        let kept = Arc::new(Kept::new(indexes));
        let snapshots = self.snapshots();
        // Keyed by address, which is unique while the snapshots are held here.
        let values: HashMap<*const Object, Found<'_>> = snapshots
            .iter()
            .map(|snapshot| (Arc::as_ptr(snapshot), kept.values(&snapshot.text)))
            .collect();
        self.change(|state| {
            let State {
                objects,
                indexes: present,
                ..
            } = state;
            *present = Indexes::new(kept.clone());
            for Entry { snapshot, held, .. } in objects.iter_mut() {
                *held = Held::default();
                match values.get(&Arc::as_ptr(snapshot)) {
                    Some(values) => present.replace(&snapshot.name, held, values),
                    None => {
                        let values = kept.values(&snapshot.text);
                        present.replace(&snapshot.name, held, &values);
                    }
                }
            }
        });
    }
}

/// Returns whether an object with this uid and version replaces the present one.
fn is_older(present: &Snapshot, uid: &str, version: u64) -> bool {
    present.uid() != uid || present.version < version
}

impl State {
    /// Puts an object. `None` if the store already shows this or a newer version; otherwise what it
    /// showed before.
    fn put(&mut self, new: &Snapshot, values: &Found<'_>) -> Option<Option<Snapshot>> {
        let (list, rewinding) = (self.list, self.rewinding);
        if let Some(entry) = self.objects.get_mut(new.name.as_str()) {
            let listed = std::mem::replace(entry.list.get_mut(), list);
            let believed = rewinding && listed != list;
            let present = &entry.snapshot;
            if !believed && !is_older(present, new.uid(), new.version) {
                return None;
            }
            self.bytes = self.bytes - present.text.len() + new.text.len();
            self.indexes.replace(&new.name, &mut entry.held, values);
            return Some(Some(std::mem::replace(&mut entry.snapshot, new.clone())));
        }
        self.bytes += OVERHEAD + new.text.len();
        let mut held = Held::default();
        self.indexes.replace(&new.name, &mut held, values);
        self.order.insert(new.name.clone());
        let entry = Entry {
            snapshot: new.clone(),
            list: AtomicU32::new(self.list),
            held,
        };
        self.objects.insert(entry);
        Some(None)
    }

    fn take(&mut self, name: &ObjectName) -> Option<Snapshot> {
        let entry = self.objects.remove(name.as_str())?;
        self.order.remove(name);
        self.indexes.remove(name, &entry.held);
        self.bytes -= OVERHEAD + entry.snapshot.text.len();
        Some(entry.snapshot)
    }
}
