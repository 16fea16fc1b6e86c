//! What a write to the subresource `status` may change, and that others leave the status alone.
//!
//! Must not know how the object is checked or stored.

use serde_json::Value;

use crate::call::{Call, Door};
use crate::kinds::{Fill, Kind};
use crate::meta;

/// Groups whose kinds also take metadata from a write to their status; kube-apiserver resets only
/// their spec.
const OPEN: [&str; 5] = ["", "apps", "autoscaling", "batch", "policy"];

/// Metadata that a write to a status can change at most.
const FIELDS: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// Gives back to an object what the request's endpoint does not write. `live` is the object that is
/// replaced.
pub(super) fn keep(call: &Call<'_>, live: Option<&Value>, new: &mut Value) {
    let kind = &call.target.kind;
    let has_status = call.target.version().status;
    match live {
        Some(live) if call.door == Door::Status => *new = written(kind, live, new),
        Some(live) if has_status => set_or_remove(new, "status", live.get("status").cloned()),
        // A node's agent creates it with its status; any other status is set after the creation.
        None if has_status && kind.fill != Fill::Node => set_or_remove(new, "status", None),
        Some(_) | None => {}
    }
}

/// Returns the object `shown` with the status of `new`, and with the metadata of `new` that the
/// kind lets through.
fn written(kind: &Kind, shown: &Value, new: &Value) -> Value {
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
fn set_or_remove(object: &mut Value, field: &str, value: Option<Value>) {
    if let Some(map) = object.as_object_mut() {
        match value {
            Some(value) => map.insert(field.to_owned(), value),
            None => map.remove(field),
        };
    }
}
