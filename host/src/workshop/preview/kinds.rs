//! Teaches the overlay a kind before the first write to it: from its CustomResourceDefinition, or
//! else from the server's OpenAPI document, or else only its name.
//!
//! The overlay already knows the built-in kinds. This module must not know objects.

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};
use vmhost_apiserver::Overlay;
use vmhost_cluster::Resource;
use vmhost_core::Gvk;

use super::base::Base;

/// The keywords of a schema that decide how objects are merged.
const MERGING: [&str; 3] = [
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];

/// A value that is an integer or a string.
const EITHER: &str = "x-kubernetes-int-or-string";

/// Lets the overlay serve a kind. Returns what the overlay does not know about it.
pub(super) async fn learn(base: &Base, overlay: &Overlay, kind: &Gvk) -> Result<Option<String>> {
    let (group, version, name) = (&*kind.group, &*kind.version, &*kind.kind);
    if overlay.serves(group, version, name) {
        return Ok(None);
    }
    let Some(resource) = base.resource(kind).await? else {
        bail!("the cluster does not serve {kind}");
    };
    let custom = format!("{}.{group}", resource.plural);
    if group.contains('.')
        && let Some(definition) = base.definition(&custom).await
    {
        overlay.define(definition);
    }
    if overlay.serves(group, version, name) {
        return Ok(None);
    }
    let document = base.schemas(kind).await.unwrap_or_default();
    let schema = merging(&document, kind);
    let left_out = match schema {
        Some(_) => "its defaults and its rules",
        None => "its schema: lists are replaced as a whole",
    };
    overlay.define(definition(&resource, schema));
    Ok(Some(format!("{kind}: {left_out}")))
}

/// Returns a definition that only says how objects of a kind are named and merged.
fn definition(resource: &Resource, schema: Option<Value>) -> Value {
    let Gvk {
        group,
        version,
        kind,
    } = &resource.kind;
    let mut subresources = Map::new();
    if resource.subresources.iter().any(|name| name == "status") {
        subresources.insert("status".into(), json!({}));
    }
    let open = || json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{group}", resource.plural), "uid": kind },
        "spec": {
            "group": group,
            "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
            "names": {
                "plural": resource.plural, "singular": kind.to_lowercase(), "kind": kind,
                "listKind": format!("{kind}List"),
            },
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": subresources,
                "schema": { "openAPIV3Schema": schema.unwrap_or_else(open) },
            }],
        },
        "status": { "conditions": [{ "type": "Established", "status": "True" }] },
    })
}

/// Returns the part of a schema in an OpenAPI document that decides how objects of a kind are
/// merged. Fields that the result does not name are kept.
fn merging(document: &Value, kind: &Gvk) -> Option<Value> {
    let schemas = document.pointer("/components/schemas")?.as_object()?;
    let named = |of: &Value| {
        let text = |name: &str| of.get(name).and_then(Value::as_str);
        let (group, version) = (text("group"), text("version"));
        group == Some(kind.group.as_str())
            && version == Some(kind.version.as_str())
            && text("kind") == Some(kind.kind.as_str())
    };
    let is_it = |schema: &&Value| {
        let names = schema.get("x-kubernetes-group-version-kind");
        let names = names.and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(named))
    };
    let found = schemas.values().find(is_it)?;
    let mut schema = reduced(found, schemas, &[]);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for name in ["apiVersion", "kind", "metadata"] {
            properties.remove(name);
        }
    }
    schema["type"] = json!("object");
    Some(schema)
}

/// Reduces a schema to the part that decides how objects are merged, and replaces its references.
/// `inside` are the references that led here: a schema that contains itself is cut off there.
fn reduced(schema: &Value, schemas: &Map<String, Value>, inside: &[&str]) -> Value {
    let open = || json!({ "x-kubernetes-preserve-unknown-fields": true });
    if let Some(name) = reference(schema) {
        return match schemas.get(name).filter(|_| !inside.contains(&name)) {
            Some(target) => reduced(target, schemas, &[inside, &[name]].concat()),
            None => open(),
        };
    }
    if is_int_or_string(schema) {
        return json!({ EITHER: true });
    }
    let below = |schema: &Value| reduced(schema, schemas, inside);
    let mut out = Map::new();
    for keyword in MERGING {
        let value = schema.get(keyword).cloned();
        out.extend(value.map(|value| (keyword.to_owned(), value)));
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => {
            out.insert("type".into(), json!("array"));
            let items = schema.get("items").map_or_else(open, below);
            out.insert("items".into(), items);
            keyed(&mut out, schema.get("items"), schemas);
        }
        Some("object") => {
            out.insert("type".into(), json!("object"));
            let properties = schema.get("properties").and_then(Value::as_object);
            let additional = schema.get("additionalProperties");
            match (properties, additional.filter(|of| of.is_object())) {
                (Some(properties), _) => {
                    let properties = properties.iter();
                    let properties = properties.map(|(name, of)| (name.clone(), below(of)));
                    out.insert("properties".into(), Value::Object(properties.collect()));
                    out.extend(open().as_object().cloned().unwrap_or_default());
                }
                (None, Some(additional)) => {
                    out.insert("additionalProperties".into(), below(additional));
                }
                (None, None) => out.extend(open().as_object().cloned().unwrap_or_default()),
            }
        }
        Some(scalar) => {
            out.insert("type".into(), json!(scalar));
        }
        None => return open(),
    }
    Value::Object(out)
}

/// Gives the fields by which the items of a list are found their defaults. Fields without a default
/// become required.
fn keyed(list: &mut Map<String, Value>, items: Option<&Value>, schemas: &Map<String, Value>) {
    let keys = list.get("x-kubernetes-list-map-keys");
    let keys = keys.and_then(Value::as_array).cloned().unwrap_or_default();
    let target = |items| reference(items).and_then(|name| schemas.get(name));
    let items = items.map(|items| target(items).unwrap_or(items));
    let mut required = Vec::new();
    for key in keys.iter().filter_map(Value::as_str) {
        let property = items.and_then(|items| items.get("properties")?.get(key));
        let default = property.and_then(|property| property.get("default"));
        // The document has an empty default for every field of a built-in kind.
        let default = default.filter(|default| default.as_str().is_some_and(|of| !of.is_empty()));
        let reduced = list
            .get_mut("items")
            .and_then(|of| of.get_mut("properties"));
        match (reduced.and_then(|of| of.get_mut(key)), default) {
            (Some(reduced), Some(default)) => reduced["default"] = default.clone(),
            _ => required.push(key.to_owned()),
        }
    }
    if let Some(Value::Object(items)) = list.get_mut("items").filter(|_| !required.is_empty()) {
        items.insert("required".into(), json!(required));
    }
}

/// Returns the name of the schema that this schema refers to, directly, or in `allOf` beside a
/// default.
fn reference(schema: &Value) -> Option<&str> {
    let direct = schema.get("$ref");
    let direct = direct.or_else(|| match schema.get("allOf")?.as_array()?.as_slice() {
        [only] => only.get("$ref"),
        _ => None,
    });
    direct?.as_str()?.rsplit('/').next()
}

fn is_int_or_string(schema: &Value) -> bool {
    let either = schema.get("oneOf").or_else(|| schema.get("anyOf"));
    let types = either.and_then(Value::as_array);
    let is_string = |of: &Value| of.get("type") == Some(&json!("string"));
    schema.get(EITHER) == Some(&json!(true))
        || types.is_some_and(|types| types.iter().any(is_string))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        json!({ "components": { "schemas": {
            "g.Job": {
                "type": "object",
                "x-kubernetes-group-version-kind": [{ "group": "batch", "version": "v1", "kind": "Job" }],
                "properties": {
                    "apiVersion": { "type": "string" },
                    "metadata": { "allOf": [{ "$ref": "#/components/schemas/Meta" }], "default": {} },
                    "spec": { "allOf": [{ "$ref": "#/components/schemas/g.Spec" }], "default": {} },
                },
            },
            "Meta": { "type": "object" },
            "g.Spec": { "type": "object", "required": ["x"], "properties": {
                "x": { "type": "integer", "default": 7 },
                "max": { "oneOf": [{ "type": "integer" }, { "type": "string" }] },
                "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                "self": { "$ref": "#/components/schemas/g.Spec" },
                "ports": {
                    "type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": { "allOf": [{ "$ref": "#/components/schemas/g.Port" }], "default": {} },
                },
            } },
            "g.Port": { "type": "object", "properties": {
                "port": { "type": "integer", "default": null },
                "protocol": { "type": "string", "default": "TCP" },
                "name": { "type": "string", "default": "" },
            } },
        } } })
    }

    fn resource() -> Resource {
        Resource {
            kind: Gvk::new("batch", "v1", "Job"),
            plural: "jobs".into(),
            namespaced: true,
            subresources: vec!["status".into()],
        }
    }

    #[test]
    fn a_schema_is_reduced_to_what_merges() {
        let schema = merging(&document(), &resource().kind).unwrap();
        assert_eq!(schema.pointer("/properties/metadata"), None);
        let spec = |path: &str| schema.pointer(&format!("/properties/spec/properties/{path}"));
        assert_eq!(spec("x"), Some(&json!({ "type": "integer" })), "no default");
        assert_eq!(spec("max"), Some(&json!({ EITHER: true })));
        assert_eq!(spec("ports/items/required"), Some(&json!(["port"])));
        let protocol = spec("ports/items/properties/protocol/default");
        assert_eq!(protocol, Some(&json!("TCP")));
        assert_eq!(spec("ports/items/properties/name/default"), None);
        let open = json!({ "x-kubernetes-preserve-unknown-fields": true });
        assert_eq!(
            spec("self"),
            Some(&open),
            "a schema that contains itself ends"
        );
        assert!(merging(&document(), &Gvk::new("batch", "v2", "Job")).is_none());
    }

    #[test]
    fn an_overlay_serves_a_kind_of_which_only_its_schema_is_known() {
        for schema in [merging(&document(), &resource().kind), None] {
            let overlay = Overlay::default();
            overlay.define(definition(&resource(), schema));
            assert!(overlay.serves("batch", "v1", "Job"));
            assert!(overlay.bring(json!({
                "apiVersion": "batch/v1", "kind": "Job",
                "metadata": { "name": "x", "namespace": "a", "uid": "u", "resourceVersion": "7" },
                "spec": { "x": 1, "unknown": true, "ports": [{ "port": 1, "protocol": "UDP" }] },
            })));
            let untouched = overlay
                .untouched(("batch", "v1", "Job"), ("a", "x"))
                .unwrap();
            assert_eq!(
                untouched["spec"]["unknown"], true,
                "fields that are not named stay"
            );
        }
    }
}
