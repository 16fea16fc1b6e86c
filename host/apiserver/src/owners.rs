//! An index of owner references, and the work list of garbage collection.
//!
//! Owns both, and updates them with every write, so that the collector never searches the store.
//! Must not know kinds, or what is done with an object.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

use crate::meta;
use crate::object::Key;

/// The finalizer of an owner that is deleted after its dependents.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an owner whose dependents remain.
pub(crate) const ORPHAN: &str = "orphan";

/// The identity of an object: its storage and its key.
pub(crate) type Id = (Arc<str>, Key);

/// What a deleted owner waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Until all blocking dependents are gone.
    Foreground,
    /// Until its dependents no longer name it.
    Orphan,
}

impl Waits {
    /// Returns what an object waits for; `None` if it is not being deleted, or waits for other
    /// finalizers.
    pub fn of(object: &Value) -> Option<Waits> {
        let has = |name: &str| {
            let finalizers = meta::get(object, "finalizers").and_then(Value::as_array);
            finalizers.is_some_and(|list| list.iter().any(|f| f == name))
        };
        match meta::is_deleting(object) {
            true if has(ORPHAN) => Some(Waits::Orphan),
            true if has(FOREGROUND) => Some(Waits::Foreground),
            _ => None,
        }
    }
}

/// An entry of the work list.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// An object with new owner references.
    Dependent(Id),
    /// All dependents of an owner after `after`. `gone`: the owner no longer exists.
    Dependents {
        uid: String,
        gone: bool,
        after: Option<Id>,
    },
    /// A waiting owner that may be done.
    Owner(Id),
}

#[derive(Clone, Debug, Default)]
struct Dependents {
    all: BTreeSet<Id>,
    /// The number of dependents that block their owner's deletion.
    blocking: usize,
}

/// The index. It identifies an owner by uid, whether or not the owner exists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owners {
    dependents: HashMap<String, Dependents>,
    waiting: HashMap<String, Id>,
    work: VecDeque<Work>,
    /// The uids of removed objects. `Some` if this state holds only a part of a cluster: then any
    /// other owner that is missing here may exist in that cluster.
    removed: Option<HashSet<String>>,
}

impl Owners {
    /// From now on, assumes that an owner that is missing here exists in another part of the
    /// cluster.
    pub fn assume_others(&mut self) {
        self.removed.get_or_insert_default();
    }

    /// Returns whether an owner that is missing here may exist in another part of the cluster.
    pub fn may_exist(&self, uid: &str) -> bool {
        let removed = self.removed.as_ref();
        removed.is_some_and(|removed| !removed.contains(uid))
    }

    /// Updates the index for an object that existed before. This adds no work for the collector.
    pub fn learn(
        &mut self,
        storage: &Arc<str>,
        key: &Key,
        old: Option<&Value>,
        new: Option<&Value>,
    ) {
        let work = std::mem::take(&mut self.work);
        self.follow(storage, key, old, new);
        self.work = work;
    }

    /// Updates the index after a write.
    pub fn follow(
        &mut self,
        storage: &Arc<str>,
        key: &Key,
        old: Option<&Value>,
        new: Option<&Value>,
    ) {
        let id = || (storage.clone(), key.clone());
        self.follow_references(&id, old, new);
        let (was, now) = (old.and_then(Waits::of), new.and_then(Waits::of));
        if let Some(object) = new.or(old).filter(|_| was != now) {
            let uid = meta::text(object, "uid").to_owned();
            match now {
                None => drop(self.waiting.remove(&uid)),
                Some(waits) => {
                    self.waiting.insert(uid.clone(), id());
                    if waits == Waits::Foreground {
                        self.look_at_dependents(uid, false);
                    }
                    self.work.push_back(Work::Owner(id()));
                }
            }
        }
        if let (Some(old), None) = (old, new) {
            let uid = meta::text(old, "uid").to_owned();
            if let Some(removed) = &mut self.removed {
                removed.insert(uid.clone());
            }
            self.look_at_dependents(uid, true);
        }
    }

    fn follow_references(&mut self, id: &dyn Fn() -> Id, old: Option<&Value>, new: Option<&Value>) {
        let (before, after) = (references(old), references(new));
        if before == after {
            return;
        }
        for (uid, blocks) in &before {
            if let Some(entry) = self.dependents.get_mut(*uid) {
                entry.all.remove(&id());
                entry.blocking -= usize::from(*blocks);
                if entry.all.is_empty() {
                    self.dependents.remove(*uid);
                }
            }
        }
        for (uid, blocks) in &after {
            let entry = self.dependents.entry((*uid).to_owned()).or_default();
            entry.all.insert(id());
            entry.blocking += usize::from(*blocks);
        }
        for (uid, _) in &before {
            // One blocking dependent may remain: the owner itself.
            if let Some(owner) = self.waiting.get(*uid).filter(|_| self.blocking(uid) <= 1) {
                self.work.push_back(Work::Owner(owner.clone()));
            }
        }
        if !after.is_empty() {
            self.work.push_back(Work::Dependent(id()));
        }
    }

    fn look_at_dependents(&mut self, uid: String, gone: bool) {
        if self.dependents.contains_key(&uid) {
            let after = None;
            self.work.push_back(Work::Dependents { uid, gone, after });
        }
    }

    /// Returns whether there is work.
    pub fn has_work(&self) -> bool {
        !self.work.is_empty()
    }

    pub fn next(&mut self) -> Option<Work> {
        self.work.pop_front()
    }

    /// Drops all work, because nobody does it.
    pub fn forget(&mut self) {
        self.work.clear();
    }

    /// Puts unfinished work at the front.
    pub fn again(&mut self, work: Work) {
        self.work.push_front(work);
    }

    /// Returns at most `max` dependents of an owner, those after `after`.
    pub fn dependents(&self, uid: &str, after: Option<&Id>, max: usize) -> Vec<Id> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let entry = self.dependents.get(uid).into_iter();
        entry
            .flat_map(|entry| entry.all.range::<Id, _>((start, Bound::Unbounded)))
            .take(max)
            .cloned()
            .collect()
    }

    /// Returns whether an owner has dependents.
    pub fn has_dependents(&self, uid: &str) -> bool {
        self.dependents.contains_key(uid)
    }

    /// Returns how many of an owner's dependents block its deletion.
    pub fn blocking(&self, uid: &str) -> usize {
        self.dependents.get(uid).map_or(0, |entry| entry.blocking)
    }

    /// Returns whether one of an owner's dependents waits for dependents of its own.
    pub fn has_waiting_dependent(&self, uid: &str) -> bool {
        let all = self.dependents.get(uid).map(|entry| &entry.all);
        all.is_some_and(|all| self.waiting.values().any(|id| all.contains(id)))
    }
}

/// Returns the owners of an object, without duplicates, and whether it blocks their deletion.
fn references(object: Option<&Value>) -> Vec<(&str, bool)> {
    let list = object.and_then(|o| meta::get(o, "ownerReferences"));
    let mut found: Vec<(&str, bool)> = Vec::new();
    for reference in list.and_then(Value::as_array).into_iter().flatten() {
        let Some(uid) = reference["uid"].as_str() else {
            continue;
        };
        let blocks = reference["blockOwnerDeletion"] == true;
        match found.iter_mut().find(|(known, _)| *known == uid) {
            Some((_, known)) => *known |= blocks,
            None => found.push((uid, blocks)),
        }
    }
    found
}
