//! Pods and pod templates.
//!
//! Must not know which kinds have templates.

use serde_json::{Value, json};

use super::absent::absent;
use super::priority::{CLASSES, default_class};
use crate::object::{Key, Object};
use crate::state::Inner;

/// The classes that every cluster has.
const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];
/// What a pod does whose class says nothing about preemption.
const PREEMPTS: &str = "PreemptLowerPriority";
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// The taints that a pod tolerates for 300 s, as set by the admission plugin
/// `DefaultTolerationSeconds`.
const TOLERATED: [&str; 2] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
];

/// Completes a pod as the admission plugins `Priority` and `DefaultTolerationSeconds` do, or
/// returns why it is forbidden. A part of a cluster forbids nothing: it may lack the priority
/// classes.
pub(super) fn admit(inner: &Inner, live: Option<&Value>, new: &mut Value) -> Option<String> {
    if live.is_none()
        && !inner.partial
        && let Some(why) = forbidden(inner, new)
    {
        return Some(why);
    }
    let pod = new.get_mut("spec").filter(|spec| spec.is_object())?;
    match live {
        Some(live) => keep_priority(live, pod),
        None => prioritize(inner, pod),
    }
    tolerate(pod);
    None
}

fn system_priority(name: &str) -> Option<i64> {
    let class = SYSTEM_CLASSES.iter().find(|(class, _)| *class == name);
    class.map(|(_, value)| *value)
}

/// Returns the class of a name, or the default one.
fn priority_class(inner: &Inner, name: &str) -> Option<Object> {
    match name {
        "" => default_class(inner),
        name => inner.store.get(CLASSES, &Key::new("", name)),
    }
}

/// Returns why a new pod may not have the priority that it asks for, as the admission plugin
/// `Priority` words it.
fn forbidden(inner: &Inner, pod: &Value) -> Option<String> {
    let spec = pod.get("spec")?;
    let name = spec["priorityClassName"].as_str().unwrap_or_default();
    let class = priority_class(inner, name);
    let value = class.as_ref().and_then(|class| class["value"].as_i64());
    let priority = match system_priority(name).or(value) {
        Some(priority) => priority,
        None if name.is_empty() => 0,
        None => return Some(format!("no PriorityClass with name {name} was found")),
    };
    let asked = spec["priority"].as_i64();
    if let Some(asked) = asked.filter(|asked| *asked != priority) {
        return Some(format!(
            "the integer value of priority ({asked}) must not be provided in pod spec; priority admission controller computed {priority} from the given PriorityClass name"
        ));
    }
    let policy = class.as_ref();
    let policy = policy.and_then(|class| class["preemptionPolicy"].as_str());
    let policy = policy.unwrap_or(PREEMPTS);
    let asked = spec["preemptionPolicy"].as_str();
    let asked = asked.filter(|asked| *asked != policy)?;
    Some(format!(
        "the string value of PreemptionPolicy ({asked}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
    ))
}

/// Sets the priority that a pod's class has, as the admission plugin `Priority` does.
fn prioritize(inner: &Inner, pod: &mut Value) {
    let name = pod["priorityClassName"].as_str().unwrap_or_default();
    if let Some(value) = system_priority(name) {
        pod["priority"] = json!(value);
    } else if let Some(class) = priority_class(inner, name) {
        pod["priorityClassName"] = class["metadata"]["name"].clone();
        for (field, from) in [
            ("priority", "value"),
            ("preemptionPolicy", "preemptionPolicy"),
        ] {
            pod[field] = class[from].clone();
        }
    }
    absent(pod, &json!({ "priority": 0, "preemptionPolicy": PREEMPTS }));
}

/// Sets the priority of the pod that is replaced, unless the new one states its own.
fn keep_priority(live: &Value, pod: &mut Value) {
    for field in ["priority", "preemptionPolicy"] {
        if let Some(value) = live.get("spec").and_then(|spec| spec.get(field)) {
            absent(pod, &json!({ field: value }));
        }
    }
}

/// Fills in the defaults of a pod.
pub(super) fn default(new: &mut Value) {
    let Some(pod) = new.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    spec(pod);
    if pod["hostNetwork"] == true {
        let ports = containers(pod).into_iter();
        let ports = ports.filter_map(|container| container.get_mut("ports")?.as_array_mut());
        for port in ports.flatten() {
            let same = json!({ "hostPort": port["containerPort"] });
            absent(port, &same);
        }
    }
    for container in containers(pod) {
        if let Some(resources) = container.get_mut("resources") {
            request_limits(resources);
        }
    }
}

/// Completes the spec of a pod or a template.
pub(super) fn spec(spec: &mut Value) {
    for container in containers(spec) {
        // Go does not tell an empty image from none.
        if container["image"] == ""
            && let Some(fields) = container.as_object_mut()
        {
            fields.remove("image");
        }
        let policy = pull_policy(&container["image"]);
        absent(container, &json!({ "imagePullPolicy": policy }));
    }
    let volumes = spec.get_mut("volumes").and_then(Value::as_array_mut);
    for volume in volumes.into_iter().flatten() {
        if volume.as_object().is_some_and(|volume| volume.len() == 1) {
            absent(volume, &json!({ "emptyDir": {} }));
        }
        if let Some(image) = volume.get_mut("image").filter(|image| image.is_object()) {
            let policy = pull_policy(&image["reference"]);
            absent(image, &json!({ "pullPolicy": policy }));
        }
    }
    name_account(spec);
}

/// Writes the account of a pod in both fields that have it. If they differ, the newer one counts.
fn name_account(spec: &mut Value) {
    let named = |field: &str| spec[field].as_str().filter(|name| !name.is_empty());
    let name = named("serviceAccountName").or_else(|| named("serviceAccount"));
    if let Some(name) = name.map(|name| json!(name)) {
        spec["serviceAccountName"] = name.clone();
        spec["serviceAccount"] = name;
    }
}

fn pull_policy(image: &Value) -> &'static str {
    match is_latest(image.as_str().unwrap_or_default()) {
        true => "Always",
        false => "IfNotPresent",
    }
}

fn containers(spec: &mut Value) -> Vec<&mut Value> {
    let Value::Object(spec) = spec else {
        return Vec::new();
    };
    let lists = spec
        .iter_mut()
        .filter(|(field, _)| CONTAINERS.contains(&field.as_str()));
    lists
        .filter_map(|(_, list)| list.as_array_mut())
        .flatten()
        .filter(|container| container.is_object())
        .collect()
}

/// Returns whether an image has no digest, and no tag or the tag `latest`.
fn is_latest(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    let tag = name.split_once(':').map_or("latest", |(_, tag)| tag);
    !name.contains('@') && tag == "latest"
}

/// Copies limits to requests that are not set.
fn request_limits(resources: &mut Value) {
    let limits = resources.get("limits").and_then(Value::as_object).cloned();
    let Some(limits) = limits.filter(|limits| !limits.is_empty()) else {
        return;
    };
    absent(resources, &json!({ "requests": {} }));
    if let Some(requests) = resources.get_mut("requests") {
        absent(requests, &Value::Object(limits));
    }
}

fn tolerate(spec: &mut Value) {
    absent(spec, &json!({ "tolerations": [] }));
    let Some(Value::Array(list)) = spec.get_mut("tolerations") else {
        return;
    };
    for key in TOLERATED {
        let covers = |t: &Value| {
            let (named, effect) = (t["key"].as_str(), t["effect"].as_str());
            matches!(named, None | Some("")) | (named == Some(key))
                && matches!(effect, None | Some("" | "NoExecute"))
        };
        if !list.iter().any(covers) {
            list.push(json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::quality;
    use super::*;

    #[test]
    fn images_without_a_fixed_tag_are_pulled_always() {
        for (image, latest) in [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1.2", false),
            ("reg:5000/a/nginx", true),
            ("reg:5000/a/nginx:1", false),
            ("nginx@sha256:00", false),
        ] {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }

    #[test]
    fn an_account_and_the_image_of_a_volume_are_completed() {
        let mut pod = json!({
            "serviceAccount": "old",
            "volumes": [{ "name": "v", "image": { "reference": "x:1" } }],
        });
        spec(&mut pod);
        assert_eq!(pod["serviceAccountName"], "old");
        assert_eq!(pod["volumes"][0]["image"]["pullPolicy"], "IfNotPresent");
        pod["serviceAccountName"] = json!("new");
        spec(&mut pod);
        assert_eq!(pod["serviceAccount"], "new");
    }

    #[test]
    fn a_pod_gets_requests_tolerations_and_a_class() {
        let pod = |resources: Value| {
            let mut pod = json!({ "status": {}, "spec": {
                "containers": [{ "name": "c", "image": "x:1", "resources": resources }],
                "volumes": [{ "name": "v" }],
                "tolerations": [{ "key": TOLERATED[0], "effect": "NoExecute" }],
            } });
            default(&mut pod);
            tolerate(&mut pod["spec"]);
            quality::classify(&mut pod);
            pod
        };
        let limited =
            pod(json!({ "limits": { "cpu": "1", "memory": "1Gi" }, "requests": { "cpu": "1" } }));
        assert_eq!(
            limited["spec"]["containers"][0]["resources"]["requests"],
            json!({ "cpu": "1", "memory": "1Gi" })
        );
        assert_eq!(limited["status"]["qosClass"], "Guaranteed");
        assert_eq!(
            limited["spec"]["volumes"],
            json!([{ "name": "v", "emptyDir": {} }])
        );
        assert_eq!(
            limited["spec"]["tolerations"].as_array().map(Vec::len),
            Some(2)
        );
        assert_eq!(pod(json!({}))["status"]["qosClass"], "BestEffort");
        let some = pod(json!({ "requests": { "cpu": "1" } }));
        assert_eq!(some["status"]["qosClass"], "Burstable");
    }
}
