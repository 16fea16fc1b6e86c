//! What a write to the subresource `status` may change.
//!
//! Must not know how the object is checked or stored.

use serde_json::Value;

use crate::kinds::Kind;
use crate::meta;

/// Groups whose kinds also take metadata from a write to their status; kube-apiserver resets only
/// their spec.
const OPEN: [&str; 5] = ["", "apps", "autoscaling", "batch", "policy"];

/// Metadata that a write to a status can change at most.
const FIELDS: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// Returns the object `shown` with the status of `new`, and with the metadata of `new` that the
/// kind lets through.
pub(super) fn written(kind: &Kind, shown: &Value, new: &Value) -> Value {
    let mut whole = shown.clone();
    set_or_remove(&mut whole, "status", new.get("status").cloned());
    let fields = FIELDS.iter().filter(|field| passes(kind, field));
    for field in fields.chain(&["managedFields"]) {
        meta::set(&mut whole, field, meta::get(new, field).cloned());
    }
    whole
}

fn passes(kind: &Kind, field: &str) -> bool {
    let open = OPEN.contains(&kind.group.as_str())
        || (kind.group == "networking.k8s.io" && kind.kind == "Ingress");
    !kind.custom
        && open
        && !matches!(
            (kind.kind.as_str(), field),
            ("Deployment", "labels") | ("Pod", "ownerReferences")
        )
}

/// Sets a field of an object, or removes it.
pub(super) fn set_or_remove(object: &mut Value, field: &str, value: Option<Value>) {
    if let Some(map) = object.as_object_mut() {
        match value {
            Some(value) => map.insert(field.to_owned(), value),
            None => map.remove(field),
        };
    }
}
