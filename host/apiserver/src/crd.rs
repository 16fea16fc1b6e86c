//! CustomResourceDefinitions: kinds that clients define.
//!
//! Owns the effects of writing and deleting a definition. The modules below own its validation, its
//! status, the kind that it describes and how that is served. Must not know how the objects of the
//! kind are deleted.

mod approval;
mod check;
mod kind;
mod names;
mod serve;
mod status;
mod text;

use serde_json::{Value, json};

pub(crate) use check::default;
pub(crate) use serve::{after_remove, register, release, served};

use crate::builtin::DEFINITIONS;
use crate::kinds::Kind;
use crate::meta;
use crate::object::Key;
use crate::state::Inner;
use crate::status::Cause;

/// Gives a new definition its status, and returns what is wrong with a definition.
pub(crate) fn prepare(live: Option<&Value>, new: &mut Value) -> Vec<Cause> {
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

/// Follows a write. For a definition: accepts its names and serves its kind.
pub(crate) fn after_put(inner: &mut Inner, kind: &Kind, key: &Key) {
    if &*kind.storage != DEFINITIONS {
        return;
    }
    let Some(live) = inner.store.get(DEFINITIONS, key) else {
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
        // Another controller's finalizer may have been the last obstacle.
        after_remove(inner, &kind);
    }
}

/// Sets the status of a definition that is being deleted.
pub(crate) fn terminate(definition: &mut Value) {
    serve::hold(definition);
    status::terminating(definition);
}
