//! Deletes an object: removes it, or marks it until its finalizers are gone.
//!
//! Owns which other objects a deletion removes: all objects in a namespace, all objects of a
//! definition's kind. Must not know requests.

use serde_json::{Value, json};

use crate::builtin::{DEFINITIONS, NAMESPACES};
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::owners::{FOREGROUND, ORPHAN};
use crate::state::Inner;
use crate::{change, crd, meta, namespace};

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The object's finalizers decide; without them as [`Policy::Background`].
    Unsaid,
    /// The dependents are deleted after the object.
    Background,
    /// The dependents are deleted before the object.
    Foreground,
    /// The dependents remain.
    Orphan,
}

impl Policy {
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

/// Deletes an object. Returns the object if it still exists, or existed when its deletion began.
pub(crate) fn end(
    inner: &mut Inner,
    kind: &Kind,
    key: &Key,
    live: &Object,
    now: &str,
    policy: Policy,
) -> Option<Object> {
    match &*kind.storage {
        NAMESPACES => {
            let marked = mark(inner, kind, key, live, now, namespace::terminate);
            empty_namespace(inner, &key.name, now);
            return Some(marked);
        }
        DEFINITIONS => {
            let marked = mark(inner, kind, key, live, now, crd::terminate);
            empty_definition(inner, &key.name, now);
            return Some(marked);
        }
        _ => {}
    }
    let finalizers = policy.finalizers(live);
    if finalizers.is_empty() {
        let mut last = Value::clone(live);
        meta::set(&mut last, "finalizers", None);
        change::remove(inner, kind, key, last);
        return None;
    }
    Some(mark(inner, kind, key, live, now, |new| {
        meta::set(new, "finalizers", Some(json!(finalizers)));
    }))
}

/// Sets the deletion timestamp once, and applies `also`.
fn mark(
    inner: &mut Inner,
    kind: &Kind,
    key: &Key,
    live: &Object,
    now: &str,
    also: impl FnOnce(&mut Value),
) -> Object {
    let mut new = Value::clone(live);
    if !meta::is_deleting(live) {
        meta::set(&mut new, "deletionTimestamp", Some(json!(now)));
        if kind.namespaced || kind.custom {
            meta::set(&mut new, "deletionGracePeriodSeconds", Some(json!(0)));
        }
        if let Some(generation) = meta::get(live, "generation").and_then(Value::as_i64) {
            meta::set(&mut new, "generation", Some(json!(generation + 1)));
        }
    }
    also(&mut new);
    if new == **live {
        return live.clone();
    }
    inner.store.put(&kind.storage, key.clone(), new)
}

/// Deletes all objects in a namespace, and the namespace when it is empty.
fn empty_namespace(inner: &mut Inner, name: &str, now: &str) {
    let registry = inner.registry.clone();
    for (storage, key) in inner.store.in_namespace(name) {
        let Some(kind) = registry.kinds().find(|k| k.storage == storage) else {
            continue;
        };
        if let Some(live) = inner.store.get(&storage, &key).cloned() {
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
            let objects: Vec<_> = inner
                .store
                .list(&kind.storage, None)
                .map(|(k, o)| (k.clone(), o.clone()))
                .collect();
            for (key, object) in objects {
                end(inner, &kind, &key, &object, now, Policy::Unsaid);
            }
            crd::after_remove(inner, &kind);
        }
        // Its names were never accepted, so the kind was never served.
        None => crd::release(inner, name),
    }
}
