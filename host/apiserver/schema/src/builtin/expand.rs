//! Writes a definition as one schema without references, with its defaults.
//!
//! Owns what an `openAPIV3Schema` says in another way than the documents of a real server:
//! quantities, open objects, and when a missing field is an error. Must not know single kinds.
//!
//! A zero default in the documents is what Go prints for a field without `omitempty`. For a
//! required text or number outside of the status it is left out here, because the server refuses
//! that zero: the field is reported as missing.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::table::{definition, is_recursive};
use crate::node::REPEATABLE;

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
/// An object of a type that the server does not know. It is owned as a whole.
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";
/// The definitions nest less deeply; a deeper one would be a circle that is not found.
const DEPTH: usize = 40;

/// By definition and field: the defaults that kube-apiserver sets in code. Null: no default.
static DEFAULTS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    // The table is embedded and a test parses it, so the result is never empty.
    serde_json::from_str(include_str!("defaults.json")).unwrap_or_default()
});

/// By definition: the field that kube-apiserver requires in code only.
const REQUIRED: [(&str, &str); 2] = [
    ("io.k8s.api.core.v1.Container", "image"),
    ("io.k8s.api.core.v1.EphemeralContainer", "image"),
];

/// By definition: the lists, times and texts that Go prints as null when they are not set.
pub(crate) const NULLS: [(&str, &[&str]); 17] = [
    (
        "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerStatus",
        &["currentMetrics"],
    ),
    (
        "io.k8s.api.core.v1.AzureFilePersistentVolumeSource",
        &["secretNamespace"],
    ),
    ("io.k8s.api.core.v1.ContainerImage", &["names"]),
    (
        "io.k8s.api.core.v1.Event",
        &["eventTime", "firstTimestamp", "lastTimestamp"],
    ),
    ("io.k8s.api.core.v1.LimitRangeSpec", &["limits"]),
    ("io.k8s.api.core.v1.ProjectedVolumeSource", &["sources"]),
    (
        "io.k8s.api.core.v1.TypedLocalObjectReference",
        &["apiGroup"],
    ),
    ("io.k8s.api.core.v1.TypedObjectReference", &["apiGroup"]),
    (
        "io.k8s.api.discovery.v1.EndpointSlice",
        &["endpoints", "ports"],
    ),
    (
        "io.k8s.api.events.v1.Event",
        &["deprecatedFirstTimestamp", "deprecatedLastTimestamp"],
    ),
    (
        "io.k8s.api.flowcontrol.v1.ResourcePolicyRule",
        &["namespaces"],
    ),
    ("io.k8s.api.rbac.v1.ClusterRole", &["rules"]),
    ("io.k8s.api.rbac.v1.Role", &["rules"]),
    (
        "io.k8s.api.resource.v1.AllocatedDeviceStatus",
        &["conditions"],
    ),
    ("io.k8s.api.resource.v1.DeviceClaim", &["requests"]),
    ("io.k8s.api.storage.v1.CSINodeDriver", &["topologyKeys"]),
    ("io.k8s.api.storage.v1.CSINodeSpec", &["drivers"]),
];

/// By definition: the lists in which kube-apiserver does not look for items with the same keys.
const REPEATABLES: [(&str, &[&str]); 5] = [
    ("io.k8s.api.core.v1.Container", &["env", "ports"]),
    ("io.k8s.api.core.v1.EphemeralContainer", &["env", "ports"]),
    // A node has several addresses of a type.
    ("io.k8s.api.core.v1.NodeStatus", &["addresses"]),
    (
        "io.k8s.api.core.v1.PodSpec",
        &["hostAliases", "imagePullSecrets"],
    ),
    ("io.k8s.api.core.v1.ServiceAccount", &["secrets"]),
];

/// The position of a schema within a kind.
#[derive(Clone, Copy)]
struct Place {
    root: bool,
    /// Within the status, which controllers write and the server hardly checks.
    status: bool,
    depth: usize,
}

impl Place {
    fn below(self) -> Place {
        Place {
            root: false,
            depth: self.depth + 1,
            ..self
        }
    }
}

/// Returns the schema of a kind, without type and metadata.
pub(super) fn root(name: &str) -> Value {
    named(
        name,
        Place {
            root: true,
            status: false,
            depth: 0,
        },
    )
}

/// Returns the schema of a definition that is a part of kinds.
pub(super) fn part(name: &str) -> Value {
    named(
        name,
        Place {
            root: false,
            status: false,
            depth: 0,
        },
    )
}

fn named(name: &str, place: Place) -> Value {
    match name {
        QUANTITY => return json!({ "format": "quantity" }),
        INT_OR_STRING => return json!({ "x-kubernetes-int-or-string": true }),
        RAW_EXTENSION => {
            let mut schema = open();
            schema["x-kubernetes-map-type"] = json!("atomic");
            return schema;
        }
        _ => {}
    }
    let found = definition(name).filter(|_| place.depth < DEPTH && !is_recursive(name));
    let Some(found) = found.and_then(Value::as_object) else {
        return open();
    };
    let mut schema = expand(found, place);
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let required = found.get("required").and_then(Value::as_array);
        set_defaults(name, properties, required, place);
        let lists = REPEATABLES.iter().filter(|(of, _)| *of == name);
        for list in lists.flat_map(|(_, lists)| *lists) {
            if let Some(schema) = properties.get_mut(*list).and_then(Value::as_object_mut) {
                schema.insert(REPEATABLE.to_owned(), json!(true));
            }
        }
    }
    require(name, &mut schema);
    if place.status {
        schema.remove("required");
    }
    Value::Object(schema)
}

/// Requires the fields of a definition that the documents call optional and the server does not.
fn require(name: &str, schema: &mut Map<String, Value>) {
    for (_, field) in REQUIRED.iter().filter(|(of, _)| *of == name) {
        let required = schema.entry("required").or_insert_with(|| json!([]));
        if let Some(required) = required.as_array_mut() {
            required.push(json!(field));
        }
    }
}

fn open() -> Value {
    json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Sets the defaults of a definition's fields.
fn set_defaults(
    name: &str,
    properties: &mut Map<String, Value>,
    required: Option<&Vec<Value>>,
    place: Place,
) {
    for field in required.into_iter().flatten().filter_map(Value::as_str) {
        let schema = properties.get_mut(field).filter(|_| !place.status);
        let Some(schema) = schema.and_then(Value::as_object_mut) else {
            continue;
        };
        if schema
            .get("default")
            .is_some_and(|zero| *zero == json!("") || *zero == json!(0))
        {
            schema.remove("default");
        }
    }
    let own = DEFAULTS.get(name).and_then(Value::as_object);
    for (field, default) in own.into_iter().flatten() {
        if let Some(schema) = properties.get_mut(field).and_then(Value::as_object_mut) {
            schema.remove("default");
            if !default.is_null() {
                schema.insert("default".to_owned(), default.clone());
            }
        }
    }
    let nulls = NULLS.iter().filter(|(of, _)| *of == name);
    for field in nulls.flat_map(|(_, fields)| *fields) {
        if let Some(schema) = properties.get_mut(*field).and_then(Value::as_object_mut) {
            schema.insert("nullable".to_owned(), json!(true));
            schema.insert("default".to_owned(), Value::Null);
        }
    }
}

/// Writes the keywords of a schema that determine structure or validate.
fn expand(schema: &Map<String, Value>, place: Place) -> Map<String, Value> {
    let referred = schema.get("$ref").and_then(Value::as_str);
    let mut out = match referred.map(|name| named(name, place.below())) {
        Some(Value::Object(part)) => part,
        _ => Map::new(),
    };
    for (keyword, value) in schema {
        let written = match (keyword.as_str(), value) {
            ("properties", Value::Object(fields)) => properties(fields, place),
            ("items" | "additionalProperties", Value::Object(inner)) => {
                Value::Object(expand(inner, place.below()))
            }
            ("enum", _) if place.status => continue,
            (
                "$ref"
                | "x-kubernetes-group-version-kind"
                | "x-kubernetes-patch-merge-key"
                | "x-kubernetes-patch-strategy"
                | "x-kubernetes-unions",
                _,
            ) => continue,
            (_, value) => value.clone(),
        };
        out.insert(keyword.clone(), written);
    }
    let bare = |keyword: &str| !out.contains_key(keyword);
    let anything = referred.is_none() && bare("type");
    let any_object = out.get("type") == Some(&json!("object"))
        && bare("properties")
        && bare("additionalProperties");
    if anything || any_object {
        out.insert(
            "x-kubernetes-preserve-unknown-fields".to_owned(),
            json!(true),
        );
    }
    out
}

fn properties(fields: &Map<String, Value>, place: Place) -> Value {
    let shared = |name: &str| place.root && matches!(name, "apiVersion" | "kind" | "metadata");
    let own = fields.iter().filter(|(name, _)| !shared(name));
    let written = own.map(|(name, field)| {
        let below = Place {
            status: place.status || (place.root && name == "status"),
            ..place.below()
        };
        let field = field.as_object().map(|field| expand(field, below));
        (name.clone(), Value::Object(field.unwrap_or_default()))
    });
    Value::Object(written.collect())
}
