//! Wakes watches: each after the writes of its kind in its namespace.
//!
//! Owns which places are waited at. Must not know what a watch reads, or how a write is made.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch::{Receiver, Sender};

use crate::store::Change;

/// The places that watches wait at, by storage.
#[derive(Debug, Default)]
pub(crate) struct Wakes(Mutex<HashMap<Arc<str>, Places>>);

/// The places of one storage.
#[derive(Debug, Default)]
struct Places {
    /// For watches of all namespaces.
    everywhere: Option<Sender<()>>,
    namespaces: HashMap<String, Sender<()>>,
}

impl Wakes {
    /// Returns a receiver that is notified of the writes to a storage, in one namespace or in all.
    pub fn wait(&self, storage: &Arc<str>, namespace: Option<&str>) -> Receiver<()> {
        let mut storages = self.0.lock();
        // What was left since the last watch began.
        storages.retain(|_, places| places.keep_used());
        let places = storages.entry(storage.clone()).or_default();
        let place = match namespace {
            None => places.everywhere.get_or_insert_default(),
            Some(name) => places.namespaces.entry(name.to_owned()).or_default(),
        };
        place.subscribe()
    }

    /// Wakes the watches that these changes may concern.
    pub fn wake(&self, changes: &[Arc<Change>]) {
        let storages = self.0.lock();
        for change in changes {
            let places = storages.get(&change.storage);
            let all = places.and_then(|places| places.everywhere.as_ref());
            let own = places.and_then(|places| places.namespaces.get(&change.key.namespace));
            for place in all.into_iter().chain(own) {
                place.send_replace(());
            }
        }
    }

    /// Wakes every watch.
    pub fn wake_all(&self) {
        for places in self.0.lock().values() {
            for place in places.everywhere.iter().chain(places.namespaces.values()) {
                place.send_replace(());
            }
        }
    }
}

impl Places {
    /// Drops the places at which no watch waits any more. Returns whether some are left.
    fn keep_used(&mut self) -> bool {
        self.everywhere.take_if(|place| place.is_closed());
        self.namespaces.retain(|_, place| !place.is_closed());
        self.everywhere.is_some() || !self.namespaces.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::Key;
    use crate::store::Store;

    /// Returns which receivers were woken since the last time.
    fn woken<const N: usize>(all: &mut [Receiver<()>; N]) -> [bool; N] {
        all.each_mut().map(|one| {
            let woken = one.has_changed().unwrap();
            one.mark_unchanged();
            woken
        })
    }

    #[test]
    fn a_write_wakes_the_watches_of_its_kind_and_namespace() {
        let (wakes, mut store) = (Wakes::default(), Store::new());
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let mut all = [(&a, None), (&a, Some("n")), (&a, Some("m")), (&b, None)]
            .map(|(storage, namespace)| wakes.wait(storage, namespace));
        let mut written = |storage: &Arc<str>, namespace: &str| {
            let before = store.version();
            store.put(storage, Key::new(namespace, "x"), json!({}));
            wakes.wake(&store.after(before).unwrap());
            woken(&mut all)
        };
        assert_eq!(written(&a, "n"), [true, true, false, false]);
        assert_eq!(written(&a, "other"), [true, false, false, false]);
        assert_eq!(written(&b, "n"), [false, false, false, true]);
        assert_eq!(written(&"c".into(), "n"), [false; 4]);
        wakes.wake_all();
        assert_eq!(woken(&mut all), [true; 4]);
    }

    #[test]
    fn places_without_watches_are_dropped() {
        let wakes = Wakes::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        for n in 0..100 {
            drop(wakes.wait(&a, Some(&n.to_string())));
            drop(wakes.wait(&b, None));
        }
        let kept = wakes.wait(&a, Some("kept"));
        assert_eq!(wakes.0.lock().len(), 1);
        assert_eq!(wakes.0.lock()[&a].namespaces.len(), 1);
        drop(kept);
    }
}
