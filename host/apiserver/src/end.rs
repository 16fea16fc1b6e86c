//! Deletes an object: removes it, or marks it until its finalizers are gone.
//!
//! Owns which other objects a deletion removes: all objects in a namespace, unless that is left to
//! a controller; all objects of a definition's kind. Must not know requests.

use serde_json::{Value, json};

use crate::builtin::{DEFINITIONS, NAMESPACES};
use crate::kinds::{Dependents, Kind};
use crate::object::{Key, Object, Stored};
use crate::owners::{FOREGROUND, ORPHAN};
use crate::state::Inner;
use crate::{change, crd, meta, namespace};

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The object's finalizers decide; without them its kind, or as [`Policy::Background`].
    Unsaid,
    /// The dependents are deleted after the object.
    Background,
    /// The dependents are deleted before the object.
    Foreground,
    /// The dependents remain.
    Orphan,
}

impl Policy {
    /// Returns the policy by which an object of a kind is deleted.
    pub fn of(self, kind: &Kind, live: &Value) -> Policy {
        let list = meta::get(live, "finalizers").and_then(Value::as_array);
        let mut list = list.into_iter().flatten();
        match (kind.deletion.dependents, self) {
            (Dependents::Ignored, _) => Policy::Background,
            (Dependents::Orphaned, Policy::Unsaid)
                if !list.any(|name| name == FOREGROUND || name == ORPHAN) =>
            {
                Policy::Orphan
            }
            (_, said) => said,
        }
    }

    /// Returns the finalizers of an object that is deleted with this policy.
    pub fn finalizers(self, live: &Value) -> Vec<Value> {
        let list = meta::get(live, "finalizers").and_then(Value::as_array);
        let mut list = list.cloned().unwrap_or_default();
        if self != Policy::Unsaid {
            list.retain(|f| f != FOREGROUND && f != ORPHAN);
        }
        match self {
            Policy::Foreground => list.push(json!(FOREGROUND)),
            Policy::Orphan => list.push(json!(ORPHAN)),
            Policy::Unsaid | Policy::Background => {}
        }
        list
    }
}

/// An object after its deletion.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Its last state; of a namespace or a definition the one when its deletion began.
    pub object: Object,
    /// Whether it still exists, or existed when its deletion began.
    pub remains: bool,
}

/// Deletes an object.
pub(crate) fn end(
    inner: &mut Inner,
    kind: &Kind,
    key: &Key,
    live: &Object,
    now: &str,
    policy: Policy,
) -> Ended {
    let (new, remains) = after(inner, kind, live, now, policy);
    if !remains {
        if kind.deletion.is_graceful && !meta::is_deleting(live) {
            inner.store.put(&kind.storage, key.clone(), new.clone());
        }
        let object = change::remove(inner, kind, key, new);
        return Ended { object, remains };
    }
    let object = match new == **live {
        true => live.clone(),
        false => inner.store.put(&kind.storage, key.clone(), new),
    };
    match &*kind.storage {
        NAMESPACES if inner.controllers => empty_namespace(inner, &key.name, now),
        DEFINITIONS => empty_definition(inner, &key.name, now),
        _ => {}
    }
    Ended { object, remains }
}

/// Returns what [`end`] would make of an object.
pub(crate) fn foretell(
    inner: &Inner,
    kind: &Kind,
    live: &Value,
    now: &str,
    policy: Policy,
) -> Ended {
    let (object, remains) = after(inner, kind, live, now, policy);
    Ended {
        object: object.into(),
        remains,
    }
}

/// Returns the object as its deletion leaves it, and whether it remains.
fn after(inner: &Inner, kind: &Kind, live: &Value, now: &str, policy: Policy) -> (Value, bool) {
    let mut new = live.clone();
    match &*kind.storage {
        NAMESPACES => {
            mark(kind, &mut new, now);
            namespace::terminate(&mut new);
            (new, true)
        }
        DEFINITIONS => {
            mark(kind, &mut new, now);
            crd::terminate(&mut new);
            (new, true)
        }
        _ => {
            let mut finalizers = policy.finalizers(live);
            // Nobody else removes the finalizer that protects the object.
            let protection = kind.deletion.finalizer.as_deref();
            let protection = protection.filter(|_| inner.controllers);
            finalizers.retain(|name| name.as_str() != protection || protection.is_none());
            let remains = !finalizers.is_empty();
            if remains || kind.deletion.is_graceful {
                mark(kind, &mut new, now);
            }
            let left = Some(json!(finalizers)).filter(|_| remains);
            meta::set(&mut new, "finalizers", left);
            (new, remains)
        }
    }
}

/// Sets the deletion timestamp, once.
fn mark(kind: &Kind, object: &mut Value, now: &str) {
    if meta::is_deleting(object) {
        return;
    }
    meta::set(object, "deletionTimestamp", Some(json!(now)));
    if kind.namespaced || kind.custom {
        meta::set(object, "deletionGracePeriodSeconds", Some(json!(0)));
    }
    let generation = meta::get(object, "generation").and_then(Value::as_i64);
    if let Some(generation) = generation {
        meta::set(object, "generation", Some(json!(generation + 1)));
    }
}

/// Deletes all objects in a namespace, and the namespace when it is empty.
fn empty_namespace(inner: &mut Inner, name: &str, now: &str) {
    let registry = inner.registry.clone();
    for (storage, key) in inner.store.in_namespace(name) {
        let Some(kind) = registry.kinds().find(|k| k.storage == storage) else {
            continue;
        };
        if let Some(live) = inner.store.get(&storage, &key) {
            end(inner, kind, &key, &live, now, Policy::Background);
        }
    }
    namespace::after_remove(inner, name);
}

/// Deletes all objects of a definition's kind, and the definition when none is left.
fn empty_definition(inner: &mut Inner, name: &str, now: &str) {
    crd::register(inner);
    match crd::served(inner, name) {
        Some(kind) => {
            let all = inner.store.list_stored(&kind.storage, None);
            let all: Vec<(Key, Stored)> = all.map(|(k, o)| (k.clone(), o.clone())).collect();
            for (key, stored) in all {
                end(inner, &kind, &key, &stored.object(), now, Policy::Unsaid);
            }
            crd::after_remove(inner, &kind);
        }
        // Its names were never accepted, so the kind was never served.
        None => crd::release(inner, name),
    }
}
