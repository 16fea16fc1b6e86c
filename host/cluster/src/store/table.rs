//! Entries by the name of their object, which is stored once: in the object.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use super::Entry;

/// A hash table whose entries are their own keys.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: HashTable<Entry>,
    /// Names are chosen by whoever may create objects, so that their hash must not be known to them.
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

    /// Adds an entry whose name is not there.
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
