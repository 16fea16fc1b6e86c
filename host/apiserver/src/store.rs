//! Objects and their history: the role of etcd in the cluster.
//!
//! Owns the one resource version that every write advances, the objects of every kind, and the
//! bounded history that serves watches and the later pages of a list. A state of an object is one
//! text, which all of them share. Must not know kinds, schemas or HTTP: a storage is a name.

mod history;
mod replay;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::object::{Key, Object, Stored};
use crate::owners::Owners;

/// One write.
#[derive(Debug)]
pub(crate) struct Change {
    pub version: u64,
    pub storage: Arc<str>,
    pub key: Key,
    pub old: Option<Stored>,
    pub new: Option<Stored>,
    /// The last state of a removed object, with the version of its removal; `None` for other
    /// writes.
    pub last: Option<Stored>,
}

impl Change {
    /// Returns the bytes of the states that are no longer in the store. The new state is there, or
    /// is the old one of a later change.
    fn size(&self) -> usize {
        let gone = [&self.old, &self.last].into_iter().flatten();
        gone.map(Stored::size).sum()
    }
}

/// A position that is no longer in the history.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    pub oldest: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Store {
    version: u64,
    objects: BTreeMap<Arc<str>, BTreeMap<Key, Stored>>,
    /// The storages whose objects are kept as values too.
    values: &'static [&'static str],
    history: VecDeque<Arc<Change>>,
    history_bytes: usize,
    /// Changes up to and including this version are dropped.
    compacted: u64,
    /// By storage: the last change since then that made room for others.
    dropped: HashMap<Arc<str>, u64>,
    /// The index of owner references, updated by every write.
    pub owners: Owners,
    /// The changes that are not in a journal yet; `None` without a journal.
    pending: Option<Vec<Arc<Change>>>,
}

impl Store {
    pub fn new() -> Store {
        Store {
            version: 1,
            objects: BTreeMap::new(),
            values: &[],
            history: VecDeque::new(),
            history_bytes: 0,
            compacted: 0,
            dropped: HashMap::new(),
            owners: Owners::default(),
            pending: None,
        }
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    /// Keeps the objects of some storages as values too, because they are read more often than they
    /// are written.
    pub fn keep_values(&mut self, storages: &'static [&'static str]) {
        self.values = storages;
        for storage in storages {
            let objects = self.objects.get_mut(*storage);
            for stored in objects.into_iter().flat_map(BTreeMap::values_mut) {
                *stored = stored.clone().with_value(stored.object());
            }
        }
    }

    pub fn contains(&self, storage: &str, key: &Key) -> bool {
        self.stored(storage, key).is_some()
    }

    /// Returns an object as it is stored.
    pub fn stored(&self, storage: &str, key: &Key) -> Option<&Stored> {
        self.objects.get(storage)?.get(key)
    }

    /// Returns an object as a value.
    pub fn get(&self, storage: &str, key: &Key) -> Option<Object> {
        self.stored(storage, key).map(Stored::object)
    }

    /// Returns the objects of one namespace, or of all, in the order of their keys.
    pub fn list_stored<'a>(
        &'a self,
        storage: &str,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Stored)> + use<'a> {
        let start = Key::new(namespace.unwrap_or_default(), "");
        self.objects
            .get(storage)
            .into_iter()
            .flat_map(move |objects| objects.range(start.clone()..))
            .take_while(move |(key, _)| namespace.is_none_or(|n| key.namespace == n))
    }

    /// Returns the objects of one namespace, or of all, as values.
    pub fn list<'a>(
        &'a self,
        storage: &str,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Key, Object)> + use<'a> {
        let all = self.list_stored(storage, namespace);
        all.map(|(key, stored)| (key, stored.object()))
    }

    /// Returns whether a namespace contains no objects.
    pub fn is_empty(&self, namespace: &str) -> bool {
        let mut storages = self.objects.keys();
        storages.all(|s| self.list_stored(s, Some(namespace)).next().is_none())
    }

    /// Returns everything in a namespace, whatever its kind.
    pub fn in_namespace(&self, namespace: &str) -> Vec<(Arc<str>, Key)> {
        let storages = self.objects.keys();
        storages
            .flat_map(|s| {
                self.list_stored(s, Some(namespace))
                    .map(|(key, _)| (s.clone(), key.clone()))
            })
            .filter(|(_, key)| !key.namespace.is_empty())
            .collect()
    }

    /// Stores an object under the next version, and writes the version into the object.
    pub fn put(&mut self, storage: &Arc<str>, key: Key, mut value: Value) -> Object {
        self.version += 1;
        set_version(&mut value, self.version);
        let object = Arc::new(value);
        let (old, new) = self.insert(storage, &key, &object);
        self.follow(storage, &key, old.as_ref(), Some(&object));
        self.record(storage, key, old, Some(new), None);
        object
    }

    /// Puts in an existing object, unchanged and without an event. Later writes get higher versions
    /// than the object's own.
    pub fn seed(&mut self, storage: &Arc<str>, key: Key, value: Value) {
        let version = value.pointer("/metadata/resourceVersion");
        let version = version.and_then(Value::as_str);
        let version = version.and_then(|version| version.parse().ok());
        self.version = self.version.max(version.unwrap_or(0));
        let object = Arc::new(value);
        let (old, _) = self.insert(storage, &key, &object);
        let old = old.as_ref().map(Stored::head);
        self.owners
            .learn(storage, &key, old.as_deref(), Some(&*object));
    }

    /// Removes an object; returns its last state with the version of the removal.
    pub fn remove(&mut self, storage: &Arc<str>, key: &Key, last: Value) -> Object {
        self.version += 1;
        let mut last = last;
        set_version(&mut last, self.version);
        let old = self.take(storage, key);
        self.follow(storage, key, old.as_ref(), None);
        let stored = Stored::of(&last);
        self.record(storage, key.clone(), old, None, Some(stored));
        Arc::new(last)
    }

    /// Replaces the content of objects without a new version and without events, after a change of
    /// their schema.
    pub fn reread(&mut self, storage: &str, mut read: impl FnMut(&Value) -> Option<Value>) {
        let has_values = self.values.contains(&storage);
        let Some(objects) = self.objects.get_mut(storage) else {
            return;
        };
        for stored in objects.values_mut() {
            if let Some(value) = read(&stored.object()) {
                *stored = stored_as(Arc::new(value), has_values);
            }
        }
    }

    /// Stores an object; returns the state that it replaces, and its own.
    fn insert(
        &mut self,
        storage: &Arc<str>,
        key: &Key,
        object: &Object,
    ) -> (Option<Stored>, Stored) {
        let has_values = self.values.contains(&&**storage);
        let new = stored_as(object.clone(), has_values);
        let objects = self.objects.entry(storage.clone()).or_default();
        (objects.insert(key.clone(), new.clone()), new)
    }

    fn take(&mut self, storage: &str, key: &Key) -> Option<Stored> {
        self.objects.get_mut(storage)?.remove(key)
    }

    /// Updates the index of owner references after a write.
    fn follow(
        &mut self,
        storage: &Arc<str>,
        key: &Key,
        old: Option<&Stored>,
        new: Option<&Object>,
    ) {
        let old = old.map(Stored::head);
        let new = new.map(|object| &**object);
        self.owners.follow(storage, key, old.as_deref(), new);
    }
}

fn stored_as(object: Object, has_value: bool) -> Stored {
    let stored = Stored::of(&object);
    match has_value {
        true => stored.with_value(object),
        false => stored,
    }
}

fn set_version(value: &mut Value, version: u64) {
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), json!(version.to_string()));
    }
}
