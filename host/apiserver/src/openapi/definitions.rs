//! The definitions that operations refer to: the kinds, their lists, and what all kinds share.
//!
//! The conversion to OpenAPI v2 drops what it cannot express, by the rules of
//! k8s.io/apiextensions-apiserver `controller/openapi/v2/conversion.go`. Must not know operations.

use serde_json::{Map, Value, json};
use vmhost_schema::OBJECT_META;

use super::info::{Dialect, KindInfo};
use super::published;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

const API_VERSION: &str = "The versioned schema of this representation of an object.";
const KIND: &str = "The REST resource that this object represents.";

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

fn object(kind: &KindInfo, dialect: Dialect) -> Value {
    let open = kind.schema.as_object().is_none_or(Map::is_empty);
    let mut out = if open {
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    } else {
        match dialect {
            Dialect::V2 => to_v2(&kind.schema),
            Dialect::V3 => kind.schema.clone(),
        }
    };
    // An open object has no properties in v2, because kubectl would consider them complete.
    let says_all = dialect == Dialect::V3 || out.get("properties").is_some();
    if says_all || !open {
        let properties = &mut out["properties"];
        properties["apiVersion"] = text(API_VERSION);
        properties["kind"] = text(KIND);
        properties["metadata"] = described(
            dialect,
            &format!("{META}.ObjectMeta"),
            "Standard object metadata.",
        );
        out["type"] = json!("object");
    }
    out["x-kubernetes-group-version-kind"] = group_version_kind(kind, "");
    out
}

fn list(kind: &KindInfo, dialect: Dialect) -> Value {
    json!({
        "description": format!("A list of {}.", kind.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": text(API_VERSION),
            "kind": text(KIND),
            "metadata": described(dialect, &format!("{META}.ListMeta"), "Standard list metadata."),
            "items": { "type": "array", "items": dialect.reference(&name(kind)) },
        },
        "x-kubernetes-group-version-kind": group_version_kind(kind, "List"),
    })
}

/// Converts a schema to v2. Drops what v2 cannot express, and what would be too strict without it.
fn to_v2(schema: &Value) -> Value {
    let Some(map) = schema.as_object() else {
        return json!({});
    };
    let flag = |name: &str| map.get(name) == Some(&json!(true));
    let (open, nullable) = (
        flag("x-kubernetes-preserve-unknown-fields"),
        flag("nullable"),
    );
    let loose = open || nullable || flag("x-kubernetes-int-or-string");
    let mut out = Map::new();
    for (name, value) in map {
        match name.as_str() {
            "anyOf"
            | "oneOf"
            | "not"
            | "allOf"
            | "nullable"
            | "default"
            | "x-kubernetes-validations" => {}
            "type" if loose => {}
            "items" | "properties" | "additionalProperties" if loose => {}
            "items" => {
                out.insert(name.clone(), to_v2(value));
            }
            "additionalProperties" if value.is_object() => {
                out.insert(name.clone(), to_v2(value));
            }
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                let converted: Map<String, Value> = properties
                    .map(|(name, value)| (name.clone(), to_v2(value)))
                    .collect();
                out.insert(name.clone(), Value::Object(converted));
            }
            _ => {
                out.insert(name.clone(), value.clone());
            }
        }
    }
    Value::Object(out)
}

fn common(dialect: Dialect) -> Map<String, Value> {
    let mut out = Map::new();
    let list_meta = format!("{META}.ListMeta");
    for name in [OBJECT_META, &list_meta, STATUS, DELETE_OPTIONS, PATCH] {
        published::add(&mut out, name, dialect);
    }
    out
}
