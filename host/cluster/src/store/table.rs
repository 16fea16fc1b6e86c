//! Entries by the name of their object; the name is stored once, in the object.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::AtomicU32;

use hashbrown::HashTable;
use vmhost_core::Snapshot;

use super::index::Held;

/// One object, under the name of its snapshot.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) snapshot: Snapshot,
    pub(super) held: Held,
    /// The last list that showed the object. Only the informer writes this field, and readers
    /// ignore it.
    pub(super) list: AtomicU32,
}

/// A hash table whose entries are their own keys.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: HashTable<Entry>,
    /// Seeded, because any client that may create objects chooses names, and must not know their
    /// hashes.
    hasher: RandomState,
}

impl Entry {
    fn is(&self, name: &str) -> bool {
        self.snapshot.name.as_str() == name
    }
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        let hash = self.hasher.hash_one(name);
        self.entries.find(hash, |entry| entry.is(name))
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Entry> {
        let hash = self.hasher.hash_one(name);
        self.entries.find_mut(hash, |entry| entry.is(name))
    }

    /// Adds an entry; its name must not be present.
    pub(super) fn insert(&mut self, entry: Entry) {
        let hash_of = |entry: &Entry| self.hasher.hash_one(entry.snapshot.name.as_str());
        let hash = hash_of(&entry);
        self.entries.insert_unique(hash, entry, hash_of);
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Entry> {
        let hash = self.hasher.hash_one(name);
        let found = self.entries.find_entry(hash, |entry| entry.is(name)).ok()?;
        Some(found.remove().0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut()
    }
}
