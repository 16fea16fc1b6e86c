//! The cluster as it would be now: the objects of the overlay, and those of the base that the
//! overlay does not have. It answers the live reads of a plugin.
//!
//! This module must not know controllers, or which turn writes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::Result;
use parking_lot::Mutex;
use serde_json::Value;
use vmhost_apiserver::Overlay;
use vmhost_cluster::{Fixture, Store, WatchSpec};
use vmhost_core::{Gvk, ListQuery, ObjectKey, Page, ReadError, Role, Snapshot, Watched};
use vmhost_runtime::wake::live::NO_INDEXES;
use vmhost_runtime::wake::sources::shelf;
use vmhost_runtime::wake::sources::shelf::Shelf;

use super::base::Base;
use super::ids::Id;

/// The overlay, and the base below it.
pub(super) struct Live {
    pub(super) base: Arc<Base>,
    pub(super) overlay: Overlay,
    /// Number of HTTP requests that a policy wanted to send.
    pub(super) unsent: AtomicU64,
    /// The objects that the overlay knows, including those that were deleted there.
    known: Mutex<HashSet<Id>>,
    lists: Mutex<HashMap<Scope, Arc<Listing>>>,
}

/// A kind, in one namespace or in all of them.
type Scope = (Gvk, Option<String>);

/// All objects of a kind that was listed live, as they are now.
struct Listing {
    shelf: Shelf,
    fixture: Fixture,
}

impl AsRef<Shelf> for Listing {
    fn as_ref(&self) -> &Shelf {
        &self.shelf
    }
}

impl Listing {
    fn store(&self) -> Option<&Store> {
        Some(self.fixture.store())
    }
}

impl Live {
    /// Creates the cluster before any write.
    pub(super) fn new(base: Arc<Base>) -> Self {
        Self {
            base,
            overlay: Overlay::default(),
            unsent: AtomicU64::new(0),
            known: Mutex::default(),
            lists: Mutex::default(),
        }
    }

    /// Returns whether the overlay knows the object.
    pub(super) fn knows(&self, id: &Id) -> bool {
        self.known.lock().contains(id)
    }

    /// Notes that the overlay knows the object from now on. Returns whether that is new.
    pub(super) fn learn(&self, id: &Id) -> bool {
        self.known.lock().insert(id.clone())
    }

    /// Returns an object of the overlay, in this version of its kind.
    pub(super) fn object(&self, id: &Id, version: &str) -> Option<Arc<Value>> {
        let kind = (&*id.group, version, &*id.kind);
        let namespace = id.name.namespace().unwrap_or_default();
        self.overlay.object(kind, (namespace, id.name.name()))
    }

    /// Returns the text of an object of the overlay, in this version of its kind.
    pub(super) fn text(&self, id: &Id, version: &str) -> Option<String> {
        let object = self.object(id, version)?;
        Some(object.to_string())
    }

    /// Brings the live lists up to date after an object has changed.
    pub(super) fn changed(&self, id: &Id) {
        for ((kind, namespace), listing) in &*self.lists.lock() {
            let inside = namespace.is_none() || namespace.as_deref() == id.name.namespace();
            if !id.is_of(kind) || !inside {
                continue;
            }
            match self.text(id, &kind.version) {
                // The overlay has accepted this object, so the store accepts it too.
                Some(text) => drop(listing.fixture.put(&text)),
                None => drop(listing.fixture.remove(&id.name)),
            }
        }
    }

    /// Reads an object.
    pub(super) async fn get(&self, key: &ObjectKey) -> Result<Option<Snapshot>, ReadError> {
        let id = Id::of(key);
        if self.knows(&id) {
            let text = self.text(&id, &key.kind.version);
            return Ok(text.and_then(|text| snapshot(&key.kind, &text)));
        }
        let found = self.base.find(key).await.map_err(unavailable)?;
        Ok(found.map(|whole| whole.object))
    }

    /// Reads a page of a list.
    pub(super) async fn list(&self, query: &ListQuery) -> Result<Page, ReadError> {
        if query.index.is_some() || query.owner.is_some() {
            return Err(ReadError::Invalid(NO_INDEXES.into()));
        }
        let scope = (query.kind.clone(), query.namespace.clone());
        let known = self.lists.lock().get(&scope).cloned();
        let listing = match known {
            Some(listing) => listing,
            None => self.listing(scope).await.map_err(unavailable)?,
        };
        shelf::list(std::slice::from_ref(&*listing), query, Listing::store)
    }

    async fn listing(&self, scope: Scope) -> Result<Arc<Listing>> {
        let (kind, namespace) = &scope;
        let objects = self.base.list(kind, namespace.as_deref()).await?;
        let watched = Watched {
            group: kind.group.clone(),
            version: kind.version.clone(),
            kind: kind.kind.clone(),
            ..Watched::default()
        };
        let listing = Arc::new(Listing {
            shelf: Shelf::of(Role::Read, &watched),
            fixture: Fixture::new(&WatchSpec::of(kind.clone())),
        });
        objects
            .into_iter()
            .for_each(|object| listing.fixture.keep(object));
        self.lists.lock().insert(scope, listing.clone());
        let known: Vec<Id> = self.known.lock().iter().cloned().collect();
        known.iter().for_each(|id| self.changed(id));
        Ok(listing)
    }
}

/// Returns a text of the overlay as an object of a store.
fn snapshot(kind: &Gvk, text: &str) -> Option<Snapshot> {
    let fixture = Fixture::new(&WatchSpec::of(kind.clone()));
    fixture.put(text).ok()
}

fn unavailable(error: anyhow::Error) -> ReadError {
    ReadError::Unavailable(format!("{error:#}"))
}
