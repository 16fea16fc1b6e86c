//! What an update of a claim of a volume may not change.
//!
//! Must not know the classes that there are.

use serde_json::Value;
use vmhost_schema::billionths;

use super::super::same::same;
use crate::meta;
use crate::status::{Cause, FORBIDDEN, INVALID, cause};

const FIXED: &str = "Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
const TOO_SMALL: &str = "Forbidden: field can not be less than status.capacity";
/// The annotation that names the class in older claims.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Checks a claim.
pub(super) fn faults(live: &Value, new: &Value) -> Vec<Cause> {
    let (old, spec) = (&live["spec"], &new["spec"]);
    let mut causes = Vec::new();
    if !same(old, &without_open(live, new)) {
        causes.push(cause(FORBIDDEN, "spec", FIXED));
    }
    let capacity = live.pointer("/status/capacity/storage");
    let capacity = capacity.and_then(Value::as_str).and_then(billionths);
    let asked = size(spec).unwrap_or(0);
    if asked < size(old).unwrap_or(0) && asked <= capacity.unwrap_or(0) {
        causes.push(cause(
            FORBIDDEN,
            "spec.resources.requests.storage",
            TOO_SMALL,
        ));
    }
    if !same(&old["volumeMode"], &spec["volumeMode"]) {
        let why = format!("Invalid value: {}: field is immutable", spec["volumeMode"]);
        causes.push(cause(INVALID, "volumeMode", why));
    }
    causes
}

/// Returns the new spec with the old values of what may change.
fn without_open(live: &Value, new: &Value) -> Value {
    let (old, mut spec) = (&live["spec"], new["spec"].clone());
    let is_bound = new
        .pointer("/status/phase")
        .is_some_and(|phase| phase == "Bound");
    let is_named = old["volumeName"]
        .as_str()
        .is_some_and(|name| !name.is_empty());
    // A claim that is older than this rule has its source in one of the fields.
    let is_copied = |field: &str, from: &str| old[field].is_null() && old[from].is_object();
    let open = [
        ("dataSource", is_copied("dataSource", "dataSourceRef")),
        ("dataSourceRef", is_copied("dataSourceRef", "dataSource")),
        ("volumeName", !is_named),
        ("storageClassName", gets_class(live, &spec)),
        ("volumeAttributesClassName", is_bound),
    ];
    if let Some(fields) = spec.as_object_mut() {
        for (field, _) in open.iter().filter(|(_, is_open)| *is_open) {
            fields.insert((*field).to_owned(), old[*field].clone());
        }
    }
    if is_bound || size(old) == size(&spec) {
        let requests = spec.pointer_mut("/resources/requests");
        if let Some(requests) = requests.and_then(Value::as_object_mut) {
            let storage = old["resources"]["requests"]["storage"].clone();
            requests.insert("storage".to_owned(), storage);
        }
    }
    spec
}

/// Returns whether a claim without a class gets one.
fn gets_class(live: &Value, spec: &Value) -> bool {
    let annotations = meta::get(live, "annotations");
    let annotated = annotations.and_then(|all| all.get(CLASS));
    let class = &spec["storageClassName"];
    live["spec"]["storageClassName"].is_null()
        && class.is_string()
        && annotated.is_none_or(|annotated| annotated == class)
}

fn size(spec: &Value) -> Option<i128> {
    let storage = spec.pointer("/resources/requests/storage")?;
    storage.as_str().and_then(billionths)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(phase: &str, new: Value) -> Vec<String> {
        let spec =
            json!({ "accessModes": ["a"], "resources": { "requests": { "storage": "2Gi" } } });
        let status = json!({ "phase": phase, "capacity": { "storage": "1Gi" } });
        let live = json!({ "spec": spec, "status": status });
        let mut changed = live.clone();
        json_patch::merge(&mut changed["spec"], &new);
        let causes = faults(&live, &changed).into_iter();
        causes.map(|cause| cause.field).collect()
    }

    #[test]
    fn a_claim_gets_its_class_and_its_volume_once() {
        let of = |storage: &str| json!({ "resources": { "requests": { "storage": storage } } });
        for new in [
            json!({ "storageClassName": "c", "volumeName": "v" }),
            of("2048Mi"),
        ] {
            assert_eq!(fields("Pending", new), [""; 0]);
        }
        assert_eq!(fields("Pending", of("3Gi")), ["spec"]);
        assert_eq!(fields("Bound", of("3Gi")), [""; 0]);
        assert_eq!(fields("Bound", of("1500Mi")), [""; 0]);
        let shrunk = "spec.resources.requests.storage";
        assert_eq!(fields("Bound", of("1Gi")), [shrunk]);
        assert_eq!(fields("Pending", of("1Gi")), ["spec", shrunk]);
        let attributes = || json!({ "volumeAttributesClassName": "x" });
        assert_eq!(fields("Pending", attributes()), ["spec"]);
        assert_eq!(fields("Bound", attributes()), [""; 0]);
    }
}
