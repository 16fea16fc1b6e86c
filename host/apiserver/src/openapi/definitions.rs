//! The definitions that operations refer to: the kinds, their lists, and what all kinds share.
//!
//! The conversion to OpenAPI v2 drops what it cannot express, by the rules of
//! k8s.io/apiextensions-apiserver `controller/openapi/v2/conversion.go`. Must not know operations.

use serde_json::{Map, Value, json};
use vmhost_schema::OBJECT_META;

use super::info::{Dialect, KindInfo};
use super::published;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

// The texts of k8s.io/apimachinery, which `kubectl explain` prints.
const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an \
    object. Servers should convert recognized schemas to the latest internal value, and may reject \
    unrecognized values. More info: https://git.k8s.io/community/contributors/devel/\
    sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. \
    Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In \
    CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/\
    api-conventions.md#types-kinds";
const OBJECT_METADATA: &str = "Standard object's metadata. More info: https://git.k8s.io/community/\
    contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_METADATA: &str = "Standard list metadata. More info: https://git.k8s.io/community/\
    contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// Returns the name of a definition: `io.k8s.api.core.v1.ConfigMap`, or the group reversed:
/// `dev.vmhost.cases.v1.Widget`.
pub(super) fn name(kind: &KindInfo) -> String {
    if let Some(name) = kind.definition() {
        return name.to_owned();
    }
    let (group, version, name) = (&kind.group, &kind.version, &kind.kind);
    match group.as_str() {
        "" => format!("io.k8s.api.core.{version}.{name}"),
        "apiextensions.k8s.io" => {
            format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{name}")
        }
        group if !group.contains('.') => format!("io.k8s.api.{group}.{version}.{name}"),
        group if group.ends_with(".k8s.io") => {
            format!(
                "io.k8s.api.{}.{version}.{name}",
                group.trim_end_matches(".k8s.io")
            )
        }
        group => {
            let reversed: Vec<&str> = group.split('.').rev().collect();
            format!("{}.{version}.{name}", reversed.join("."))
        }
    }
}

pub(super) fn list_name(kind: &KindInfo) -> String {
    format!("{}List", name(kind))
}

pub(super) fn definitions(kinds: &[&KindInfo], dialect: Dialect) -> Map<String, Value> {
    let mut out = common(dialect);
    for kind in kinds {
        match kind.definition() {
            Some(name) => published::add(&mut out, name, dialect),
            None => {
                out.insert(name(kind), object(kind, dialect));
            }
        }
        out.insert(list_name(kind), list(kind, dialect));
    }
    out
}

fn group_version_kind(kind: &KindInfo, suffix: &str) -> Value {
    json!([{ "group": kind.group, "version": kind.version, "kind": format!("{}{suffix}", kind.kind) }])
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// Returns a reference, with a description if the dialect allows both.
fn described(dialect: Dialect, reference: &str, description: &str) -> Value {
    let mut out = dialect.reference(reference);
    match dialect {
        Dialect::V2 => out["description"] = json!(description),
        Dialect::V3 => out = json!({ "description": description, "allOf": [out] }),
    }
    out
}

/// Returns the definition of a custom kind, by the rules of k8s.io/apiextensions-apiserver
/// `controller/openapi/builder/builder.go`.
fn object(kind: &KindInfo, dialect: Dialect) -> Value {
    let has_schema = kind.schema.as_object().is_some_and(|map| !map.is_empty());
    let is_open = is_true(&kind.schema, PRESERVE);
    let mut out = match dialect {
        // kubectl would consider properties complete, in v2 also beside the mark of an open object.
        _ if !has_schema => json!({ "type": "object" }),
        Dialect::V2 if is_open => json!({ "type": "object" }),
        Dialect::V2 => to_v2(&kind.schema),
        Dialect::V3 => kind.schema.clone(),
    };
    if has_schema && !(is_open && dialect == Dialect::V2) {
        add_own(&mut out, dialect, API_VERSION, KIND);
        add_embedded(&mut out, dialect);
        out["type"] = json!("object");
    }
    out["x-kubernetes-group-version-kind"] = group_version_kind(kind, "");
    out
}

fn is_true(schema: &Value, mark: &str) -> bool {
    schema.get(mark) == Some(&json!(true))
}

/// Adds the fields that every object has.
fn add_own(schema: &mut Value, dialect: Dialect, api_version: &str, kind: &str) {
    let properties = &mut schema["properties"];
    properties["apiVersion"] = text(api_version);
    properties["kind"] = text(kind);
    let meta = format!("{META}.ObjectMeta");
    properties["metadata"] = described(dialect, &meta, OBJECT_METADATA);
}

/// Adds the fields that every object has to the objects within this one.
fn add_embedded(schema: &mut Value, dialect: Dialect) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (_, field) in properties.into_iter().flatten() {
        add_embedded_self(field, dialect);
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(keyword).filter(|inner| inner.is_object()) {
            add_embedded_self(inner, dialect);
        }
    }
}

fn add_embedded_self(schema: &mut Value, dialect: Dialect) {
    add_embedded(schema, dialect);
    let is_open = is_true(schema, PRESERVE) && dialect == Dialect::V2;
    if is_true(schema, "x-kubernetes-embedded-resource") && !is_open {
        let version = format!(
            "apiVersion defines the versioned schema of this representation of an object. More \
             info: {CONVENTIONS}#resources"
        );
        let kind = format!(
            "kind is a string value representing the type of this object. In CamelCase. More \
             info: {CONVENTIONS}#types-kinds"
        );
        add_own(schema, dialect, &version, &kind);
        let mut required = schema["required"].as_array().cloned().unwrap_or_default();
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|known| known == name) {
                required.push(json!(name));
            }
        }
        schema["required"] = Value::Array(required);
    }
}

fn list(kind: &KindInfo, dialect: Dialect) -> Value {
    let (name, plural) = (&kind.kind, &kind.plural);
    json!({
        "description": format!("{name}List is a list of {name}"),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": text(API_VERSION),
            "kind": text(KIND),
            "metadata": described(dialect, &format!("{META}.ListMeta"), LIST_METADATA),
            "items": {
                "description": format!("List of {plural}. More info: {CONVENTIONS}"),
                "type": "array",
                "items": dialect.reference(&self::name(kind)),
            },
        },
        "x-kubernetes-group-version-kind": group_version_kind(kind, "List"),
    })
}

/// Converts a schema to v2. Drops what v2 cannot express, and what kubectl would take too strictly.
fn to_v2(schema: &Value) -> Value {
    let Some(map) = schema.as_object() else {
        return json!({});
    };
    let (is_open, nullable) = (is_true(schema, PRESERVE), is_true(schema, "nullable"));
    let hides_fields = is_open || nullable;
    let has_items = map.contains_key("items") && !hides_fields;
    let is_of = |name: &str| map.get("type").is_some_and(|of| of == name);
    let mut out = Map::new();
    for (keyword, value) in map {
        match (keyword.as_str(), value) {
            ("anyOf" | "oneOf" | "not" | "allOf" | "nullable", _) => {}
            ("items" | "properties", _) if hides_fields => {}
            ("type", _) if nullable || (is_open && is_of("object")) => {}
            ("type", _) if is_of("array") && !has_items => {}
            ("items" | "additionalProperties", Value::Object(_)) => {
                out.insert(keyword.clone(), to_v2(value));
            }
            ("properties", Value::Object(fields)) => {
                let fields = fields.iter();
                let converted: Map<String, Value> = fields
                    .map(|(name, value)| (name.clone(), to_v2(value)))
                    .collect();
                out.insert(keyword.clone(), Value::Object(converted));
            }
            ("required", Value::Array(names)) => {
                let names = still_required(schema, names);
                if !names.is_empty() {
                    out.insert(keyword.clone(), Value::Array(names));
                }
            }
            _ => {
                out.insert(keyword.clone(), value.clone());
            }
        }
    }
    Value::Object(out)
}

/// Returns the required fields without those that may be null, which v2 does not know.
fn still_required(schema: &Value, names: &[Value]) -> Vec<Value> {
    if is_true(&schema["additionalProperties"], "nullable") {
        return Vec::new();
    }
    let may_be_null = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        is_true(&schema["properties"][name], "nullable")
    };
    let names = names.iter().filter(|name| !may_be_null(name));
    names.cloned().collect()
}

fn common(dialect: Dialect) -> Map<String, Value> {
    let mut out = Map::new();
    let list_meta = format!("{META}.ListMeta");
    for name in [OBJECT_META, &list_meta, STATUS, DELETE_OPTIONS, PATCH] {
        published::add(&mut out, name, dialect);
    }
    out
}
