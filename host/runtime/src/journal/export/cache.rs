//! The objects that the reads of a call returned, and whether the same reads of only these objects
//! give the same answers. This module must not know how objects are written, or which values are
//! sensitive.

use std::collections::{BTreeSet, HashSet};

use vmhost_cluster::{Fixture, Index, Query, WatchSpec};
use vmhost_core::trace::{Asked, Read};
use vmhost_core::{Gvk, LabelSelector, ListQuery, ObjectKey, ObjectName, Page, Snapshot};

/// The objects of a call, each once.
pub(super) struct Cache {
    /// A store for each kind.
    stores: Vec<(Gvk, Fixture)>,
    seen: HashSet<ObjectKey>,
}

impl Cache {
    /// Begins with the turn's own object, if it had one.
    pub(super) fn new(kind: &Gvk, own: Option<&Snapshot>) -> Self {
        let mut cache = Self {
            stores: Vec::new(),
            seen: HashSet::new(),
        };
        if let Some(own) = own {
            cache.add(kind, own);
        }
        cache
    }

    /// Adds the objects of a read. Returns the positions in the answer of the objects that are new.
    pub(super) fn add_of(&mut self, read: &Read) -> Vec<usize> {
        let kind = match &read.asked {
            Asked::Get(kind, ..) => kind,
            Asked::List(query, _) => &query.kind,
        };
        let mut new = Vec::new();
        for (place, object) in objects(read).enumerate() {
            if self.add(kind, object) {
                new.push(place);
            }
        }
        new
    }

    /// Adds an object. Returns whether it is new. Of two objects with the same name the first one
    /// is kept: [`Cache::answers`] then shows whether both are equal.
    fn add(&mut self, kind: &Gvk, object: &Snapshot) -> bool {
        let key = ObjectKey {
            kind: kind.clone(),
            name: object.name.clone(),
        };
        if !self.seen.insert(key) {
            return false;
        }
        let place = self.stores.iter().position(|(of, _)| of == kind);
        let place = place.unwrap_or_else(|| {
            let spec = WatchSpec {
                indexes: BTreeSet::from([Index::Owner]),
                ..WatchSpec::of(kind.clone())
            };
            self.stores.push((kind.clone(), Fixture::new(&spec)));
            self.stores.len() - 1
        });
        // An object that cannot be kept is not found later, so that the answers differ.
        let _ = self.stores[place].1.put(&object.text);
        true
    }

    /// Returns whether these objects give the same answer to this read. Live reads and errors never
    /// get it, nor do reads by index, since only the description defines the index.
    pub(super) fn answers(&self, read: &Read) -> bool {
        if read.live {
            return false;
        }
        match &read.asked {
            Asked::Get(kind, name, Ok(found)) => {
                let store = self.store(kind).map(Fixture::store);
                let kept = store.and_then(|store| store.get(name.as_str()));
                text(kept.as_ref()) == text(found.as_ref())
            }
            Asked::List(query, Ok(page)) => self.lists(query, page),
            Asked::Get(_, _, Err(_)) | Asked::List(_, Err(_)) => false,
        }
    }

    fn lists(&self, query: &ListQuery, page: &Page) -> bool {
        let Some(store) = self.store(&query.kind).map(Fixture::store) else {
            return page.objects.is_empty() && page.next.is_none();
        };
        let selector = query.label_selector.as_deref().map(LabelSelector::parse);
        let (None, Ok(selector)) = (&query.index, selector.transpose()) else {
            return false;
        };
        let after = query.after.as_deref().map(named);
        let again = store.page(&Query {
            namespace: query.namespace.as_deref(),
            selector: selector.as_ref(),
            index: query.owner.as_deref().map(|uid| (&Index::Owner, uid)),
            after: after.as_ref(),
            limit: query.limit,
        });
        again.is_ok_and(|(objects, next)| {
            let texts = objects.iter().map(|object| &object.text);
            texts.eq(page.objects.iter().map(|object| &object.text))
                && next.as_ref().map(ObjectName::as_str) == page.next.as_deref()
        })
    }

    fn store(&self, kind: &Gvk) -> Option<&Fixture> {
        let mut stores = self.stores.iter();
        stores.find(|(of, _)| of == kind).map(|(_, store)| store)
    }
}

/// The objects of a read's answer.
pub(super) fn objects(read: &Read) -> impl Iterator<Item = &Snapshot> {
    let (one, page) = match &read.asked {
        Asked::Get(_, _, answer) => (answer.as_ref().ok().and_then(Option::as_ref), None),
        Asked::List(_, answer) => (None, answer.as_ref().ok()),
    };
    let page = page.into_iter().flat_map(|page| &page.objects);
    one.into_iter().chain(page)
}

fn text(object: Option<&Snapshot>) -> Option<&str> {
    object.map(|object| &object.text)
}

/// Returns the name that `after` of a query stands for, as in the stores of a controller.
fn named(after: &str) -> ObjectName {
    match after.split_once('/') {
        Some((namespace, name)) => ObjectName::new(Some(namespace), name),
        None => ObjectName::new(None, after),
    }
}
