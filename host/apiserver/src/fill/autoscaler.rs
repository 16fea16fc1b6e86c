//! HorizontalPodAutoscalers: what they watch, and how fast they scale.

use serde_json::{Value, json};

use super::absent::absent;

/// The annotation in which v1 keeps metrics other than CPU.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

/// Completes an object of either version.
pub(super) fn fill(object: &mut Value) {
    let old = object["apiVersion"] == "autoscaling/v1";
    let annotations = object.pointer("/metadata/annotations");
    let has_others = annotations.is_some_and(|all| all.get(METRICS).is_some());
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    if old {
        if !has_others {
            absent(spec, &json!({ "targetCPUUtilizationPercentage": 80 }));
        }
        return;
    }
    let metrics = spec.get("metrics").and_then(Value::as_array);
    if metrics.is_none_or(Vec::is_empty) {
        spec["metrics"] = json!([{ "type": "Resource", "resource": {
            "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 80 },
        } }]);
    }
    if let Some(behavior) = spec.get_mut("behavior").filter(|b| b.is_object()) {
        absent(behavior, &json!({ "scaleUp": {}, "scaleDown": {} }));
        let percent = json!({ "type": "Percent", "value": 100, "periodSeconds": 15 });
        let pods = json!({ "type": "Pods", "value": 4, "periodSeconds": 15 });
        absent(
            &mut behavior["scaleUp"],
            &json!({ "stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [pods, percent] }),
        );
        absent(
            &mut behavior["scaleDown"],
            &json!({ "selectPolicy": "Max", "policies": [percent] }),
        );
    }
}
