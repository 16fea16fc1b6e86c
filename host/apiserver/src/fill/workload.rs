//! Workloads: kinds that create pods from a template.
//!
//! Must not know how a pod itself is completed.

use serde_json::{Map, Value, json};

use super::absent::absent;
use super::{containers, pod};
use crate::kinds::Fill;
use crate::status::{Cause, INVALID, cause};
use crate::{meta, selector};

/// Where most kinds have the spec of their pods.
const TEMPLATE: &str = "spec.template.spec";
const GENERATION: &str = "deprecated.daemonset.template.generation";

/// Completes the template of a kind.
pub(super) fn template(object: &mut Value) {
    if let Some(spec) = object.pointer_mut("/spec/template/spec") {
        pod::spec(spec);
    }
}

/// Returns where a kind has the spec of its pods; `None` if it has none.
fn pods(kind: Fill) -> Option<&'static str> {
    Some(match kind {
        Fill::Pod => "spec",
        Fill::PodTemplate => "template.spec",
        Fill::CronJob => "spec.jobTemplate.spec.template.spec",
        Fill::DaemonSet
        | Fill::Deployment
        | Fill::Job
        | Fill::ReplicationController
        | Fill::StatefulSet
        | Fill::Template => TEMPLATE,
        _ => return None,
    })
}

fn below<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(object, |of, part| of.get(part))
}

/// Returns what is wrong with the selector, the numbers and the pods of an object. Pods that stay
/// as they are in `live` are not looked at.
pub(super) fn faults(kind: Fill, live: Option<&Value>, object: &Value) -> Vec<Cause> {
    let mut causes = mismatch(kind, object);
    let path = pods(kind).unwrap_or_default();
    let Some(spec) = below(object, path) else {
        return causes;
    };
    causes.extend(negative(kind, object, path));
    if live.and_then(|live| below(live, path)) == Some(spec) {
        return causes;
    }
    let claims = object.pointer("/spec/volumeClaimTemplates");
    let claims = claims.and_then(Value::as_array).into_iter().flatten();
    let claims: Vec<&str> = claims.map(|claim| meta::text(claim, "name")).collect();
    causes.extend(containers::faults(spec, path, &claims));
    match kind {
        Fill::Pod | Fill::PodTemplate => {}
        Fill::Job | Fill::CronJob => causes.extend(containers::restarts(spec, path, true)),
        _ => causes.extend(containers::restarts(spec, path, false)),
    }
    causes
}

/// Returns the numbers below zero beside the template of pods at `path`.
fn negative(kind: Fill, object: &Value, path: &str) -> Vec<Cause> {
    let above = path.strip_suffix(".template.spec").unwrap_or_default();
    let numbers = below(object, above).and_then(Value::as_object);
    // Go does not look at how much history a StatefulSet has.
    let is_free = |name: &str| kind == Fill::StatefulSet && name == "revisionHistoryLimit";
    let negative = numbers
        .into_iter()
        .flatten()
        .filter(|(name, _)| !is_free(name))
        .filter(|(_, number)| number.as_i64().is_some_and(|number| number < 0));
    let told = negative.map(|(name, number)| {
        let why = format!("Invalid value: {number}: must be greater than or equal to 0");
        cause(INVALID, format!("{above}.{name}"), why)
    });
    told.collect()
}

/// Returns a refusal if the selector of an object does not match its template. That of a Job is
/// made to match.
pub(super) fn mismatch(kind: Fill, object: &Value) -> Vec<Cause> {
    if kind == Fill::Job || pods(kind) != Some(TEMPLATE) {
        return Vec::new();
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

pub(super) fn deployment(object: &mut Value) {
    let quarter = json!({ "maxSurge": "25%", "maxUnavailable": "25%" });
    rolling_update(object.pointer_mut("/spec/strategy"), &quarter);
    template(object);
}

pub(super) fn stateful_set(object: &mut Value) {
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
    template(object);
}

/// Completes a DaemonSet. Go reads the generation of the template from an annotation, which it
/// always writes.
pub(super) fn daemon_set(object: &mut Value) {
    let one = json!({ "maxSurge": 0, "maxUnavailable": 1 });
    rolling_update(object.pointer_mut("/spec/updateStrategy"), &one);
    template(object);
    let annotations = meta::of(object)
        .entry("annotations")
        .or_insert_with(|| json!({}));
    absent(annotations, &json!({ GENERATION: "0" }));
}

/// Advances the generation of a DaemonSet's template if the template differs.
pub(super) fn count_templates(live: Option<&Value>, object: &mut Value) {
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
pub(super) fn replication_controller(object: &mut Value) {
    if let Some(labels) = labels_of(object) {
        let spec = &mut object["spec"];
        if spec["selector"].as_object().is_none_or(Map::is_empty) {
            spec["selector"] = labels.clone();
        }
        label(object, labels);
    }
    template(object);
}

/// Returns the labels of the template; `None` if there are none.
fn labels_of(object: &Value) -> Option<Value> {
    let labels = object.pointer("/spec/template/metadata/labels");
    let is_some = |labels: &&Value| labels.as_object().is_some_and(|labels| !labels.is_empty());
    labels.filter(is_some).cloned()
}

fn has_labels(object: &Value) -> bool {
    let own = meta::get(object, "labels").and_then(Value::as_object);
    own.is_some_and(|own| !own.is_empty())
}

/// Sets the labels of an object that has none.
fn label(object: &mut Value, labels: Value) {
    if !has_labels(object) {
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

/// Fills in the defaults of a Job.
pub(super) fn job(object: &mut Value) {
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
    template(object);
    if let Some(labels) = labels_of(object) {
        label(object, labels);
    }
}

/// Lets a new Job select its pods by its own uid. Labels that it has from its template stay the
/// same as those.
pub(super) fn select_pods(live: Option<&Value>, object: &mut Value) {
    let (uid, name) = (
        meta::text(object, "uid").to_owned(),
        meta::text(object, "name").to_owned(),
    );
    let same = !has_labels(object)
        || meta::get(object, "labels") == object.pointer("/spec/template/metadata/labels");
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    if live.is_some() || spec["manualSelector"] != false {
        return;
    }
    let labels = json!({
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
        "controller-uid": uid, "job-name": name,
    });
    let own = meta::of(&mut spec["template"])
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
    if let Some(labels) = labels_of(object).filter(|_| same) {
        meta::set(object, "labels", Some(labels));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_selects_its_pods_by_its_uid() {
        let mut new = json!({ "metadata": { "name": "j", "uid": "u" }, "spec": { "template": { "metadata": {}, "spec": {} } } });
        job(&mut new);
        assert_eq!(new["spec"].get("selector"), None);
        select_pods(None, &mut new);
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
        let mismatch = |object: &Value| mismatch(Fill::Deployment, object);
        assert_eq!(mismatch(&object)[0].field, "spec.template.metadata.labels");
        object["spec"]["template"]["metadata"]["labels"]["a"] = json!("b");
        assert!(mismatch(&object).is_empty());
    }

    #[test]
    fn a_daemon_set_counts_its_templates() {
        let set = |image: &str| json!({ "metadata": {}, "spec": { "template": { "spec": { "hostname": image } } } });
        let mut first = set("a");
        daemon_set(&mut first);
        assert_eq!(first["metadata"]["annotations"][GENERATION], "0");
        count_templates(None, &mut first);
        let (mut same, mut other) = (set("a"), set("b"));
        count_templates(Some(&first), &mut same);
        count_templates(Some(&first), &mut other);
        let seen = [&first, &same, &other].map(template_generation);
        assert_eq!(seen, [1, 1, 2]);
    }
}
