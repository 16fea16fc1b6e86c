//! HorizontalPodAutoscalers between their stored version, v2, and v1.
//!
//! Owns the conversion of k8s.io/kubernetes `pkg/apis/autoscaling/v1/conversion.go`: v1 has a field
//! for the use of CPU, and keeps the rest in annotations. Must not know the served kinds.

use serde_json::{Map, Value, json};

use crate::meta;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// A metric's source, and for each field its name in v1 and its path in v2.
type Source = (
    &'static str,
    &'static [(&'static str, &'static [&'static str])],
);

/// Where v1 and v2 keep the parts of a metric: the source, and for each field its name in v1 and
/// its path in v2. A leading `*` stands for `target` in the spec and `current` in the status.
const SOURCES: [Source; 5] = [
    (
        "resource",
        &[
            ("name", &["name"]),
            ("*AverageUtilization", &["*", "averageUtilization"]),
            ("*AverageValue", &["*", "averageValue"]),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", &["name"]),
            ("container", &["container"]),
            ("*AverageUtilization", &["*", "averageUtilization"]),
            ("*AverageValue", &["*", "averageValue"]),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", &["metric", "name"]),
            ("selector", &["metric", "selector"]),
            ("*AverageValue", &["*", "averageValue"]),
        ],
    ),
    (
        "object",
        &[
            ("target", &["describedObject"]),
            ("metricName", &["metric", "name"]),
            ("selector", &["metric", "selector"]),
            ("*Value", &["*", "value"]),
            ("averageValue", &["*", "averageValue"]),
        ],
    ),
    (
        "external",
        &[
            ("metricName", &["metric", "name"]),
            ("metricSelector", &["metric", "selector"]),
            ("*Value", &["*", "value"]),
            ("*AverageValue", &["*", "averageValue"]),
        ],
    ),
];

/// Converts an object of v2 to v1.
pub(crate) fn to_v1(object: &mut Value) {
    let (cpu, rest) = split(take(object, "spec", "metrics"), "target");
    set(object, "spec", "targetCPUUtilizationPercentage", cpu);
    annotate(object, METRICS, rest);
    let (cpu, rest) = split(take(object, "status", "currentMetrics"), "current");
    set(object, "status", "currentCPUUtilizationPercentage", cpu);
    annotate(object, CURRENT, rest);
    let conditions = take(object, "status", "conditions");
    annotate(object, CONDITIONS, conditions);
    let behavior = take(object, "spec", "behavior");
    annotate(object, BEHAVIOR, behavior);
}

/// Converts an object of v1 to v2.
pub(crate) fn from_v1(object: &mut Value) {
    let cpu = take(object, "spec", "targetCPUUtilizationPercentage");
    let metrics = join(cpu, annotated(object, METRICS), "target");
    set(object, "spec", "metrics", metrics);
    let cpu = take(object, "status", "currentCPUUtilizationPercentage");
    let metrics = join(cpu, annotated(object, CURRENT), "current");
    // Go prints a list without metrics as null.
    let metrics = metrics.or_else(|| object.get("status")?.is_object().then_some(Value::Null));
    set(object, "status", "currentMetrics", metrics);
    let conditions = annotated(object, CONDITIONS);
    set(object, "status", "conditions", conditions);
    let behavior = annotated(object, BEHAVIOR);
    set(object, "spec", "behavior", behavior);
}

fn take(object: &mut Value, part: &str, field: &str) -> Option<Value> {
    object.get_mut(part)?.as_object_mut()?.remove(field)
}

fn set(object: &mut Value, part: &str, field: &str, value: Option<Value>) {
    // A part of another type is refused by the check of the schema.
    if let Some(value) = value
        && matches!(object[part], Value::Null | Value::Object(_))
    {
        object[part][field] = value;
    }
}

fn annotate(object: &mut Value, name: &str, value: Option<Value>) {
    let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    if let Some(value) = value.filter(|value| !empty(value)) {
        let annotations = meta::of(object)
            .entry("annotations")
            .or_insert_with(|| json!({}));
        if annotations.is_null() {
            *annotations = json!({});
        }
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(name.to_owned(), json!(value.to_string()));
        }
    }
}

fn annotated(object: &mut Value, name: &str) -> Option<Value> {
    let metadata = meta::of(object);
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let text = annotations.remove(name)?;
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    serde_json::from_str(text.as_str()?).ok()
}

/// Returns the use of CPU, which has a field in v1, and the other metrics as v1 writes them.
fn split(metrics: Option<Value>, word: &str) -> (Option<Value>, Option<Value>) {
    let Some(Value::Array(mut metrics)) = metrics else {
        return (None, None);
    };
    let percentage = |metric: &Value| {
        let resource = metric.get("resource").filter(|r| r["name"] == "cpu")?;
        resource.get(word)?.get("averageUtilization").cloned()
    };
    let at = metrics.iter().position(|m| percentage(m).is_some());
    let cpu = at.and_then(|at| percentage(&metrics.remove(at)));
    let rest = metrics.iter().map(|metric| older(metric, word));
    (cpu, Some(rest.collect()))
}

/// Returns all metrics as v2 writes them; `None` if there are none.
fn join(cpu: Option<Value>, rest: Option<Value>, word: &str) -> Option<Value> {
    let rest = rest
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let mut metrics: Vec<Value> = rest.map(|metric| newer(metric, word)).collect();
    if let Some(cpu) = cpu {
        let mut metric = json!({ "type": "Resource", "resource": { "name": "cpu" } });
        metric["resource"][format!("{word}AverageUtilization")] = cpu;
        metrics.push(newer(&metric, word));
    }
    (!metrics.is_empty()).then_some(Value::Array(metrics))
}

fn step(name: &str, word: &str) -> String {
    name.replace('*', word)
}

fn older(metric: &Value, word: &str) -> Value {
    let mut out = json!({ "type": metric["type"] });
    for (source, fields) in SOURCES {
        let Some(from) = metric.get(source) else {
            continue;
        };
        let mut to = Map::new();
        for (name, path) in fields {
            let value = path
                .iter()
                .try_fold(from, |at, field| at.get(step(field, word)));
            if let Some(value) = value {
                to.insert(step(name, word), value.clone());
            }
        }
        out[source] = Value::Object(to);
    }
    out
}

fn newer(metric: &Value, word: &str) -> Value {
    let mut out = json!({ "type": metric["type"] });
    for (source, fields) in SOURCES {
        let Some(from) = metric.get(source) else {
            continue;
        };
        let mut to = json!({});
        for (name, path) in fields {
            let Some(value) = from.get(step(name, word)) else {
                continue;
            };
            let place = path
                .iter()
                .fold(&mut to, |at, field| &mut at[step(field, word)]);
            *place = value.clone();
        }
        if word == "target" {
            let kind = ["averageUtilization", "averageValue", "value"]
                .into_iter()
                .find(|field| to[word].get(field).is_some());
            to[word]["type"] = match kind {
                Some("averageUtilization") => json!("Utilization"),
                Some("averageValue") => json!("AverageValue"),
                _ => json!("Value"),
            };
        }
        out[source] = to;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_v1_cannot_say_is_kept_in_annotations() {
        let v2 = json!({
            "metadata": { "name": "x" },
            "spec": {
                "maxReplicas": 3,
                "behavior": { "scaleUp": { "selectPolicy": "Max" } },
                "metrics": [
                    { "type": "Pods", "pods": { "metric": { "name": "m" }, "target": { "type": "AverageValue", "averageValue": "5" } } },
                    { "type": "Resource", "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 50 } } },
                ],
            },
            "status": { "conditions": [{ "type": "AbleToScale" }] },
        });
        let mut object = v2.clone();
        to_v1(&mut object);
        assert_eq!(object["spec"]["targetCPUUtilizationPercentage"], 50);
        assert_eq!(
            object["metadata"]["annotations"][METRICS],
            r#"[{"pods":{"metricName":"m","targetAverageValue":"5"},"type":"Pods"}]"#
        );
        assert_eq!(object["status"], json!({}));
        from_v1(&mut object);
        let mut back = v2;
        back["status"]["currentMetrics"] = Value::Null;
        assert_eq!(object, back);
    }

    #[test]
    fn parts_of_another_type_are_left_alone() {
        let metrics = json!([{ "type": "Pods", "pods": { "metric": { "name": "m" } } }]);
        let mut v2 = json!({ "metadata": { "annotations": [] }, "spec": { "metrics": metrics } });
        to_v1(&mut v2);
        assert_eq!(v2["metadata"]["annotations"], json!([]));
        let annotations = json!({ METRICS: metrics.to_string() });
        let mut v1 = json!({ "metadata": { "annotations": annotations }, "spec": "x" });
        from_v1(&mut v1);
        assert_eq!(v1["spec"], "x");
    }

    #[test]
    fn an_object_without_metrics_stays_without() {
        let mut object = json!({ "metadata": {}, "spec": { "maxReplicas": 1 } });
        let before = object.clone();
        from_v1(&mut object);
        to_v1(&mut object);
        assert_eq!(object, before);
    }
}
