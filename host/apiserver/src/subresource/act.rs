//! Binding of pods, and the answer of acts.

use serde_json::{Value, json};

use crate::call::{Call, Done};
use crate::object::Object;
use crate::state::Inner;
use crate::status::ApiError;
use crate::{change, meta, refuse};

/// Returns the answer to an act that was done.
pub(super) fn success() -> Done {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    Done {
        code: 201,
        object: status.into(),
        warnings: Vec::new(),
    }
}

/// Refuses an act whose object names another pod than its path. `kind` is the object's.
pub(super) fn check_name(call: &Call<'_>, object: &Value, kind: &str) -> Result<(), ApiError> {
    if meta::text(object, "name") == call.name {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "name in URL does not match name in {kind} object"
    )))
}

/// Assigns a pod to a node.
pub(super) fn bind(
    inner: &mut Inner,
    call: &Call<'_>,
    live: &Object,
    binding: &Value,
) -> Result<Done, ApiError> {
    check_name(call, binding, "Binding")?;
    let node = binding.pointer("/target/name").and_then(Value::as_str);
    let Some(node) = node.filter(|name| !name.is_empty()) else {
        return Err(ApiError::new(500, "", "target.name: Required value"));
    };
    let has = live.pointer("/spec/nodeName").and_then(Value::as_str);
    let refusal = match has.filter(|has| !has.is_empty()) {
        Some(has) => format!("pod {} is already assigned to node {has:?}", call.name),
        None if meta::is_deleting(live) => {
            format!(
                "pod {} is being deleted, cannot be assigned to a host",
                call.name
            )
        }
        None => {
            if !call.options.dry_run {
                let bound = bound(live, binding, node, call.now);
                change::put(inner, &call.target.kind, &call.key(), bound);
            }
            return Ok(success());
        }
    };
    Err(refuse::conflict(call.target, call.name, refusal))
}

fn bound(live: &Value, binding: &Value, node: &str, now: &str) -> Value {
    let mut pod = live.clone();
    pod["spec"]["nodeName"] = json!(node);
    let annotations = meta::get(binding, "annotations").and_then(Value::as_object);
    let annotations = annotations.into_iter().flatten();
    // A binding is not checked as an object is, and the pod is.
    for (name, text) in annotations.filter(|(_, text)| text.is_string()) {
        pod["metadata"]["annotations"][name] = text.clone();
    }
    let scheduled = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
    });
    let conditions = &mut pod["status"]["conditions"];
    match conditions.as_array_mut() {
        Some(list) => {
            list.retain(|condition| condition["type"] != "PodScheduled");
            list.push(scheduled);
        }
        None => *conditions = json!([scheduled]),
    }
    pod
}
