//! A store without an informer: the owner's objects, kept as a watch of the API server would keep
//! them.

use vmhost_core::Snapshot;

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
    use crate::text::Wanted;

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
}
