//! The stores of one controller in a preview: its calls read from them, and they show which keys a
//! change wakes.
//!
//! Objects are shared with the base until a write changes them. This module must not know which
//! turn writes, or what becomes of a woken key.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use vmhost_cluster::{Fixture, Query, Store, Wanted};
use vmhost_core::{
    Change, ControllerDescription, Gvk, HttpAnswer, HttpCall, HttpError, ListQuery, LiveRead,
    NamedPrimary, ObjectKey, ObjectName, ObjectReader, Page, ReadError, Role, Snapshot,
};
use vmhost_runtime::wake::keys;
use vmhost_runtime::wake::sources::shelf;
use vmhost_runtime::wake::sources::shelf::Shelf;

use super::ids::Id;
use super::live::Live;
use super::watched::{Waking, Watching, watched};

/// What a policy is told that sends an HTTP request in a preview.
const UNSENT: &str = "a preview sends no HTTP requests";

/// A controller's stores.
pub(super) struct View {
    watches: Vec<Watch>,
    live_only: Vec<Gvk>,
    live: Arc<Live>,
}

/// The store of one watch.
struct Watch {
    of: Watching,
    fixture: Fixture,
}

impl AsRef<Shelf> for Watch {
    fn as_ref(&self) -> &Shelf {
        &self.of.shelf
    }
}

/// The keys that a change wakes.
#[derive(Default)]
pub(super) struct Woken {
    pub(super) keys: BTreeSet<ObjectName>,
    /// The changes that the plugin has to map itself.
    pub(super) changes: Vec<Change>,
}

impl View {
    /// Fills the stores with the objects from before any write.
    pub(super) fn new(controller: &ControllerDescription, live: Arc<Live>) -> Self {
        let watches = watched(controller).into_iter();
        let reads = controller.kinds().filter(|(_, watched)| watched.live);
        Self {
            watches: watches.map(|of| Watch::filled(of, &live)).collect(),
            live_only: reads.map(|(_, watched)| watched.gvk()).collect(),
            live,
        }
    }

    fn primary(&self) -> Option<&Watch> {
        let first = self.watches.first();
        first.filter(|watch| watch.of.shelf.role == Role::Primary)
    }

    /// The names of all primaries, in order.
    pub(super) fn names(&self) -> Vec<ObjectName> {
        let store = self.primary().map(|watch| watch.fixture.store());
        let mut names = store.map(Store::names).unwrap_or_default();
        names.sort_unstable();
        names
    }

    /// Returns the primary of this name.
    pub(super) fn snapshot(&self, name: &ObjectName) -> Option<Snapshot> {
        self.primary()?.fixture.store().get(name.as_str())
    }

    /// Returns whether a store could contain an object that is created with this text.
    pub(super) fn may_show(&self, kind: &Gvk, object: &str) -> bool {
        let shelves = self.watches.iter().map(|watch| &watch.of.shelf);
        let mut of = shelves.filter(|shelf| shelf.kind == *kind);
        of.any(|shelf| shelf.selection.may_show(object))
    }

    /// Follows a change of an object. Returns what the change wakes.
    pub(super) fn changed(&self, id: &Id) -> Woken {
        let mut woken = Woken::default();
        for watch in &self.watches {
            let Watching {
                shelf,
                predicate,
                wakes,
                ..
            } = &watch.of;
            if !id.is_of(&shelf.kind) || !self.is_watched(id.name.namespace()) {
                continue;
            }
            let text = self.live.text(id, &shelf.kind.version);
            let text = text.filter(|text| shelf.selection.shows(text));
            let (old, new) = watch.put(&id.name, text.as_deref());
            let texts = [&old, &new].map(|of| of.as_ref().map(|object| &object.text));
            let passes = predicate.as_ref();
            let passes = passes.is_none_or(|of| of.wakes(texts[0], texts[1]).wakes());
            let is_change = old.is_some() || new.is_some();
            if let Some(wakes) = wakes
                && passes
                && is_change
            {
                self.wake(wakes, &id.name, old, new, &mut woken);
            }
        }
        woken
    }

    fn wake(
        &self,
        wakes: &Waking,
        name: &ObjectName,
        old: Option<Snapshot>,
        new: Option<Snapshot>,
        woken: &mut Woken,
    ) {
        match wakes {
            Waking::Itself => {
                woken.keys.insert(name.clone());
            }
            Waking::Named(mapping) => {
                let texts = [&old, &new].into_iter().flatten();
                let texts = texts.map(|object| &object.text);
                let found = keys::named(mapping, name, texts, |named| self.is_key(named));
                woken.keys.extend(found);
            }
            Waking::Indexed(index) => {
                let query = Query {
                    index: Some((index, name.name())),
                    ..Query::default()
                };
                let store = self.primary().map(|watch| watch.fixture.store());
                let page = store.and_then(|store| store.page(&query).ok());
                let found = page.into_iter().flat_map(|(objects, _)| objects);
                let names = found.map(|object| object.name.clone());
                woken
                    .keys
                    .extend(names.filter(|primary| keys::may_mean(primary, name)));
            }
            Waking::Guest => woken.changes.push(Change { old, new }),
        }
    }

    fn is_key(&self, named: &NamedPrimary<'_>) -> bool {
        let found = self.snapshot(&named.name);
        let uid = named.uid.as_deref();
        found.is_some_and(|object| uid.is_none_or(|uid| uid == object.uid()))
    }

    /// Returns whether objects of this namespace are watched.
    fn is_watched(&self, namespace: Option<&str>) -> bool {
        let watched = self.live.base.namespaces();
        let is_among = |namespace: &str| watched.iter().any(|of| of == namespace);
        watched.is_empty() || namespace.is_none_or(is_among)
    }

    /// Returns the store for this kind and namespace, or an error if no store has them.
    fn check(&self, kind: &Gvk, namespace: Option<&str>) -> Result<&Watch, ReadError> {
        let watch = shelf::find(&self.watches, kind, None);
        watch
            .filter(|_| self.is_watched(namespace))
            .ok_or_else(|| shelf::not_watched(&self.watches, &self.live_only, kind, namespace))
    }

    /// Returns an error if the plugin may not read this kind and namespace live.
    fn check_live(&self, kind: &Gvk, namespace: Option<&str>) -> Result<(), ReadError> {
        let named =
            self.live_only.contains(kind) || shelf::find(&self.watches, kind, None).is_some();
        let watched = self.live.base.namespaces();
        let inside = watched.is_empty() || (namespace.is_some() && self.is_watched(namespace));
        match (named, inside) {
            (true, true) => Ok(()),
            (false, _) => Err(ReadError::NotWatched(kind.to_string())),
            (true, false) => Err(ReadError::NotWatched(format!(
                "{kind} outside of the namespaces {}",
                watched.join(", ")
            ))),
        }
    }
}

impl Watch {
    fn filled(of: Watching, live: &Live) -> Self {
        let fixture = Fixture::new(&of.spec);
        let (objects, whole) = live.base.shown(&of.spec);
        for object in objects {
            if whole && of.spec.wanted == Wanted::All {
                fixture.keep(object);
            } else if let Err(error) = fixture.put(&object.text) {
                // A store has accepted this text before, so this does not happen.
                tracing::debug!("skipping {}: {error}", object.name);
            }
        }
        Self { of, fixture }
    }

    /// Puts an object into the store; without a text, removes it. Returns the object that the store
    /// had before and the one that it has now.
    fn put(&self, name: &ObjectName, text: Option<&str>) -> (Option<Snapshot>, Option<Snapshot>) {
        match text {
            Some(text) => {
                let old = self.fixture.store().get(name.as_str());
                (old, self.fixture.put(text).ok())
            }
            None => (self.fixture.remove(name), None),
        }
    }

    fn store(&self) -> Option<&Store> {
        Some(self.fixture.store())
    }
}

impl ObjectReader for View {
    fn get(&self, kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError> {
        let watch = self.check(kind, name.namespace())?;
        Ok(watch.fixture.store().get(name.as_str()))
    }

    fn list(&self, query: &ListQuery) -> Result<Page, ReadError> {
        self.check(&query.kind, query.namespace.as_deref())?;
        shelf::list(&self.watches, query, Watch::store)
    }

    fn get_live(&self, kind: Gvk, name: ObjectName) -> LiveRead<Option<Snapshot>> {
        if let Err(error) = self.check_live(&kind, name.namespace()) {
            return LiveRead::answered(Err(error));
        }
        let (live, key) = (self.live.clone(), ObjectKey { kind, name });
        LiveRead::new(std::future::ready(()), move |()| async move {
            live.get(&key).await
        })
    }

    fn list_live(&self, query: ListQuery) -> LiveRead<Page> {
        if let Err(error) = self.check_live(&query.kind, query.namespace.as_deref()) {
            return LiveRead::answered(Err(error));
        }
        let live = self.live.clone();
        LiveRead::new(std::future::ready(()), move |()| async move {
            live.list(&query).await
        })
    }

    fn http(&self, _: HttpCall) -> HttpAnswer {
        self.live.unsent.fetch_add(1, Ordering::Relaxed);
        HttpAnswer::answered(Err(HttpError::not_here(UNSENT)))
    }
}
