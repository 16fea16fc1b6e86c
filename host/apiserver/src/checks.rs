//! What the code of built-in kinds refuses, besides their schemas: values that exclude each other,
//! numbers out of range, names of a wrong form.
//!
//! Owns the walk through an object by the definitions of its kind; the modules own the rules of
//! each definition, for the mistakes that are made often. Follows k8s.io/kubernetes
//! `pkg/apis/*/validation`, whose fields and words they have. Must not know requests.

mod cluster;
mod network;
mod pods;
mod storage;
mod told;
mod workloads;

use std::borrow::Cow;

use serde_json::Value;
use vmhost_schema::definition;

use crate::meta;
use crate::owners::{FOREGROUND, ORPHAN};
use crate::status::{Cause, INVALID, cause};
use told::{Rule, Told};

/// The prefix of the names of definitions that have rules.
const PREFIX: &str = "io.k8s.api.";

const STATEFUL_SET: &str = "io.k8s.api.apps.v1.StatefulSet";

/// The finalizers of Kubernetes.
const STANDARD: [&str; 3] = [FOREGROUND, ORPHAN, "kubernetes"];

/// The kinds whose finalizers Go does not look at, after [`PREFIX`]: those of groups, and one.
const ANY_FINALIZER: [&str; 5] = [
    "admissionregistration.",
    "coordination.",
    "core.v1.Event",
    "node.",
    "policy.",
];

/// The fields of an object that are not looked at: they have checks of their own.
const APART: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Returns what is wrong with an object of the definition `root`. Fields that are as in `live`, the
/// object that is replaced, are not looked at.
pub(crate) fn faults(root: &str, live: Option<&Value>, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let properties = definition(root).and_then(|root| root.get("properties"));
    let fields = new.as_object().into_iter().flatten();
    for (name, value) in fields.filter(|(name, _)| !APART.contains(&name.as_str())) {
        let is_same = live.and_then(|live| live.get(name)) == Some(value);
        let schema = properties.and_then(|properties| properties.get(name));
        if let Some(schema) = schema.filter(|_| !is_same) {
            let value = match name.as_str() {
                "spec" if root == STATEFUL_SET => workloads::with_claims(value),
                _ => Cow::Borrowed(value),
            };
            visit(schema, &value, name, &mut causes);
        }
    }
    if live.is_none() {
        check(root, new, "", &mut causes);
    }
    let is_free = |kind: &str| ANY_FINALIZER.iter().any(|free| kind.starts_with(free));
    if root.strip_prefix(PREFIX).is_some_and(|kind| !is_free(kind)) {
        causes.extend(finalizers(live, new));
    }
    causes
}

/// Returns the finalizers that are no names of Kubernetes, and not of the form `domain/name`.
fn finalizers(live: Option<&Value>, new: &Value) -> Vec<Cause> {
    let list = meta::get(new, "finalizers");
    if live.and_then(|live| meta::get(live, "finalizers")) == list {
        return Vec::new();
    }
    let texts = list.and_then(Value::as_array).into_iter().flatten();
    let texts = texts.filter_map(Value::as_str).enumerate();
    let wrong = texts.filter(|(_, name)| !name.contains('/') && !STANDARD.contains(name));
    let told = wrong.map(|(at, name)| {
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        let why = format!("Invalid value: {name:?}: {why}");
        cause(INVALID, format!("metadata.finalizers[{at}]"), why)
    });
    told.take(told::MOST).collect()
}

fn check(name: &str, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(rule) = name.strip_prefix(PREFIX).and_then(rule) {
        rule(value, &mut Told { path, causes });
    }
}

/// Visits a value, its items and its fields. What is of a wrong type is refused by the schema.
fn visit(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let (Some(items), Value::Array(list)) = (schema.get("items"), value) {
        if items.get("$ref").is_some() {
            for (at, item) in list.iter().enumerate() {
                visit(items, item, &format!("{path}[{at}]"), causes);
            }
        }
        return;
    }
    let (Some(name), Value::Object(fields)) = (schema["$ref"].as_str(), value) else {
        return;
    };
    check(name, value, path, causes);
    let properties = definition(name).and_then(|of| of.get("properties")?.as_object());
    for (field, value) in fields {
        let schema = properties.and_then(|properties| properties.get(field));
        let leads_on = |schema: &&Value| schema.get("$ref").is_some() || value.is_array();
        if let Some(schema) = schema.filter(leads_on) {
            visit(schema, value, &format!("{path}.{field}"), causes);
        }
    }
}

/// Returns the rule of a definition.
fn rule(name: &str) -> Option<Rule> {
    pods::rule(name)
        .or_else(|| workloads::rule(name))
        .or_else(|| network::rule(name))
        .or_else(|| storage::rule(name))
        .or_else(|| cluster::rule(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const POD: &str = "io.k8s.api.core.v1.Pod";

    fn fields(live: Option<&Value>, new: &Value) -> Vec<String> {
        let causes = faults(POD, live, new).into_iter();
        causes.map(|cause| cause.field).collect()
    }

    #[test]
    fn what_stays_is_not_looked_at() {
        let probe = json!({ "exec": {}, "tcpSocket": { "port": 0 } });
        let container = json!({ "name": "c", "livenessProbe": probe, "env": [{ "name": "" }] });
        let pod = json!({ "spec": { "containers": [container], "hostname": "A" } });
        let expected = [
            "spec.hostname",
            "spec.containers[0].env[0].name",
            "spec.containers[0].livenessProbe.tcpSocket",
            "spec.containers[0].livenessProbe.tcpSocket.port",
        ];
        assert_eq!(fields(None, &pod), expected);
        assert_eq!(fields(Some(&pod), &pod), [""; 0]);
        for odd in [
            json!("x"),
            json!({ "spec": { "containers": { "name": 1 } } }),
        ] {
            assert_eq!(fields(None, &odd), [""; 0]);
        }
    }

    #[test]
    fn some_kinds_have_any_finalizer() {
        let new = json!({ "metadata": { "finalizers": ["noslash"] } });
        assert_eq!(fields(None, &new), ["metadata.finalizers[0]"]);
        assert_eq!(fields(Some(&new), &new), [""; 0]);
        for kind in ["core.v1.Event", "coordination.v1.Lease"] {
            let causes = faults(&format!("{PREFIX}{kind}"), None, &new);
            assert!(
                causes
                    .iter()
                    .all(|cause| !cause.field.contains("finalizers"))
            );
        }
    }

    #[test]
    fn every_rule_is_of_a_definition_that_exists() {
        let known = vmhost_schema::names().filter(|name| {
            let short = name.strip_prefix(PREFIX);
            short.and_then(rule).is_some()
        });
        assert_eq!(
            known.count(),
            pods::COUNT + workloads::COUNT + network::COUNT + storage::COUNT + cluster::COUNT
        );
    }
}
