//! Checks the declarations of a list that is a set or a map.
//!
//! Owns the rules on `x-kubernetes-list-type` of k8s.io/apiextensions-apiserver
//! `pkg/apis/apiextensions/validation`. Must not know other keywords.

use serde_json::{Map, Value, json};

use super::report::{Report, child};
use crate::node::{ListType, Node, Type};

pub(super) fn list_type(
    report: &mut Report,
    map: &Map<String, Value>,
    node: &mut Node,
    path: &str,
) {
    let keys: Vec<String> = map
        .get("x-kubernetes-list-map-keys")
        .and_then(Value::as_array)
        .map(|keys| {
            keys.iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        })
        .unwrap_or_default();
    let keys_at = child(path, "x-kubernetes-list-map-keys");
    let Some(list_type) = map.get("x-kubernetes-list-type") else {
        if !keys.is_empty() {
            report.required(
                child(path, "x-kubernetes-list-type"),
                "must be map if x-kubernetes-list-map-keys is non-empty",
            );
        }
        return;
    };
    let at = child(path, "x-kubernetes-list-type");
    if node.kind != Some(Type::Array) {
        report.invalid(
            child(path, "type"),
            &json!(node.kind.map_or("", Type::name)),
            "must be array if x-kubernetes-list-type is specified",
        );
        return;
    }
    let items = node.items.as_deref();
    match list_type.as_str() {
        Some("atomic") => {}
        Some("set") => {
            // Items that merge by field or by item cannot be identified by their value.
            let granular = items.and_then(|items| match items.kind {
                Some(Type::Object) if !items.atomic_map => Some("map"),
                Some(Type::Array) if items.list_type != ListType::Atomic => Some("list"),
                _ => None,
            });
            if items.is_some_and(|items| items.nullable) {
                report.forbidden(
                    child(path, "items.nullable"),
                    "cannot be nullable when x-kubernetes-list-type is set",
                );
            }
            if let Some(what) = granular {
                let keyword = format!("x-kubernetes-{what}-type");
                let said = map
                    .get("items")
                    .and_then(|items| items.get(&keyword))
                    .unwrap_or(&Value::Null);
                report.invalid(
                    child(path, &format!("items.{keyword}")),
                    said,
                    "must be atomic as item of a list with x-kubernetes-list-type=set",
                );
            }
            node.list_type = ListType::Set;
        }
        Some("map") => {
            if keys.is_empty() {
                report.required(
                    keys_at,
                    "must not be empty if x-kubernetes-list-type is map",
                );
                return;
            }
            if let Some(items) = items {
                map_keys(report, items, &keys, path);
            }
            node.list_type = ListType::Map(keys);
            return;
        }
        _ => report.unsupported(at, list_type, r#""atomic", "set", "map""#),
    }
    if !keys.is_empty() {
        report.invalid(
            child(path, "x-kubernetes-list-type"),
            list_type,
            "must be map if x-kubernetes-list-map-keys is non-empty",
        );
    }
}

fn map_keys(report: &mut Report, items: &Node, keys: &[String], path: &str) {
    let items_at = child(path, "items");
    if items.kind != Some(Type::Object) {
        report.invalid(
            child(&items_at, "type"),
            &json!(items.kind.map_or("", Type::name)),
            "must be object if parent array's x-kubernetes-list-type is map",
        );
    }
    if items.nullable {
        report.forbidden(
            child(&items_at, "nullable"),
            "cannot be nullable when x-kubernetes-list-type is map",
        );
    }
    let keys_at = child(path, "x-kubernetes-list-map-keys");
    if items.kind != Some(Type::Object) {
        return;
    }
    if keys
        .iter()
        .enumerate()
        .any(|(index, key)| keys[..index].contains(key))
    {
        report.invalid(
            keys_at.clone(),
            &json!(keys),
            "must not contain duplicate entries",
        );
    }
    for key in keys {
        let property_at = child(&items_at, &format!("properties[{key}]"));
        match items.properties.get(key) {
            None => report.invalid(
                keys_at.clone(),
                &json!(keys),
                "entries must all be names of item properties",
            ),
            Some(property) => {
                if matches!(property.kind, Some(Type::Array | Type::Object)) {
                    // kube-apiserver reports "object" for arrays too.
                    let kind = json!("object");
                    report.invalid(
                        child(&property_at, "type"),
                        &kind,
                        "must be a scalar type if parent array's x-kubernetes-list-type is map",
                    );
                }
                if property.nullable {
                    report.forbidden(
                        child(&property_at, "nullable"),
                        "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
                    );
                }
                if property.default.is_none() && !items.rules.required.contains(key) {
                    report.required(
                        child(&property_at, "default"),
                        "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
                    );
                }
            }
        }
    }
}
