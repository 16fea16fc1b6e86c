//! Changes one stored object, with the immediate consequences.
//!
//! A namespace or a definition that only waits for its last object is removed with it, a
//! definition's kind is served as soon as it is written, a webhook is asked from then on, and
//! cluster roles that are made of others follow them; this module owns all four. Must not know
//! requests, or which other objects a deletion removes.

use serde_json::Value;
use vmhost_merge::RESET_MAIN;

use crate::access::aggregate;
use crate::admission;
use crate::builtin::NAMESPACES;
use crate::kinds::{Kind, Target};
use crate::object::{Key, Object};
use crate::state::Inner;
use crate::{crd, meta, namespace, ownership};

/// Stores an object.
pub(crate) fn put(inner: &mut Inner, kind: &Kind, key: &Key, stored: Value) -> Object {
    let object = inner.store.put(&kind.storage, key.clone(), stored);
    crd::after_put(inner, kind, key);
    admission::after_write(inner, kind);
    aggregate::after_write(inner, kind);
    object
}

/// Stores the changed object, or removes it if nothing holds it any longer.
pub(crate) fn settle(inner: &mut Inner, kind: &Kind, key: &Key, stored: Value) -> Object {
    if meta::is_deleting(&stored) && !meta::has_finalizers(&stored) && !namespace::holds(&stored) {
        return remove(inner, kind, key, stored);
    }
    let object = put(inner, kind, key, stored);
    if &*kind.storage == NAMESPACES {
        namespace::after_remove(inner, &key.name);
    }
    object
}

/// Removes an object from the store, and with it a namespace or definition that only waited for it.
pub(crate) fn remove(inner: &mut Inner, kind: &Kind, key: &Key, last: Value) -> Object {
    let removed = inner.store.remove(&kind.storage, key, last);
    namespace::after_remove(inner, &key.namespace);
    crd::after_remove(inner, kind);
    admission::after_write(inner, kind);
    aggregate::after_write(inner, kind);
    removed
}

/// Writes metadata as a controller of a real cluster would. `target` is in the stored version.
pub(crate) fn by_controller(
    inner: &mut Inner,
    target: &Target,
    key: &Key,
    live: &Object,
    mut new: Value,
) {
    if **live == new {
        return;
    }
    let name = "kube-controller-manager";
    ownership::track(target, (live, &mut new), name, ("", RESET_MAIN));
    settle(inner, &target.kind, key, new);
}
