//! The history of writes: what it serves, and how much of it is kept.
//!
//! Must not know how an object is stored or indexed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Change, Compacted, Store};
use crate::object::{Key, Stored};

/// The maximum number of changes in the history. Enough for a list of 10,000 objects in pages of
/// 500 to complete while all of them are rewritten.
pub(super) const HISTORY_CHANGES: usize = 20_000;
/// The maximum bytes that only the history keeps: the states that were replaced or removed. Enough
/// for those 10,000 objects of 3 KiB, or for 10 of the maximum size of a request (3 MiB).
pub(super) const HISTORY_BYTES: usize = 32 << 20;

impl Store {
    /// Returns the objects as of `version`, by undoing later changes.
    pub fn list_at(
        &self,
        storage: &str,
        namespace: Option<&str>,
        version: u64,
    ) -> Result<Vec<(Key, Stored)>, Compacted> {
        self.reaches(storage, version)?;
        let mut objects: BTreeMap<Key, Stored> = self
            .list_stored(storage, namespace)
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
        self.reaches(storage, version)?;
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

    /// Returns all changes after `version`, the last one first; `None` if some are dropped already.
    pub fn after(&self, version: u64) -> Option<Vec<Arc<Change>>> {
        let latest = self.history.iter().rev();
        let found: Vec<_> = latest
            .take_while(|change| change.version > version)
            .cloned()
            .collect();
        let all = self.version.saturating_sub(version);
        (found.len() as u64 >= all).then_some(found)
    }

    /// Checks that no change of a storage after `version` is dropped. Writes elsewhere may have
    /// taken the room of older ones.
    fn reaches(&self, storage: &str, version: u64) -> Result<(), Compacted> {
        let dropped = self.dropped.get(storage).copied().unwrap_or(0);
        let oldest = dropped.max(self.compacted);
        match version < oldest {
            true => Err(Compacted { oldest }),
            false => Ok(()),
        }
    }

    /// Takes the history: watches and pages from before now must start over.
    pub fn take_history(&mut self) -> Vec<Arc<Change>> {
        let history = std::mem::take(&mut self.history);
        self.compact();
        history.into()
    }

    /// Drops the history, so that watches and pages from before now must start over.
    pub fn compact(&mut self) {
        self.history.clear();
        self.history_bytes = 0;
        self.dropped.clear();
        self.compacted = self.version;
    }

    /// Appends a write to the history, and drops the oldest ones for which there is no room.
    pub(super) fn record(
        &mut self,
        storage: &Arc<str>,
        key: Key,
        old: Option<Stored>,
        new: Option<Stored>,
        last: Option<Stored>,
    ) {
        let text = |state: Option<Stored>| state.map(|state| state.without_value());
        let change = Arc::new(Change {
            version: self.version,
            storage: storage.clone(),
            key,
            old: text(old),
            new: text(new),
            last: text(last),
        });
        if let Some(pending) = &mut self.pending {
            pending.push(change.clone());
        }
        self.history_bytes += change.size();
        self.history.push_back(change);
        while self.history.len() > HISTORY_CHANGES || self.history_bytes > HISTORY_BYTES {
            let Some(oldest) = self.history.pop_front() else {
                break;
            };
            self.history_bytes -= oldest.size();
            *self.dropped.entry(oldest.storage.clone()).or_default() = oldest.version;
        }
    }
}
