//! CustomResourceDefinitions: kinds that clients bring.
//!
//! Owns what a write and a deletion make of a definition. What a good definition is, its status,
//! the kind that it describes and how that is served are in the modules below. Must not know how
//! the objects of such a kind are deleted.

mod check;
mod kind;
mod serve;
mod status;

use serde_json::{Value, json};

pub(crate) use serve::{after_remove, register, release, served};

use crate::builtin::DEFINITIONS;
use crate::kinds::Kind;
use crate::meta;
use crate::object::Key;
use crate::state::Inner;
use crate::status::Cause;

/// Fills in what a definition may leave out, and says what is wrong with it.
pub(crate) fn prepare(live: Option<&Value>, new: &mut Value) -> Vec<Cause> {
    check::default(new);
    if live.is_none() {
        let stored = status::storage_version(new).map(str::to_owned);
        new["status"] = json!({
            "acceptedNames": { "kind": "", "plural": "" },
            "conditions": [],
            "storedVersions": stored.into_iter().collect::<Vec<_>>(),
        });
    }
    check::check(live, new)
}

/// Follows a write: of a definition, the names are accepted and the kind is served.
pub(crate) fn after_put(inner: &mut Inner, kind: &Kind, key: &Key) {
    if &*kind.storage != DEFINITIONS {
        return;
    }
    let Some(live) = inner.store.get(DEFINITIONS, key).cloned() else {
        return;
    };
    let Some(target) =
        inner
            .registry
            .find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    else {
        return;
    };
    status::write(inner, &target, key, &live);
    register(inner);
    let kind = served(inner, &key.name);
    if let Some(kind) = kind.filter(|_| meta::is_deleting(&live)) {
        // A finalizer of somebody else's may have been the last thing in its way.
        after_remove(inner, &kind);
    }
}

/// What a definition looks like from its deletion on.
pub(crate) fn terminate(definition: &mut Value) {
    serve::hold(definition);
    status::terminating(definition);
}
