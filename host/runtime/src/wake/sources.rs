//! The stores that one controller reads in one generation: of its primary kind and of all other
//! kinds that it names, one per watched namespace.
//!
//! They belong to the generation. A swap that needs other fields or kinds brings its own stores,
//! and the old ones are dropped after the last call of the old generation has settled.
//! [`crate::wake::triggers`] decides which keys their changes wake, and [`crate::wake::live`] sends
//! live reads. This module must not know turns.

use std::sync::Arc;

use vmhost_cluster::{
    InformerState, Informers, KindNames, Store, Subscriber, Subscription, WatchSpec,
};
use vmhost_core::{
    ControllerDescription, Gvk, MapBy, Mapping, ObjectName, Predicate, Role, Snapshot, Watched,
};

use crate::site::member::Member;
use crate::wake::live::LiveReads;
use crate::wake::triggers::{Enqueue, Gate, Slow, Subscriptions, Trigger, Wake, WatchId};

mod read;
pub(crate) mod selection;
pub mod shelf;

use selection::Selection;
use shelf::Shelf;

/// A controller's stores.
pub struct Sources {
    gate: Arc<Gate>,
    slow: Arc<Slow>,
    watches: Vec<Watch>,
    /// Kinds that have no store.
    live_only: Vec<Gvk>,
    /// The only key of a controller without a primary kind.
    timer: Option<ObjectName>,
    namespaces: Vec<String>,
    live: Arc<LiveReads>,
    /// The cluster; `None` at home.
    member: Option<Arc<Member>>,
    description: ControllerDescription,
}

/// The watch of one kind.
struct Watch {
    shelf: Shelf,
    predicate: Option<Arc<Predicate>>,
    subscriptions: Subscriptions,
}

impl Watch {
    fn subscription_of(&self, namespace: Option<&str>) -> Option<&Subscription> {
        self.subscriptions.iter().find(|subscription| {
            let spec = subscription.spec();
            spec.namespace.is_none()
                || namespace.is_none()
                || spec.namespace.as_deref() == namespace
        })
    }
}

impl AsRef<Shelf> for Watch {
    fn as_ref(&self) -> &Shelf {
        &self.shelf
    }
}

impl Sources {
    /// Subscribes to the kinds of the description, in these namespaces (empty for all). No key is
    /// woken before [`Sources::open`].
    pub(crate) fn subscribe(
        informers: &Informers,
        live: Arc<LiveReads>,
        description: &ControllerDescription,
        namespaces: &[String],
        controller: Arc<dyn Wake>,
        member: Option<Arc<Member>>,
    ) -> Self {
        let mut sources = Self {
            gate: Arc::default(),
            slow: Arc::default(),
            watches: Vec::new(),
            live_only: Vec::new(),
            timer: description
                .timer
                .map(|_| ObjectName::new(None, &description.name)),
            namespaces: namespaces.to_vec(),
            live,
            member,
            description: description.clone(),
        };
        for (role, watched) in description.kinds() {
            if watched.live {
                sources.live_only.push(watched.gvk());
            } else {
                sources.watch(informers, role, watched, &controller);
            }
        }
        sources
    }

    fn watch(
        &mut self,
        informers: &Informers,
        role: Role,
        watched: &Watched,
        controller: &Arc<dyn Wake>,
    ) {
        // Predicates that do not compile were refused with the description.
        let predicate = watched
            .predicates
            .as_ref()
            .and_then(|predicates| Predicate::compile(predicates).ok())
            .map(Arc::new);
        let primary = self.watches.first();
        let enqueue = enqueue(role, watched, primary);
        let mapping = match &enqueue {
            Some(Enqueue::Named(mapping, _)) => Some(mapping),
            _ => None,
        };
        let shelf = Shelf::of(role, watched);
        let spec = shelf.spec(watched, predicate.as_deref(), mapping);
        let subscriber = enqueue.map(|enqueue| -> Arc<dyn Subscriber> {
            Arc::new(Trigger {
                gate: self.gate.clone(),
                watch: WatchId {
                    number: self.watches.len() as u16,
                    kind: Arc::new(shelf.kind.clone()),
                },
                predicate: predicate.clone(),
                slow: self.slow.clone(),
                enqueue,
                controller: controller.clone(),
            })
        });
        let each: Vec<Option<String>> = if self.namespaces.is_empty() {
            vec![None]
        } else {
            self.namespaces.iter().cloned().map(Some).collect()
        };
        let subscribe = |namespace| {
            let spec = WatchSpec {
                namespace,
                ..spec.clone()
            };
            informers.subscribe(spec, subscriber.clone())
        };
        self.watches.push(Watch {
            shelf,
            predicate,
            subscriptions: each.into_iter().map(subscribe).collect(),
        });
    }

    /// The controller's description in this generation.
    pub(crate) fn description(&self) -> &ControllerDescription {
        &self.description
    }

    /// Returns whether these are the stores of this description in these namespaces.
    pub(crate) fn is_of(&self, description: &ControllerDescription, namespaces: &[String]) -> bool {
        self.description == *description && self.namespaces == namespaces
    }

    /// Lets changes wake keys from now on.
    pub(crate) fn open(&self) {
        self.gate.open();
    }

    /// Stops changes from waking keys.
    pub(crate) fn close(&self) {
        self.gate.close();
    }

    /// Waits until every store has its first list.
    pub async fn synced(&self) {
        for subscription in self.subscriptions() {
            subscription.synced().await;
        }
    }

    /// Returns whether every store has its first list.
    pub(crate) fn is_synced(&self) -> bool {
        self.subscriptions()
            .all(|subscription| subscription.store().is_synced())
    }

    /// The states of the stores that do not have their first list yet.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = String> {
        self.unfilled().map(|state| state.to_string())
    }

    /// The same states, not as texts.
    pub(crate) fn unfilled(&self) -> impl Iterator<Item = InformerState> {
        self.subscriptions()
            .map(Subscription::state)
            .filter(|state| !state.synced)
    }

    fn primary(&self) -> Option<&Watch> {
        self.watches
            .first()
            .filter(|watch| watch.shelf.role == Role::Primary)
    }

    /// Returns the snapshot of a key. `None` if the object is deleted, or for a timer's key.
    pub(crate) fn snapshot(&self, name: &ObjectName) -> Option<Snapshot> {
        self.primary()?
            .subscriptions
            .iter()
            .find_map(|subscription| subscription.store().get(name.as_str()))
    }

    /// Returns all keys of the controller.
    pub fn names(&self) -> Vec<ObjectName> {
        let mut names: Vec<ObjectName> = self.timer.iter().cloned().collect();
        for subscription in self.primaries() {
            names.extend(subscription.store().names());
        }
        // With a cluster-scoped kind, all namespaces share one store.
        if self.primaries().len() > 1 {
            names.sort_unstable();
            names.dedup();
        }
        names
    }

    /// Returns the keys to start with: the objects that pass the predicates as new objects. If
    /// other kinds wake keys too, all objects, since changes of those kinds found no keys before
    /// the primary's list was complete.
    pub(crate) fn first_names(&self) -> Vec<ObjectName> {
        let predicate = self.primary().and_then(|watch| watch.predicate.as_ref());
        let alone = self
            .watches
            .iter()
            .all(|watch| matches!(watch.shelf.role, Role::Primary | Role::Read));
        match predicate {
            Some(predicate) if alone => {
                let mut names = Vec::new();
                for subscription in self.primaries() {
                    // Evaluated outside the store's lock, since an expression takes time.
                    let mut objects = subscription.store().snapshots();
                    let label = &self.description.name;
                    let wakes = |text: &str| self.slow.wakes(label, predicate, None, Some(text));
                    objects.retain(|object| wakes(&object.text).wakes());
                    names.extend(objects.into_iter().map(|object| object.name.clone()));
                }
                names
            }
            _ => self.names(),
        }
    }

    fn primaries(&self) -> &[Subscription] {
        self.primary().map_or(&[], |watch| &watch.subscriptions)
    }

    /// Returns the numbers of the watches that see a write of this kind and wake keys.
    pub(crate) fn sources_of(&self, kind: &Gvk) -> impl Iterator<Item = u16> {
        let of = self.watches.iter().enumerate();
        of.filter(move |(_, watch)| {
            // Any version of the kind names the same object.
            watch.shelf.role != Role::Read
                && watch.shelf.kind.group == kind.group
                && watch.shelf.kind.kind == kind.kind
        })
        .map(|(number, _)| number as u16)
    }

    /// Returns the watches of a kind that cover this namespace, with their selections. Callers that
    /// wait must use the subscription, since its store may be replaced meanwhile.
    pub(crate) fn watching<'a>(
        &'a self,
        kind: &'a Gvk,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Subscription, &'a Selection)> {
        let of = self
            .watches
            .iter()
            .filter(move |watch| watch.shelf.kind == *kind);
        of.filter_map(move |watch| {
            let subscription = watch.subscription_of(namespace)?;
            Some((subscription, &watch.shelf.selection))
        })
    }

    /// Returns an object from any of the stores.
    pub(crate) fn shown(&self, kind: &Gvk, name: &ObjectName) -> Option<Snapshot> {
        self.watching(kind, name.namespace())
            .find_map(|(subscription, _)| subscription.store().get(name.as_str()))
    }

    /// Returns the store for reads of this kind and namespace.
    fn store_of(&self, kind: &Gvk, namespace: Option<&str>) -> Option<Arc<Store>> {
        let watch = self.watch_of(kind)?;
        Some(watch.subscription_of(namespace)?.store())
    }

    fn watch_of(&self, kind: &Gvk) -> Option<&Watch> {
        shelf::find(&self.watches, kind, None)
    }

    /// Returns how users call a watched kind; `None` before the API server has told it.
    pub(crate) fn names_of(&self, kind: &Gvk) -> Option<Arc<KindNames>> {
        let mut subscriptions = self.subscriptions();
        let watched = subscriptions.find(|subscription| subscription.spec().kind == *kind);
        watched?.names()
    }

    /// Returns every subscription, the primary's first.
    pub(crate) fn subscriptions(&self) -> impl Iterator<Item = &Subscription> {
        self.watches.iter().flat_map(|watch| &*watch.subscriptions)
    }
}

/// Returns how changes of a watched kind are mapped to keys. `None` if they wake no keys.
fn enqueue(role: Role, watched: &Watched, primary: Option<&Watch>) -> Option<Enqueue> {
    let map = match role {
        Role::Primary => return Some(Enqueue::Itself),
        Role::Read => return None,
        Role::Owned => &MapBy::Controller,
        Role::Watched => watched.map.as_ref()?,
    };
    let primary = primary?;
    let primaries = primary.subscriptions.clone();
    match map {
        MapBy::Guest => Some(Enqueue::Guest),
        MapBy::Index(name) => {
            let index = primary.shelf.indexes.get(name)?.clone();
            Some(Enqueue::Indexed(index, primaries))
        }
        map => {
            let mapping = Mapping::compile(map, &primary.shelf.kind).ok().flatten()?;
            Some(Enqueue::Named(mapping, primaries))
        }
    }
}
