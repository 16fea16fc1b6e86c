//! The quality of service of pods.
//!
//! Follows k8s.io/kubernetes `pkg/apis/core/helper/qos`. Must not know how a pod is completed
//! otherwise.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use vmhost_schema::billionths;

use super::absent::absent;

/// The resources that decide the class.
const COUNTED: [&str; 2] = ["cpu", "memory"];

/// Sets the quality-of-service class of a new pod.
pub(super) fn classify(new: &mut Value) {
    let Some(pod) = new.get("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    let class = json!({ "qosClass": class(pod) });
    if let Some(status) = new.get_mut("status") {
        absent(status, &class);
    }
}

/// Returns the class of a pod: by its own resources, or by those of its containers.
fn class(spec: &Value) -> &'static str {
    let own = spec.get("resources").filter(|own| own.is_object());
    let lists = ["containers", "initContainers"].into_iter();
    let containers = lists.filter_map(|list| spec[list].as_array()).flatten();
    let all: Vec<&Value> = match own {
        Some(own) => vec![own],
        None => containers.map(|of| &of["resources"]).collect(),
    };
    let (mut requests, mut limits) = (BTreeMap::new(), BTreeMap::new());
    let mut is_limited = true;
    for resources in all {
        count(&resources["requests"], &mut requests);
        is_limited &= count(&resources["limits"], &mut limits) == COUNTED.len();
    }
    match (requests.is_empty() && limits.is_empty(), is_limited) {
        (true, _) => "BestEffort",
        (false, true) if requests == limits => "Guaranteed",
        (false, _) => "Burstable",
    }
}

/// Adds the resources that count for a class. Returns how many there are; an amount of zero is
/// none.
fn count(list: &Value, amounts: &mut BTreeMap<&'static str, i128>) -> usize {
    let mut found = 0;
    for name in COUNTED {
        let amount = list[name].as_str().and_then(billionths);
        if let Some(amount) = amount.filter(|amount| *amount > 0) {
            *amounts.entry(name).or_default() += amount;
            found += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_follows_from_what_is_asked_for() {
        let both = json!({ "cpu": "1", "memory": "1Gi" });
        let limited = json!({ "limits": both, "requests": both });
        for (resources, expected) in [
            (json!({}), "BestEffort"),
            (
                json!({ "requests": { "cpu": "0" }, "limits": { "x.y/z": "1" } }),
                "BestEffort",
            ),
            (json!({ "requests": { "cpu": "1" } }), "Burstable"),
            (
                json!({ "limits": both, "requests": { "cpu": "1" } }),
                "Burstable",
            ),
            (limited.clone(), "Guaranteed"),
        ] {
            let pod = json!({ "containers": [{ "resources": resources }] });
            assert_eq!(class(&pod), expected, "{pod}");
            let own = json!({ "resources": resources, "containers": [{}] });
            assert_eq!(class(&own), expected, "{own}");
        }
        let pod = json!({ "containers": [{ "resources": limited }], "initContainers": [{}] });
        assert_eq!(class(&pod), "Burstable");
    }
}
