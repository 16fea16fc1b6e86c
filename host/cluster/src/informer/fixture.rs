//! A store without an informer: the owner's objects, kept as a watch of the API server would keep
//! them. This module must not know what the objects are for.

use vmhost_core::{ObjectName, Snapshot};

use super::spec::WatchSpec;
use crate::store::Store;
use crate::text::{Ingest, IngestError};

/// A store that only its owner fills.
pub struct Fixture {
    ingest: Ingest,
    store: Store,
}

impl Fixture {
    /// Creates an empty store with the fields and indexes that the watch would keep. The API server
    /// applies selectors, so they have no effect here.
    pub fn new(spec: &WatchSpec) -> Self {
        let store = Store::default();
        store.keep_indexes(&spec.indexes);
        Self {
            ingest: Ingest::new(&spec.kind, &spec.keeps()),
            store,
        }
    }

    /// Adds an object, or replaces one of the same name. Returns the object as it is kept.
    pub fn put(&self, text: &str) -> Result<Snapshot, IngestError> {
        let incoming = self.ingest.object(text)?;
        let snapshot = incoming.build(incoming.head.name.clone());
        self.store.upsert(snapshot.clone(), true);
        Ok(snapshot)
    }

    /// Adds an object as it is, or replaces one of the same name. The object has all fields that
    /// the store keeps; its text is shared, not copied.
    pub fn keep(&self, object: Snapshot) {
        self.store.upsert(object, true);
    }

    /// Removes the object of this name. Returns it if there was one.
    pub fn remove(&self, name: &ObjectName) -> Option<Snapshot> {
        let object = self.store.get(name.as_str())?;
        self.store.delete(name, object.uid(), u64::MAX, false)
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use vmhost_core::{FieldPath, Gvk};

    use super::*;
    use crate::store::{Index, Query};
    use crate::text::{Wanted, ingest};

    #[test]
    fn an_object_is_pruned_and_found_as_behind_a_watch() {
        let node = Index::Field(FieldPath::parse("spec.nodeName").unwrap());
        let fixture = Fixture::new(&WatchSpec {
            wanted: Wanted::fields(Some(["spec.a"])),
            indexes: BTreeSet::from([node.clone()]),
            ..WatchSpec::of(Gvk::new("", "v1", "Pod"))
        });
        let text = r#"{"metadata":{"name":"x","namespace":"n","uid":"u","resourceVersion":"7"},"spec":{"a":1,"b":2,"nodeName":"m"}}"#;
        let kept = fixture.put(text).unwrap();
        assert!(kept.text.contains(r#""kind":"Pod""#) && !kept.text.contains(r#""b""#));
        let query = Query {
            index: Some((&node, "m")),
            ..Query::default()
        };
        assert_eq!(fixture.store().page(&query).unwrap().0.len(), 1);
        let odd = text.replace("\"7\"", "\"seven\"");
        assert!(fixture.put(&odd).unwrap_err().to_string().contains("seven"));
    }

    #[test]
    fn an_object_is_kept_as_it_is_until_it_is_removed() {
        let fixture = Fixture::new(&WatchSpec::of(Gvk::new("", "v1", "Pod")));
        let text = r#"{"metadata":{"name":"x","uid":"u","resourceVersion":"7"}}"#;
        let object = ingest(text, &Gvk::new("", "v1", "Pod"), &Wanted::All).unwrap();
        fixture.keep(object.clone());
        let kept = fixture.store().get("x").unwrap();
        assert!(std::sync::Arc::ptr_eq(&kept, &object));
        assert!(fixture.remove(&object.name).is_some());
        assert!(fixture.store().is_empty() && fixture.remove(&object.name).is_none());
    }
}
