//! Objects and their history: the role of etcd in the cluster.
//!
//! Owns the one resource version that every write advances, the objects of every kind, and the
//! bounded history that serves watches and the later pages of a list. Must not know kinds, schemas
//! or HTTP: a storage is a name.

mod replay;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::object::{Key, Object};
use crate::owners::Owners;

/// The maximum number of changes in the history. Enough for a list of 10,000 objects in pages of
/// 500 to complete while all of them are rewritten.
const HISTORY_CHANGES: usize = 20_000;
/// The maximum (estimated) bytes of these changes: 20 objects of the maximum size of a request (3
/// MiB).
const HISTORY_BYTES: usize = 64 << 20;

/// One write.
#[derive(Debug)]
pub(crate) struct Change {
    pub version: u64,
    pub storage: Arc<str>,
    pub key: Key,
    pub old: Option<Object>,
    pub new: Option<Object>,
    /// The last state of a removed object, with the version of its removal; `None` for other
    /// writes.
    pub last: Option<Object>,
    size: usize,
}

/// A position that is no longer in the history.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    pub oldest: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Store {
    version: u64,
    objects: BTreeMap<Arc<str>, BTreeMap<Key, Object>>,
    history: VecDeque<Arc<Change>>,
    history_bytes: usize,
    /// Changes up to and including this version are dropped.
    compacted: u64,
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
            history: VecDeque::new(),
            history_bytes: 0,
            compacted: 0,
            owners: Owners::default(),
            pending: None,
        }
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn get(&self, storage: &str, key: &Key) -> Option<&Object> {
        self.objects.get(storage)?.get(key)
    }

    /// Returns the objects of one namespace, or of all, in the order of their keys.
    pub fn list<'a>(
        &'a self,
        storage: &str,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Object)> + use<'a> {
        let start = Key::new(namespace.unwrap_or_default(), "");
        self.objects
            .get(storage)
            .into_iter()
            .flat_map(move |objects| objects.range(start.clone()..))
            .take_while(move |(key, _)| namespace.is_none_or(|n| key.namespace == n))
    }

    /// Returns whether a namespace contains no objects.
    pub fn is_empty(&self, namespace: &str) -> bool {
        let mut storages = self.objects.keys();
        storages.all(|s| self.list(s, Some(namespace)).next().is_none())
    }

    /// Returns everything in a namespace, whatever its kind.
    pub fn in_namespace(&self, namespace: &str) -> Vec<(Arc<str>, Key)> {
        let storages = self.objects.keys();
        storages
            .flat_map(|s| {
                self.list(s, Some(namespace))
                    .map(|(key, _)| (s.clone(), key.clone()))
            })
            .filter(|(_, key)| !key.namespace.is_empty())
            .collect()
    }

    /// Returns the objects as of `version`, by undoing later changes.
    pub fn list_at(
        &self,
        storage: &str,
        namespace: Option<&str>,
        version: u64,
    ) -> Result<Vec<(Key, Object)>, Compacted> {
        if version < self.compacted {
            return Err(Compacted {
                oldest: self.compacted,
            });
        }
        let mut objects: BTreeMap<Key, Object> = self
            .list(storage, namespace)
            .map(|(k, o)| (k.clone(), o.clone()))
            .collect();
        for change in self
            .history
            .iter()
            .rev()
            .take_while(|c| c.version > version)
        {
            if &*change.storage != storage || namespace.is_some_and(|n| n != change.key.namespace) {
                continue;
            }
            match &change.old {
                Some(old) => objects.insert(change.key.clone(), old.clone()),
                None => objects.remove(&change.key),
            };
        }
        Ok(objects.into_iter().collect())
    }

    /// Returns at most `max` changes of a storage after `version`, and the position that they
    /// reach.
    pub fn since(
        &self,
        storage: &str,
        namespace: Option<&str>,
        version: u64,
        max: usize,
    ) -> Result<(Vec<Arc<Change>>, u64), Compacted> {
        if version < self.compacted {
            return Err(Compacted {
                oldest: self.compacted,
            });
        }
        let first = self.history.partition_point(|c| c.version <= version);
        let mut found = Vec::new();
        for change in self.history.range(first..) {
            if &*change.storage != storage || namespace.is_some_and(|n| n != change.key.namespace) {
                continue;
            }
            if found.len() == max {
                let reached = found.last().map_or(version, |c: &Arc<Change>| c.version);
                return Ok((found, reached));
            }
            found.push(change.clone());
        }
        Ok((found, self.version.max(version)))
    }

    /// Stores an object under the next version, and writes the version into the object.
    pub fn put(&mut self, storage: &Arc<str>, key: Key, mut value: Value) -> Object {
        self.version += 1;
        set_version(&mut value, self.version);
        let object = Arc::new(value);
        let old = self
            .objects
            .entry(storage.clone())
            .or_default()
            .insert(key.clone(), object.clone());
        self.record(storage, key, old, Some(object.clone()), None);
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
        let objects = self.objects.entry(storage.clone()).or_default();
        let old = objects.insert(key.clone(), object.clone());
        self.owners
            .learn(storage, &key, old.as_deref(), Some(&*object));
    }

    /// Takes the history: watches and pages from before now must start over.
    pub fn take_history(&mut self) -> Vec<Arc<Change>> {
        let history = std::mem::take(&mut self.history);
        self.compact();
        history.into()
    }

    /// Removes an object; returns its last state with the version of the removal.
    pub fn remove(&mut self, storage: &Arc<str>, key: &Key, last: Value) -> Object {
        self.version += 1;
        let mut last = last;
        set_version(&mut last, self.version);
        let last = Arc::new(last);
        let old = self
            .objects
            .get_mut(storage)
            .and_then(|objects| objects.remove(key));
        self.record(storage, key.clone(), old, None, Some(last.clone()));
        last
    }

    /// Replaces the content of objects without a new version and without events, after a change of
    /// their schema.
    pub fn reread(&mut self, storage: &str, mut read: impl FnMut(&Value) -> Option<Value>) {
        let Some(objects) = self.objects.get_mut(storage) else {
            return;
        };
        for object in objects.values_mut() {
            if let Some(value) = read(object) {
                *object = Arc::new(value);
            }
        }
    }

    /// Drops the history, so that watches and pages from before now must start over.
    pub fn compact(&mut self) {
        self.history.clear();
        self.history_bytes = 0;
        self.compacted = self.version;
    }

    fn record(
        &mut self,
        storage: &Arc<str>,
        key: Key,
        old: Option<Object>,
        new: Option<Object>,
        last: Option<Object>,
    ) {
        self.owners
            .follow(storage, &key, old.as_deref(), new.as_deref());
        let size = new.as_deref().or(last.as_deref()).map_or(0, size_of);
        let storage = storage.clone();
        self.history_bytes += size;
        let change = Arc::new(Change {
            version: self.version,
            storage,
            key,
            old,
            new,
            last,
            size,
        });
        if let Some(pending) = &mut self.pending {
            pending.push(change.clone());
        }
        self.history.push_back(change);
        while self.history.len() > HISTORY_CHANGES || self.history_bytes > HISTORY_BYTES {
            let Some(oldest) = self.history.pop_front() else {
                break;
            };
            self.history_bytes -= oldest.size;
            self.compacted = oldest.version;
        }
    }
}

fn set_version(value: &mut Value, version: u64) {
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), json!(version.to_string()));
    }
}

/// Estimates the memory of a value in bytes.
fn size_of(value: &Value) -> usize {
    const NODE: usize = 32;
    match value {
        Value::String(s) => NODE + s.len(),
        Value::Array(items) => NODE + items.iter().map(size_of).sum::<usize>(),
        Value::Object(map) => {
            NODE + map
                .iter()
                .map(|(k, v)| NODE + k.len() + size_of(v))
                .sum::<usize>()
        }
        _ => NODE,
    }
}
