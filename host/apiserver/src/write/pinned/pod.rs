//! What an update of a pod may not change.
//!
//! Must not know how an object is stored.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::super::same::same;
use crate::status::{Cause, FORBIDDEN, INVALID, cause};

const FIXED: &str = "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const NO_LIST: &str = "Forbidden: pod updates may not add or remove containers";
const TOLERATED: &str =
    "Forbidden: existing toleration can not be modified except its tolerationSeconds";
const ONLY_DELETION: &str = "only deletion is allowed, but found new scheduling gate";
/// How many gates are told: a body has room for a hundred thousand.
const TOLD: usize = 1000;

/// Checks the spec of a pod.
pub(super) fn faults(old: &Value, spec: &Value) -> Vec<Cause> {
    let count = |of: &Value, list: &str| of[list].as_array().map_or(0, Vec::len);
    for list in ["containers", "initContainers"] {
        if count(old, list) != count(spec, list) {
            return vec![cause(FORBIDDEN, format!("spec.{list}"), NO_LIST)];
        }
    }
    let mut causes: Vec<Cause> = deadline(old, spec).into_iter().collect();
    if !tolerates(old, spec) {
        causes.push(cause(FORBIDDEN, "spec.tolerations", TOLERATED));
    }
    causes.extend(gates(old, spec));
    let mut munged = spec.clone();
    for list in ["containers", "initContainers"] {
        let images = old[list].as_array().into_iter().flatten();
        let changed = munged.get_mut(list).and_then(Value::as_array_mut);
        for (container, before) in changed.into_iter().flatten().zip(images) {
            if container.is_object() {
                container["image"] = before["image"].clone();
            }
        }
    }
    let mut open = vec!["activeDeadlineSeconds", "schedulingGates", "tolerations"];
    if count(old, "schedulingGates") > 0 {
        open.extend(["nodeSelector", "affinity"]);
    }
    let grace = |of: &Value| of["terminationGracePeriodSeconds"].as_i64();
    if grace(old).is_some_and(|seconds| seconds < 0) && grace(spec) == Some(1) {
        open.push("terminationGracePeriodSeconds");
    }
    for field in open {
        munged[field] = old[field].clone();
    }
    if !same(old, &munged) {
        causes.push(cause(FORBIDDEN, "spec", FIXED));
    }
    causes
}

/// Returns what is wrong with a new deadline: it may only come nearer.
fn deadline(old: &Value, spec: &Value) -> Option<Cause> {
    let (before, after) = (
        old["activeDeadlineSeconds"].as_i64(),
        spec["activeDeadlineSeconds"].as_i64(),
    );
    let why = match (before, after) {
        (Some(_), None) => "must not update from a positive integer to nil value",
        (Some(before), Some(after)) if after > before => {
            "must be less than or equal to previous value"
        }
        _ => return None,
    };
    let shown = json!(after);
    let why = format!("Invalid value: {shown}: {why}");
    Some(cause(INVALID, "spec.activeDeadlineSeconds", why))
}

/// Returns whether a pod still tolerates what it did. A body has room for ten thousands of
/// tolerations, so that they are compared as sets.
fn tolerates(old: &Value, spec: &Value) -> bool {
    // A part without a value is absent.
    let plain = |toleration: &Value| {
        let mut plain = toleration.as_object().cloned().unwrap_or_default();
        plain.retain(|name, value| name != "tolerationSeconds" && !value.is_null() && value != "");
        Value::Object(plain)
    };
    let list = |of: &Value| -> HashSet<Value> {
        let all = of["tolerations"].as_array().into_iter().flatten();
        all.filter(|one| one.is_object()).map(plain).collect()
    };
    list(old).is_subset(&list(spec))
}

/// Returns the gates of scheduling that are new: they can only be taken away.
fn gates(old: &Value, spec: &Value) -> Vec<Cause> {
    let known: HashSet<&str> = gate_names(old).collect();
    let added = gate_names(spec).enumerate();
    let added = added.filter(|(_, name)| !known.contains(name));
    let told = added.map(|(at, name)| {
        let why = format!("Forbidden: {ONLY_DELETION} '{name}'");
        cause(FORBIDDEN, format!("spec.schedulingGates[{at}].name"), why)
    });
    told.take(TOLD).collect()
}

fn gate_names(spec: &Value) -> impl Iterator<Item = &str> {
    let gates = spec["schedulingGates"].as_array().into_iter().flatten();
    gates.map(|gate| gate["name"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an update changes.
    type Change = fn(&mut Value);

    fn fields(old: &Value, change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut new = old.clone();
        change(&mut new);
        let causes = faults(old, &new).into_iter();
        causes.map(|cause| cause.field).collect()
    }

    #[test]
    fn a_pod_changes_only_in_some_fields() {
        let toleration = json!({ "key": "a", "tolerationSeconds": 1 });
        let old = json!({
            "containers": [{ "name": "c", "image": "i" }], "activeDeadlineSeconds": 5,
            "tolerations": [toleration], "securityContext": {}, "schedulingGates": [{ "name": "g" }],
        });
        let open: [fn(&mut Value); 7] = [
            |pod| pod["containers"][0]["image"] = json!("j"),
            |pod| pod["activeDeadlineSeconds"] = json!(4),
            |pod| pod["tolerations"][0]["tolerationSeconds"] = json!(9),
            |pod| {
                pod["tolerations"]
                    .as_array_mut()
                    .unwrap()
                    .push(json!({ "key": "b" }))
            },
            |pod| pod["nodeSelector"] = json!({}),
            |pod| pod["schedulingGates"] = json!([]),
            |pod| drop(pod.as_object_mut().unwrap().remove("securityContext")),
        ];
        for change in open {
            assert_eq!(fields(&old, change), [""; 0]);
        }
        let closed: [(Change, &str); 6] = [
            (
                |pod| pod["containers"][0]["env"] = json!([{ "name": "a" }]),
                "spec",
            ),
            (|pod| pod["nodeName"] = json!("n"), "spec"),
            (
                |pod| pod["initContainers"] = json!([{}]),
                "spec.initContainers",
            ),
            (
                |pod| pod["activeDeadlineSeconds"] = json!(6),
                "spec.activeDeadlineSeconds",
            ),
            (|pod| pod["tolerations"] = json!([]), "spec.tolerations"),
            (
                |pod| pod["schedulingGates"] = json!([{ "name": "g" }, { "name": "h" }]),
                "spec.schedulingGates[1].name",
            ),
        ];
        for (change, field) in closed {
            assert_eq!(fields(&old, change), [field]);
        }
    }
}
