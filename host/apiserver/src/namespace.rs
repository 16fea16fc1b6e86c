//! Namespaces: nothing is created outside one, and with one goes what lies in it.
//!
//! Owns their admission, phase and end. Must not know HTTP.

use serde_json::{Value, json};

use crate::delete::{self, Policy};
use crate::kinds::Target;
use crate::meta;
use crate::state::Inner;
use crate::status::ApiError;
use crate::store::Key;

/// Where they lie.
pub(crate) const STORAGE: &str = "/namespaces";

/// Refuses a create in a namespace that is not there, or going.
pub(crate) fn admit(
    inner: &Inner,
    target: &Target,
    namespace: &str,
    name: &str,
) -> Result<(), ApiError> {
    let Some(live) = inner.store.get(STORAGE, &Key::new("", namespace)) else {
        return Err(ApiError::namespace_not_found(namespace));
    };
    if meta::is_deleting(live) {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let cause = json!({
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        });
        return Err(ApiError::forbidden(target, name, why).with_causes(vec![cause]));
    }
    Ok(())
}

/// Fills in what the server owns of a namespace.
pub(crate) fn prepare(live: Option<&Value>, new: &mut Value) {
    let name = meta::text(new, "name").to_owned();
    let labels = meta::of(new).entry("labels").or_insert_with(|| json!({}));
    labels["kubernetes.io/metadata.name"] = json!(name);
    match live {
        Some(live) => new["spec"] = live["spec"].clone(),
        None => {
            new["spec"] = json!({ "finalizers": ["kubernetes"] });
            new["status"] = json!({ "phase": "Active" });
        }
    }
}

/// Whether this is a namespace that still has something to finish.
pub(crate) fn holds(object: &Value) -> bool {
    object.get("kind").and_then(Value::as_str) == Some("Namespace")
        && object.get("apiVersion").and_then(Value::as_str) == Some("v1")
        && object
            .pointer("/spec/finalizers")
            .and_then(Value::as_array)
            .is_some_and(|f| !f.is_empty())
}

/// What a namespace looks like from its deletion on.
pub(crate) fn terminate(namespace: &mut Value) {
    namespace["status"]["phase"] = json!("Terminating");
}

/// Deletes what lies in a namespace, and the namespace when nothing is left.
pub(crate) fn empty(inner: &mut Inner, name: &str, now: &str) {
    let registry = inner.registry.clone();
    for (storage, key) in inner.store.in_namespace(name) {
        let Some(kind) = registry.kinds().find(|k| k.storage == storage) else {
            continue;
        };
        if let Some(live) = inner.store.get(&storage, &key).cloned() {
            delete::end(inner, kind, &key, &live, now, Policy::Background);
        }
    }
    after_remove(inner, name);
}

/// Ends a namespace that only waited for its last object.
pub(crate) fn after_remove(inner: &mut Inner, name: &str) {
    let key = Key::new("", name);
    let Some(live) = inner
        .store
        .get(STORAGE, &key)
        .filter(|_| !name.is_empty())
        .cloned()
    else {
        return;
    };
    if !meta::is_deleting(&live) || meta::has_finalizers(&live) || !inner.store.is_empty(name) {
        return;
    }
    let mut last = Value::clone(&live);
    last["spec"] = json!({});
    inner.store.remove(&STORAGE.into(), &key, last);
}
