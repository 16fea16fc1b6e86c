//! What an update of a Job may not change. One that waits may still run elsewhere, and with other
//! resources.
//!
//! Must not know how an object is stored.

use serde_json::{Map, Value};

use super::super::same::same;
use crate::status::{Cause, INVALID, cause};

const IMMUTABLE: &str = "field is immutable";

/// Checks a Job.
pub(super) fn faults(live: &Value, spec: &Value) -> Vec<Cause> {
    let old = &live["spec"];
    let completions = completions(old, spec);
    let template = template(old, spec, waits(live));
    completions.into_iter().chain(template).collect()
}

fn invalid(field: &str, value: &Value, why: &str) -> Cause {
    cause(INVALID, field, format!("Invalid value: {value}: {why}"))
}

fn completions(old: &Value, spec: &Value) -> Option<Cause> {
    let asked = &spec["completions"];
    if same(&old["completions"], asked) {
        return None;
    }
    let is_indexed = spec["completionMode"] == "Indexed";
    // That an indexed Job has none is told by the rules of its kind.
    if is_indexed && (asked.is_null() || *asked == spec["parallelism"]) {
        return None;
    }
    let why = match is_indexed {
        true => "can only be modified in tandem with spec.parallelism",
        false => IMMUTABLE,
    };
    Some(invalid("spec.completions", asked, why))
}

/// Returns whether a Job is suspended, and no pod of it runs.
fn waits(live: &Value) -> bool {
    let status = &live["status"];
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let is_suspended =
        |condition: &Value| condition["type"] == "Suspended" && condition["status"] == "True";
    let has_no_pods = matches!(status["active"].as_i64(), None | Some(0));
    live["spec"]["suspend"] == true
        && has_no_pods
        && (status["startTime"].is_null() || conditions.any(is_suspended))
}

fn template(old: &Value, spec: &Value, waits: bool) -> Option<Cause> {
    let (before, after) = (&old["template"], &spec["template"]);
    if same(before, after) {
        return None;
    }
    if !waits {
        return Some(invalid("spec.template", after, IMMUTABLE));
    }
    let pods = &after["spec"];
    let expected = without_open(before["spec"].as_object(), pods);
    let is_same = same(&Value::Object(expected), pods);
    (!is_same).then(|| invalid("spec.template.spec", pods, IMMUTABLE))
}

/// Returns the old spec of pods with the new values of what may change.
fn without_open(old: Option<&Map<String, Value>>, pods: &Value) -> Map<String, Value> {
    let mut made = old.cloned().unwrap_or_default();
    for field in ["nodeSelector", "schedulingGates", "tolerations"] {
        made.insert(field.to_owned(), pods[field].clone());
    }
    let affinity = made.get("affinity").and_then(Value::as_object);
    let mut affinity = affinity.cloned().unwrap_or_default();
    let of_nodes = pods["affinity"]["nodeAffinity"].clone();
    affinity.insert("nodeAffinity".to_owned(), of_nodes);
    made.insert("affinity".to_owned(), Value::Object(affinity));
    for list in ["containers", "initContainers"] {
        let old = made.get_mut(list).and_then(Value::as_array_mut);
        if let (Some(old), Some(new)) = (old, pods[list].as_array())
            && old.len() == new.len()
        {
            let pairs = old.iter_mut().zip(new);
            for (old, new) in
                pairs.filter(|(old, new)| old.is_object() && old["name"] == new["name"])
            {
                old["resources"] = new["resources"].clone();
            }
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn live(status: Value) -> Value {
        let container = json!({ "name": "c", "image": "i" });
        let template = json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [container] } });
        let spec =
            json!({ "suspend": true, "completions": 1, "parallelism": 1, "template": template });
        json!({ "spec": spec, "status": status })
    }

    fn fields(live: &Value, new: Value) -> Vec<String> {
        let mut spec = live["spec"].clone();
        json_patch::merge(&mut spec, &new);
        let causes = faults(live, &spec).into_iter();
        causes.map(|cause| cause.field).collect()
    }

    #[test]
    fn a_job_that_waits_may_run_elsewhere() {
        let suspended = json!([{ "type": "Suspended", "status": "True" }]);
        let waits = [
            live(json!({})),
            live(json!({ "startTime": "x", "conditions": suspended })),
        ];
        let limited =
            json!({ "name": "c", "image": "i", "resources": { "limits": { "cpu": "1" } } });
        let pods = json!({
            "containers": [limited], "nodeSelector": { "a": "b" }, "tolerations": [{ "key": "a" }],
            "affinity": { "nodeAffinity": { "x": 1 } },
        });
        let moved = json!({ "template": { "metadata": { "labels": { "c": "d" } }, "spec": pods } });
        let image =
            json!({ "template": { "spec": { "containers": [{ "name": "c", "image": "j" }] } } });
        for live in &waits {
            assert_eq!(fields(live, moved.clone()), [""; 0]);
            assert_eq!(fields(live, image.clone()), ["spec.template.spec"]);
            assert_eq!(
                fields(live, json!({ "completions": 2 })),
                ["spec.completions"]
            );
        }
        for status in [
            json!({ "startTime": "x" }),
            json!({ "active": 1, "conditions": suspended }),
        ] {
            assert_eq!(fields(&live(status), moved.clone()), ["spec.template"]);
        }
    }

    #[test]
    fn an_indexed_job_completes_as_often_as_it_runs_at_once() {
        let live = live(json!({}));
        let of = |completions: i64, parallelism: i64| json!({ "completionMode": "Indexed", "completions": completions, "parallelism": parallelism });
        assert_eq!(fields(&live, of(2, 2)), [""; 0]);
        assert_eq!(fields(&live, of(1, 2)), [""; 0]);
        assert_eq!(fields(&live, of(2, 1)), ["spec.completions"]);
    }
}
