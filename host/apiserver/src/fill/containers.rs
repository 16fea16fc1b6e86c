//! What is wrong with the containers and volumes of a pod, or of a template of pods.
//!
//! Follows k8s.io/kubernetes `pkg/apis/core/validation`, for the mistakes that are made often:
//! names that are taken, mounts of volumes that are not there, requests above their limits. Must
//! not know which kinds have templates.

use std::collections::HashSet;

use serde_json::Value;
use vmhost_schema::billionths;

use crate::meta::check::{LABEL_RULE, is_label, is_subdomain};
use crate::status::{Cause, FORBIDDEN, INVALID, NOT_SUPPORTED, REQUIRED, cause};

/// Nothing is looked at after so many faults, since a body has room for a hundred thousand.
const MOST: usize = 1000;
const DUPLICATE: &str = "FieldValueDuplicate";
const NOT_FOUND: &str = "FieldValueNotFound";

/// What a container that runs before the others must not have, unless it stays with them.
const OF_RUNNING: [&str; 4] = [
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
];

/// Returns what is wrong with the spec of pods at `path`. `claimed` are the names of volumes that
/// come first, instead of those with the same names. What is of a wrong type is refused by the
/// schema.
pub(super) fn faults(spec: &Value, path: &str, claimed: &[&str]) -> Vec<Cause> {
    let mut causes = Vec::new();
    let claimed: HashSet<&str> = claimed.iter().copied().collect();
    let mut volumes = claimed.clone();
    let is_own = |volume: &&Value| {
        let name = volume.get("name").and_then(Value::as_str);
        name.is_none_or(|name| !claimed.contains(name))
    };
    let rest = list(spec, "volumes").map(|(_, volume)| volume);
    let mut own = HashSet::new();
    for (at, volume) in rest.filter(is_own).enumerate() {
        if causes.len() > MOST {
            return causes;
        }
        let at = at + claimed.len();
        let field = format!("{path}.volumes[{at}].name");
        let name = named(volume, &field, &mut own, &mut causes);
        volumes.extend(name);
    }
    let mut names = HashSet::new();
    for part in ["containers", "initContainers", "ephemeralContainers"] {
        for (at, container) in list(spec, part) {
            if causes.len() > MOST {
                return causes;
            }
            let here = format!("{path}.{part}[{at}]");
            let mut found = Vec::new();
            named(container, &format!("{here}.name"), &mut names, &mut found);
            // The server tells last that a name is taken.
            let taken = found.extract_if(.., |cause| cause.reason == DUPLICATE);
            let taken: Vec<Cause> = taken.collect();
            causes.append(&mut found);
            ports(container, &here, &mut causes);
            mounts(container, &here, &volumes, &mut causes);
            resources(&container["resources"], &here, &mut causes);
            causes.extend(taken);
            if part == "initContainers" && container["restartPolicy"] != "Always" {
                let there = OF_RUNNING
                    .iter()
                    .filter(|name| container[**name].is_object());
                causes.extend(there.map(|name| {
                    let why = "Forbidden: may not be set for init containers without restartPolicy=Always";
                    cause(FORBIDDEN, format!("{here}.{name}"), why)
                }));
            }
        }
    }
    causes
}

/// Returns what is wrong with the restart policy of a template at `path`: a Job ends, all others go
/// on.
pub(super) fn restarts(spec: &Value, path: &str, ends: bool) -> Option<Cause> {
    let field = format!("{path}.restartPolicy");
    match (spec["restartPolicy"].as_str()?, ends) {
        ("Always", true) => {
            let why = r#"Required value: valid values: "OnFailure", "Never""#;
            Some(cause(REQUIRED, field, why))
        }
        (other @ ("OnFailure" | "Never"), false) => {
            let why = format!(r#"Unsupported value: {other:?}: supported values: "Always""#);
            Some(cause(NOT_SUPPORTED, field, why))
        }
        _ => None,
    }
}

fn list<'a>(of: &'a Value, field: &str) -> impl Iterator<Item = (usize, &'a Value)> + use<'a> {
    let items = of.get(field).and_then(Value::as_array);
    items.into_iter().flatten().enumerate()
}

fn invalid(field: String, value: &Value, why: &str) -> Cause {
    cause(INVALID, field, format!("Invalid value: {value}: {why}"))
}

/// Checks a name, and that it is not among `names` already. Returns the name if it is good.
fn named<'a>(
    of: &'a Value,
    field: &str,
    names: &mut HashSet<&'a str>,
    causes: &mut Vec<Cause>,
) -> Option<&'a str> {
    // A missing name is told by the schema.
    let name = of.get("name")?.as_str()?;
    if name.is_empty() {
        causes.push(cause(REQUIRED, field, "Required value"));
        return None;
    }
    if !is_label(name) {
        let why = match name {
            long if long.len() > 63 => "must be no more than 63 characters",
            dotted if is_subdomain(dotted) => "must not contain dots",
            _ => LABEL_RULE,
        };
        causes.push(invalid(field.to_owned(), &of["name"], why));
        return None;
    }
    if !names.insert(name) {
        let why = format!("Duplicate value: {name:?}");
        causes.push(cause(DUPLICATE, field, why));
        return None;
    }
    Some(name)
}

fn ports(container: &Value, here: &str, causes: &mut Vec<Cause>) {
    let mut names = HashSet::new();
    for (at, port) in list(container, "ports") {
        if causes.len() > MOST {
            return;
        }
        let field = |name: &str| format!("{here}.ports[{at}].{name}");
        let name = port.get("name").and_then(Value::as_str);
        if let Some(name) = name.filter(|name| !name.is_empty() && !names.insert(*name)) {
            let why = format!("Duplicate value: {name:?}");
            causes.push(cause(DUPLICATE, field("name"), why));
        }
        for name in ["containerPort", "hostPort"] {
            let number = port.get(name).and_then(Value::as_i64);
            if number.is_some_and(|number| number != 0 && !(1..=65_535).contains(&number)) {
                let why = "must be between 1 and 65535, inclusive";
                causes.push(invalid(field(name), &port[name], why));
            }
        }
    }
}

fn mounts(container: &Value, here: &str, volumes: &HashSet<&str>, causes: &mut Vec<Cause>) {
    let mut paths = HashSet::new();
    for (at, mount) in list(container, "volumeMounts") {
        if causes.len() > MOST {
            return;
        }
        let text = |name: &str| mount.get(name).and_then(Value::as_str);
        let field = |name: &str| format!("{here}.volumeMounts[{at}].{name}");
        if let Some(name) = text("name").filter(|name| !volumes.contains(name)) {
            let why = format!("Not found: {name:?}");
            causes.push(cause(NOT_FOUND, field("name"), why));
        }
        if text("mountPath").is_some_and(|path| !paths.insert(path)) {
            let path = &mount["mountPath"];
            causes.push(invalid(field("mountPath"), path, "must be unique"));
        }
    }
}

/// Checks that a container asks for no more than its limits allow.
fn resources(resources: &Value, here: &str, causes: &mut Vec<Cause>) {
    let requests = resources.get("requests").and_then(Value::as_object);
    for (resource, asked) in requests.into_iter().flatten() {
        let is_native = !resource.contains('/') || resource.contains("kubernetes.io/");
        let may_be_less = is_native && !resource.starts_with("hugepages-");
        let amount = |value: &Value| billionths(value.as_str().unwrap_or_default());
        let Some(limit) = resources["limits"].get(resource) else {
            if !may_be_less {
                let why = "Required value: Limit must be set for non overcommitable resources";
                causes.push(cause(REQUIRED, format!("{here}.resources.limits"), why));
            }
            continue;
        };
        let Some((less, most)) = amount(asked).zip(amount(limit)) else {
            continue;
        };
        let rule = match may_be_less {
            true if less > most => "less than or equal to",
            false if less != most => "equal to",
            _ => continue,
        };
        let shown = limit.as_str().unwrap_or_default();
        let why = format!("must be {rule} {resource} limit of {shown}");
        causes.push(invalid(format!("{here}.resources.requests"), asked, &why));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(spec: &Value, claimed: &[&str]) -> Vec<String> {
        let causes = faults(spec, "spec", claimed).into_iter();
        causes.map(|cause| cause.field).collect()
    }

    #[test]
    fn what_is_right_is_not_refused() {
        let spec = json!({
            "volumes": [{ "name": "v" }],
            "containers": [
                {
                    "name": "a",
                    "ports": [{ "containerPort": 1 }, { "containerPort": 2, "name": "" }],
                    "volumeMounts": [
                        { "name": "v", "mountPath": "/v" }, { "name": "claim", "mountPath": "/c" },
                    ],
                    "resources": {
                        "requests": { "cpu": "500m", "memory": "1Gi", "x.y/z": "1" },
                        "limits": { "cpu": "1", "memory": "1024Mi", "x.y/z": "1" },
                    },
                },
                { "name": "b", "resources": { "requests": { "cpu": "1" } } },
            ],
            "initContainers": [{ "name": "c", "restartPolicy": "Always", "startupProbe": {} }],
        });
        assert_eq!(fields(&spec, &["claim"]), [""; 0]);
        let mounted = "spec.containers[0].volumeMounts[1].name";
        assert_eq!(fields(&spec, &[]), [mounted]);
        // What is of a wrong type is left to the schema.
        for odd in [
            json!("x"),
            json!({ "containers": [1, { "name": 2, "ports": "x" }] }),
        ] {
            assert_eq!(fields(&odd, &[]), [""; 0]);
        }
    }

    #[test]
    fn an_empty_name_is_none() {
        let named = json!([{ "name": "" }]);
        let spec = json!({ "volumes": named, "containers": named });
        let expected = ["spec.volumes[0].name", "spec.containers[0].name"];
        assert_eq!(fields(&spec, &[]), expected);
    }

    #[test]
    fn the_name_of_a_volume_that_is_wrong_is_not_found() {
        let spec = json!({
            "volumes": [{ "name": "V" }],
            "containers": [{ "name": "c", "volumeMounts": [{ "name": "V", "mountPath": "/" }] }],
        });
        let expected = [
            "spec.volumes[0].name",
            "spec.containers[0].volumeMounts[0].name",
        ];
        assert_eq!(fields(&spec, &[]), expected);
    }
}
