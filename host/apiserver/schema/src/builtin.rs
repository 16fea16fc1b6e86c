//! Schemas of kinds without a CustomResourceDefinition, as data in the same form.
//!
//! Owns the list types and map types for server-side apply, from the `+listType` markers of
//! k8s.io/api. All kinds share one schema for object metadata. The kinds with pod specs and pod
//! templates are in one table, `workloads.json`, generated from the OpenAPI of kube-apiserver 1.36
//! and its defaulting code; the table refers to shared parts with `$ref`. Must not know which kinds
//! are served.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::node::Node;
use crate::parse;

/// Returns the schema of a built-in kind, in the form of a CustomResourceDefinition's
/// `openAPIV3Schema`, without metadata.
pub fn builtin(group: &str, kind: &str) -> Option<Value> {
    let text = match (group, kind) {
        ("", "ConfigMap") => include_str!("builtin/configmap.json"),
        ("", "Secret") => include_str!("builtin/secret.json"),
        ("", "Namespace") => include_str!("builtin/namespace.json"),
        ("", "ServiceAccount") => include_str!("builtin/serviceaccount.json"),
        ("", "Event") => include_str!("builtin/event.json"),
        ("events.k8s.io", "Event") => include_str!("builtin/event-events.json"),
        ("coordination.k8s.io", "Lease") => include_str!("builtin/lease.json"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            include_str!("builtin/customresourcedefinition.json")
        }
        ("" | "apps" | "authorization.k8s.io", kind) => return workload(kind),
        _ => return None,
    };
    serde_json::from_str(text).ok()
}

/// Returns a schema of the table, with its references replaced.
fn workload(kind: &str) -> Option<Value> {
    static TABLE: LazyLock<Map<String, Value>> = LazyLock::new(|| {
        // The table is embedded and a test parses it, so the result is never empty.
        serde_json::from_str(include_str!("builtin/workloads.json")).unwrap_or_default()
    });
    TABLE.get(kind).map(|schema| expand(schema, &TABLE))
}

fn expand(schema: &Value, table: &Map<String, Value>) -> Value {
    match schema {
        Value::Object(map) => {
            let part = map
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|name| table.get(name));
            let mut out = match part.map(|part| expand(part, table)) {
                Some(Value::Object(part)) => part,
                _ => Map::new(),
            };
            // Fields beside the reference override the part: mostly a default.
            let own = map.iter().filter(|(key, _)| *key != "$ref");
            out.extend(own.map(|(key, value)| (key.clone(), expand(value, table))));
            Value::Object(out)
        }
        Value::Array(items) => items.iter().map(|item| expand(item, table)).collect(),
        other => other.clone(),
    }
}

/// The text of ObjectMeta's schema.
pub const OBJECT_META: &str = include_str!("builtin/objectmeta.json");

/// Returns ObjectMeta as a node.
pub fn object_meta() -> &'static Node {
    static NODE: LazyLock<Node> = LazyLock::new(|| {
        let parsed = serde_json::from_str(OBJECT_META)
            .ok()
            .and_then(|value| parse::structural(&value).ok());
        let mut node = parsed.unwrap_or_default();
        node.embedded = false;
        node
    });
    &NODE
}
