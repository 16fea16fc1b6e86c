//! Changes of one stored object, with what follows at once from each.
//!
//! Owns that a namespace or a definition which only waited for its last object goes with it, and
//! that a definition's kind is served as it is written. Must not know requests, or how many objects
//! a deletion takes along.

use serde_json::Value;
use vmhost_merge::{Manager, RESET_MAIN, track_update};

use crate::builtin::NAMESPACES;
use crate::kinds::{Kind, Target};
use crate::object::{Key, Object};
use crate::state::Inner;
use crate::{crd, meta, namespace};

/// Stores an object.
pub(crate) fn put(inner: &mut Inner, kind: &Kind, key: &Key, stored: Value) -> Object {
    let object = inner.store.put(&kind.storage, key.clone(), stored);
    crd::after_put(inner, kind, key);
    object
}

/// Stores what an object became, or ends it if nothing holds it any longer.
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

/// Takes an object out of the store, and with it what only waited for it to go.
pub(crate) fn remove(inner: &mut Inner, kind: &Kind, key: &Key, last: Value) -> Object {
    let removed = inner.store.remove(&kind.storage, key, last);
    namespace::after_remove(inner, &key.namespace);
    crd::after_remove(inner, kind);
    removed
}

/// A write of metadata as a controller of a real cluster would make it. `target`: in the stored
/// version.
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
    let manager = Manager {
        name: "kube-controller-manager",
        api_version: &target.api_version(),
        subresource: "",
        reset: RESET_MAIN,
    };
    track_update(
        target.schema(),
        Some(live),
        &mut new,
        &manager,
        &meta::now(),
    );
    settle(inner, &target.kind, key, new);
}
