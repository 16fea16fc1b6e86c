//! Namespaces: a namespaced object can only be created in an existing one, and a namespace that is
//! being deleted is removed after its last object.
//!
//! Owns their admission, phase and end. Must not know how the objects in a namespace are deleted.

use serde_json::{Value, json};

use crate::builtin::NAMESPACES;
use crate::kinds::Target;
use crate::object::Key;
use crate::state::Inner;
use crate::status::ApiError;
use crate::{meta, refuse};

/// Refuses a create in a namespace that does not exist or is being deleted.
pub(crate) fn admit(
    inner: &Inner,
    target: &Target,
    namespace: &str,
    name: &str,
) -> Result<(), ApiError> {
    let Some(live) = inner.store.get(NAMESPACES, &Key::new("", namespace)) else {
        let message = format!("namespaces {namespace:?} not found");
        let mut error = ApiError::new(404, "NotFound", message);
        error.details = Some(json!({ "kind": "namespaces", "name": namespace }));
        return Err(error);
    };
    if meta::is_deleting(&live) {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let cause = json!({
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        });
        return Err(refuse::forbidden(target, name, why).with_causes(vec![cause]));
    }
    Ok(())
}

/// Sets the label with the name of a namespace.
pub(crate) fn default(new: &mut Value) {
    let name = meta::text(new, "name").to_owned();
    let labels = meta::of(new).entry("labels").or_insert_with(|| json!({}));
    labels["kubernetes.io/metadata.name"] = json!(name);
}

/// Fills in the fields of a namespace that the server owns.
pub(crate) fn prepare(live: Option<&Value>, new: &mut Value) {
    match live {
        Some(live) => new["spec"] = live["spec"].clone(),
        None => {
            new["spec"] = json!({ "finalizers": ["kubernetes"] });
            new["status"] = json!({ "phase": "Active" });
        }
    }
}

/// Returns whether this is a namespace with finalizers in its spec.
pub(crate) fn holds(object: &Value) -> bool {
    object.get("kind").and_then(Value::as_str) == Some("Namespace")
        && object.get("apiVersion").and_then(Value::as_str) == Some("v1")
        && object
            .pointer("/spec/finalizers")
            .and_then(Value::as_array)
            .is_some_and(|f| !f.is_empty())
}

/// Sets the phase of a namespace that is being deleted.
pub(crate) fn terminate(namespace: &mut Value) {
    namespace["status"]["phase"] = json!("Terminating");
}

/// Removes a namespace that only waited for its last object.
pub(crate) fn after_remove(inner: &mut Inner, name: &str) {
    let key = Key::new("", name);
    let live = inner.store.get(NAMESPACES, &key);
    let Some(live) = live.filter(|_| !name.is_empty() && inner.controllers) else {
        return;
    };
    if !meta::is_deleting(&live) || meta::has_finalizers(&live) || !inner.store.is_empty(name) {
        return;
    }
    let mut last = Value::clone(&live);
    last["spec"] = json!({});
    inner.store.remove(&NAMESPACES.into(), &key, last);
}
