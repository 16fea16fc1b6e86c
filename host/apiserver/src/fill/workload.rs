//! Workloads: kinds that create pods from a template.
//!
//! Must not know how a pod itself is completed.

use serde_json::{Map, Value, json};

use super::absent::absent;
use super::pod;
use crate::status::{Cause, INVALID, cause};
use crate::{meta, selector};

const GENERATION: &str = "deprecated.daemonset.template.generation";

/// Completes a kind with a template and a selector.
pub(super) fn template(object: &mut Value) -> Vec<Cause> {
    if let Some(spec) = object.pointer_mut("/spec/template/spec") {
        pod::spec(spec);
    }
    let (Some(selector), Some(template)) = (
        object.pointer("/spec/selector"),
        object.pointer("/spec/template/metadata"),
    ) else {
        return Vec::new();
    };
    let labels = template.get("labels");
    if selector::covers(selector, labels) {
        return Vec::new();
    }
    let shown = labels.unwrap_or(&Value::Null);
    let why = format!("Invalid value: {shown}: `selector` does not match template `labels`");
    vec![cause(INVALID, "spec.template.metadata.labels", why)]
}

pub(super) fn deployment(object: &mut Value) -> Vec<Cause> {
    let quarter = json!({ "maxSurge": "25%", "maxUnavailable": "25%" });
    rolling_update(object.pointer_mut("/spec/strategy"), &quarter);
    template(object)
}

pub(super) fn stateful_set(object: &mut Value) -> Vec<Cause> {
    let all = json!({ "partition": 0 });
    rolling_update(object.pointer_mut("/spec/updateStrategy"), &all);
    let claims = object.pointer_mut("/spec/volumeClaimTemplates");
    let claims = claims.and_then(Value::as_array_mut);
    for claim in claims.into_iter().flatten() {
        absent(
            claim,
            &json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim" }),
        );
    }
    template(object)
}

pub(super) fn daemon_set(live: Option<&Value>, object: &mut Value) -> Vec<Cause> {
    let one = json!({ "maxSurge": 0, "maxUnavailable": 1 });
    rolling_update(object.pointer_mut("/spec/updateStrategy"), &one);
    let causes = template(object);
    let before = live.map_or(0, template_generation);
    let same = live.is_some_and(|live| live["spec"]["template"] == object["spec"]["template"]);
    let generation = if same {
        before
    } else {
        before.saturating_add(1)
    };
    let annotations = meta::of(object)
        .entry("annotations")
        .or_insert_with(|| json!({}));
    annotations[GENERATION] = json!(generation.to_string());
    causes
}

fn template_generation(object: &Value) -> u64 {
    let annotations = meta::get(object, "annotations");
    let text = annotations.and_then(|all| all.get(GENERATION)?.as_str());
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn rolling_update(strategy: Option<&mut Value>, default: &Value) {
    let Some(strategy) = strategy.filter(|strategy| strategy["type"] == "RollingUpdate") else {
        return;
    };
    absent(strategy, &json!({ "rollingUpdate": {} }));
    if let Some(rolling) = strategy.get_mut("rollingUpdate") {
        absent(rolling, default);
    }
}

/// Completes a ReplicationController, whose selector and labels may come from its template.
pub(super) fn replication_controller(object: &mut Value) -> Vec<Cause> {
    if let Some(labels) = labels_of(object) {
        let spec = &mut object["spec"];
        if spec["selector"].as_object().is_none_or(Map::is_empty) {
            spec["selector"] = labels.clone();
        }
        label(object, labels);
    }
    template(object)
}

/// Returns the labels of the template.
fn labels_of(object: &Value) -> Option<Value> {
    let labels = object.pointer("/spec/template/metadata/labels");
    labels.filter(|labels| labels.is_object()).cloned()
}

/// Sets the labels of an object that has none.
fn label(object: &mut Value, labels: Value) {
    let own = meta::get(object, "labels").and_then(Value::as_object);
    if own.is_none_or(Map::is_empty) {
        meta::set(object, "labels", Some(labels));
    }
}

pub(super) fn pod_template(object: &mut Value) {
    if let Some(spec) = object.pointer_mut("/template/spec") {
        pod::spec(spec);
    }
}

pub(super) fn cron_job(object: &mut Value) {
    if let Some(spec) = object.pointer_mut("/spec/jobTemplate/spec/template/spec") {
        pod::spec(spec);
    }
}

/// Completes a Job. A new one selects its pods by its own uid.
pub(super) fn job(live: Option<&Value>, object: &mut Value) {
    let (uid, name) = (
        meta::text(object, "uid").to_owned(),
        meta::text(object, "name").to_owned(),
    );
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        absent(spec, &json!({ "completions": 1 }));
    }
    let attempts = match spec.get("backoffLimitPerIndex") {
        Some(_) => i32::MAX,
        None => 6,
    };
    let replaced = match spec.get("podFailurePolicy") {
        Some(_) => "Failed",
        None => "TerminatingOrFailed",
    };
    let defaults = json!({
        "parallelism": 1, "backoffLimit": attempts, "completionMode": "NonIndexed", "suspend": false,
        "podReplacementPolicy": replaced, "manualSelector": false,
    });
    absent(spec, &defaults);
    if live.is_none() && spec["manualSelector"] == false {
        let labels = json!({
            "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
            "controller-uid": uid, "job-name": name,
        });
        let template = &mut spec["template"];
        let own = meta::of(template)
            .entry("labels")
            .or_insert_with(|| json!({}));
        absent(own, &labels);
        absent(spec, &json!({ "selector": {} }));
        if let Some(selector) = spec.get_mut("selector") {
            absent(selector, &json!({ "matchLabels": {} }));
        }
        if let Some(own) = spec.pointer_mut("/selector/matchLabels") {
            absent(own, &json!({ "batch.kubernetes.io/controller-uid": uid }));
        }
    }
    if let Some(template) = spec.pointer_mut("/template/spec") {
        pod::spec(template);
    }
    if let Some(labels) = labels_of(object) {
        label(object, labels);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_selects_its_pods_by_its_uid() {
        let mut new = json!({ "metadata": { "name": "j", "uid": "u" }, "spec": { "template": { "metadata": {}, "spec": {} } } });
        job(None, &mut new);
        assert_eq!(
            new["spec"]["selector"],
            json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": "u" } })
        );
        assert_eq!(new["metadata"]["labels"]["job-name"], "j");
        assert_eq!(new["spec"]["completions"], 1);
        assert_eq!(new["spec"]["backoffLimit"], 6);
    }

    #[test]
    fn a_selector_must_match_its_template() {
        let mut object = json!({ "spec": {
            "selector": { "matchLabels": { "a": "b" } },
            "template": { "metadata": { "labels": { "a": "c" } }, "spec": {} },
        } });
        assert_eq!(
            template(&mut object)[0].field,
            "spec.template.metadata.labels"
        );
        object["spec"]["template"]["metadata"]["labels"]["a"] = json!("b");
        assert!(template(&mut object).is_empty());
    }

    #[test]
    fn a_daemon_set_counts_its_templates() {
        let set = |image: &str| json!({ "metadata": {}, "spec": { "template": { "spec": { "hostname": image } } } });
        let mut first = set("a");
        daemon_set(None, &mut first);
        let (mut same, mut other) = (set("a"), set("b"));
        daemon_set(Some(&first), &mut same);
        daemon_set(Some(&first), &mut other);
        let seen = [&first, &same, &other].map(template_generation);
        assert_eq!(seen, [1, 1, 2]);
    }
}
