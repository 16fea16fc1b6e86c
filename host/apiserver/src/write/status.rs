//! What a write to the subresource `status` may change, and that others leave the status alone.
//!
//! Must not know how the object is checked or stored.

use serde_json::Value;

use crate::call::{Call, Door};
use crate::kinds::Fill;
use crate::meta;

/// Metadata that a write to a status can change at most.
const FIELDS: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// Gives back to an object what the request's endpoint does not write. `live` is the object that is
/// replaced.
pub(super) fn keep(call: &Call<'_>, live: Option<&Value>, new: &mut Value) {
    let kind = &call.target.kind;
    let has_status = call.target.version().status;
    match live {
        Some(live) if call.door == Door::Status => *new = written(call, live, new),
        Some(live) if has_status => set_or_remove(new, "status", live.get("status").cloned()),
        // A node's agent creates it with its status; any other status is set after the creation.
        None if has_status && kind.fill != Fill::Node => set_or_remove(new, "status", None),
        Some(_) | None => {}
    }
}

/// Returns the object `shown` with the status of `new`, and with the metadata of `new` that the
/// endpoint writes.
fn written(call: &Call<'_>, shown: &Value, new: &Value) -> Value {
    let mut whole = shown.clone();
    set_or_remove(&mut whole, "status", new.get("status").cloned());
    let fields = FIELDS.iter().filter(|field| passes(call, field));
    for field in fields.chain(&["managedFields"]) {
        meta::set(&mut whole, field, meta::get(new, field).cloned());
    }
    whole
}

/// Returns whether the endpoint writes a field of the metadata.
fn passes(call: &Call<'_>, field: &str) -> bool {
    let path = format!("metadata.{field}");
    let mut reset = call.reset().iter();
    !reset.any(|reset| *reset == "metadata" || *reset == path)
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
