//! What an update may not change, where that depends on more than the field: the pods of a Pod and
//! of a Job, the source of a volume.
//!
//! Follows k8s.io/kubernetes `pkg/apis/{core,batch}/validation`. `fixed` has the fields that never
//! change. Must not know how an object is stored.

use serde_json::{Value, json};

use super::same::same;
use crate::call::Call;
use crate::kinds::Fill;
use crate::status::{Cause, FORBIDDEN, INVALID, cause};

const FIXED: &str = "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const NO_LIST: &str = "Forbidden: pod updates may not add or remove containers";
const TOLERATED: &str =
    "Forbidden: existing toleration can not be modified except its tolerationSeconds";

/// Returns what an update of the object itself changes and must not. Subresources have rules of
/// their own.
pub(super) fn changed(call: &Call<'_>, live: &Value, new: &Value) -> Vec<Cause> {
    if !call.part.is_empty() {
        return Vec::new();
    }
    let (old, spec) = (&live["spec"], &new["spec"]);
    match call.target.kind.fill {
        // What is no object is refused by the schema.
        Fill::Pod if spec.is_object() && !same(old, spec) => pod(old, spec),
        Fill::Job => job(live, spec),
        Fill::Node => {
            let id = |of: &Value| of["providerID"].as_str().unwrap_or_default().to_owned();
            let is_changed = !id(old).is_empty() && id(old) != id(spec);
            let why = "Forbidden: node updates may not change providerID except from \"\" to valid";
            let told = is_changed.then(|| cause(FORBIDDEN, "spec.providerID", why));
            told.into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn pod(old: &Value, spec: &Value) -> Vec<Cause> {
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

/// Returns whether a pod still tolerates what it did.
fn tolerates(old: &Value, spec: &Value) -> bool {
    let plain = |toleration: &Value| {
        let mut plain = toleration.clone();
        plain["tolerationSeconds"] = Value::Null;
        plain
    };
    let list = |of: &Value| -> Vec<Value> {
        let all = of["tolerations"].as_array().into_iter().flatten();
        all.filter(|one| one.is_object()).map(plain).collect()
    };
    let now = list(spec);
    list(old).iter().all(|before| now.contains(before))
}

/// Checks a Job. One that waits may still be changed.
fn job(live: &Value, spec: &Value) -> Vec<Cause> {
    let old = &live["spec"];
    let has_started = live.pointer("/status/startTime").is_some();
    if old["suspend"] == true && !has_started {
        return Vec::new();
    }
    let is_elastic = spec["completionMode"] == "Indexed";
    let fields = ["completions", "template"].into_iter();
    let fixed = fields.filter(|field| *field != "completions" || !is_elastic);
    let changed = fixed.filter(|field| !same(&old[*field], &spec[*field]));
    let told = changed.map(|field| {
        let why = format!("Invalid value: {}: field is immutable", spec[field]);
        cause(INVALID, format!("spec.{field}"), why)
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an update changes.
    type Change = fn(&mut Value);

    fn fields(old: &Value, change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut new = old.clone();
        change(&mut new);
        let causes = pod(old, &new).into_iter();
        causes.map(|cause| cause.field).collect()
    }

    #[test]
    fn a_pod_changes_only_in_some_fields() {
        let toleration = json!({ "key": "a", "tolerationSeconds": 1 });
        let old = json!({
            "containers": [{ "name": "c", "image": "i" }], "activeDeadlineSeconds": 5,
            "tolerations": [toleration], "securityContext": {},
        });
        let open: [fn(&mut Value); 6] = [
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
            |pod| drop(pod.as_object_mut().unwrap().remove("securityContext")),
        ];
        for change in open {
            assert_eq!(fields(&old, change), [""; 0]);
        }
        let closed: [(Change, &str); 5] = [
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
        ];
        for (change, field) in closed {
            assert_eq!(fields(&old, change), [field]);
        }
    }

    #[test]
    fn a_job_that_waits_may_change() {
        let job_of = |suspended: bool| json!({ "spec": { "suspend": suspended, "completions": 1, "template": { "spec": { "a": 1 } } } });
        let mut spec = job_of(false)["spec"].take();
        assert!(job(&job_of(false), &spec).is_empty());
        spec["template"]["spec"]["a"] = json!(2);
        spec["completions"] = json!(2);
        assert_eq!(job(&job_of(false), &spec).len(), 2);
        assert!(job(&job_of(true), &spec).is_empty());
    }
}
