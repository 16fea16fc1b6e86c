//! The object of each key as of its last turn that succeeded, for controllers that ask for it: the level-based way to tell added, changed and deleted apart.
//!
//! In memory only; it lives on across swaps. It holds at most one snapshot a key: the store's own while nobody has changed the object since, so that it costs a map
//! entry and no second text; a copy for a key that waits for its turn, and for an object that is gone until the policy has seen that.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use vmhost_core::{ObjectName, Snapshot};

/// Snapshots by key.
#[derive(Debug, Default)]
pub struct Previous(Mutex<HashMap<ObjectName, Snapshot>>);

impl Previous {
    /// What the key's last successful turn saw.
    pub fn get(&self, key: &ObjectName) -> Option<Snapshot> {
        self.lock().get(key).cloned()
    }

    /// A turn that saw this has succeeded; none: the object was gone.
    pub fn record(&self, key: &ObjectName, object: Option<&Snapshot>) {
        let mut known = self.lock();
        match object {
            Some(object) => known.insert(key.clone(), object.clone()),
            None => known.remove(key),
        };
    }

    /// The keys.
    pub fn keys(&self) -> Vec<ObjectName> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectName, Snapshot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
