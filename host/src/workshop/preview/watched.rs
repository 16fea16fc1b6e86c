//! A kind in a description, as a running host would watch it: which objects and fields the store
//! keeps, and which keys a change wakes.
//!
//! This module must not know where the objects come from.

use vmhost_cluster::{Index, WatchSpec};
use vmhost_core::{ControllerDescription, Gvk, MapBy, Mapping, Predicate, Role, Watched};
use vmhost_runtime::wake::sources::shelf::Shelf;

/// A watched kind of one controller.
pub(super) struct Watching {
    pub(super) shelf: Shelf,
    pub(super) spec: WatchSpec,
    pub(super) predicate: Option<Predicate>,
    /// `None` if changes wake no keys.
    pub(super) wakes: Option<Waking>,
}

/// The keys that a change of an object wakes.
pub(super) enum Waking {
    /// The object itself.
    Itself,
    /// The primaries that the object names.
    Named(Mapping),
    /// The primaries whose index holds the object's name.
    Indexed(Index),
    /// The keys that the plugin's `map-changes` returns.
    Guest,
}

/// Returns the kinds that the controller's stores keep, the primary first. Kinds that are only read
/// live are left out.
pub(super) fn watched(controller: &ControllerDescription) -> Vec<Watching> {
    let kind = controller.kind();
    let mut all: Vec<Watching> = Vec::new();
    for (role, watched) in controller.kinds().filter(|(_, watched)| !watched.live) {
        let primary = all.first().map(|first| &first.shelf);
        let watching = of(role, watched, primary, &kind);
        all.push(watching);
    }
    all
}

fn of(role: Role, watched: &Watched, primary: Option<&Shelf>, kind: &Gvk) -> Watching {
    // If this could not be parsed, the description would have been refused.
    let predicate = watched.predicates.as_ref();
    let predicate = predicate.and_then(|predicates| Predicate::compile(predicates).ok());
    let wakes = waking(role, watched, primary, kind);
    let mapping = match &wakes {
        Some(Waking::Named(mapping)) => Some(mapping),
        _ => None,
    };
    let shelf = Shelf::of(role, watched);
    let spec = shelf.spec(watched, predicate.as_ref(), mapping);
    Watching {
        shelf,
        spec,
        predicate,
        wakes,
    }
}

fn waking(role: Role, watched: &Watched, primary: Option<&Shelf>, kind: &Gvk) -> Option<Waking> {
    let map = match role {
        Role::Primary => return Some(Waking::Itself),
        Role::Read => return None,
        Role::Owned => &MapBy::Controller,
        Role::Watched => watched.map.as_ref()?,
    };
    match map {
        MapBy::Guest => Some(Waking::Guest),
        MapBy::Index(name) => {
            let index = primary?.indexes.get(name)?;
            Some(Waking::Indexed(index.clone()))
        }
        map => {
            let mapping = Mapping::compile(map, kind).ok().flatten()?;
            Some(Waking::Named(mapping))
        }
    }
}
