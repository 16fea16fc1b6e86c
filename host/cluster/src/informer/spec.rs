//! The specification of a watch.

use std::collections::BTreeSet;

use vmhost_core::Gvk;

use crate::store::Index;
use crate::text::Wanted;

/// What an informer watches, and which fields it keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatchSpec {
    /// The kind.
    pub kind: Gvk,
    /// One namespace; `None` for all, or for a cluster-scoped kind. Ignored for a kind that turns
    /// out to be cluster-scoped.
    pub namespace: Option<String>,
    /// Label selector of the watched objects.
    pub label_selector: Option<String>,
    /// Field selector of the watched objects.
    pub field_selector: Option<String>,
    /// The fields that the store keeps, besides the fields of the indexes.
    pub wanted: Wanted,
    /// The indexes of the store, besides name and namespace.
    pub indexes: BTreeSet<Index>,
}

impl WatchSpec {
    /// Specifies all objects of a kind, with all fields and without indexes.
    pub fn of(kind: Gvk) -> Self {
        Self {
            kind,
            namespace: None,
            label_selector: None,
            field_selector: None,
            wanted: Wanted::All,
            indexes: BTreeSet::new(),
        }
    }

    /// The fields that a store must keep for this watch.
    pub(super) fn keeps(&self) -> Wanted {
        let paths = self.indexes.iter().map(|index| index.path().root_dotted());
        self.wanted.union(&Wanted::Fields(paths.collect()))
    }
}
