//! Fills a store from a journal, and tells a journal what to keep.
//!
//! Must not know files.

use std::sync::Arc;

use serde_json::Value;

use super::{Change, Store};
use crate::object::{Key, Stored};

impl Store {
    /// Remembers changes from now on until [`Store::take_pending`].
    pub fn keep_pending(&mut self) {
        self.pending.get_or_insert_default();
    }

    /// Returns the changes since the last time, in their order.
    pub fn take_pending(&mut self) -> Vec<Arc<Change>> {
        self.pending
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Returns all objects, with their storages and keys.
    pub fn all(&self) -> Vec<(Arc<str>, Key, Stored)> {
        let storages = self.objects.iter();
        storages
            .flat_map(|(storage, objects)| {
                let own = objects.iter();
                own.map(|(key, object)| (storage.clone(), key.clone(), object.clone()))
            })
            .collect()
    }

    /// Puts in an object of a snapshot. What it asks of the garbage collector is looked at again.
    pub fn load(&mut self, storage: &str, key: Key, object: Value) {
        let storage = self.storage(storage);
        let object = Arc::new(object);
        self.follow(&storage, &key, None, Some(&object));
        self.insert(&storage, &key, &object);
    }

    /// Ends the loading of a snapshot of this version: there is no history before it.
    pub fn loaded(&mut self, version: u64) {
        self.version = version;
        self.compact();
    }

    /// Repeats a change. `last` is the last state of a removed object.
    pub fn repeat(
        &mut self,
        version: u64,
        storage: &str,
        key: Key,
        new: Option<Value>,
        last: Option<Value>,
    ) {
        let storage = self.storage(storage);
        self.version = version;
        let object = new.map(Arc::new);
        let (old, new) = match &object {
            Some(object) => {
                let (old, new) = self.insert(&storage, &key, object);
                (old, Some(new))
            }
            None => (self.take(&storage, &key), None),
        };
        self.follow(&storage, &key, old.as_ref(), object.as_ref());
        let last = last.as_ref().map(Stored::of);
        self.record(&storage, key, old, new, last);
    }

    fn storage(&self, name: &str) -> Arc<str> {
        let known = self.objects.get_key_value(name);
        known.map_or_else(|| name.into(), |(storage, _)| storage.clone())
    }
}
