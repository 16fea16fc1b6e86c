//! What a list that is a set or a map must declare.
//!
//! Owns the rules on `x-kubernetes-list-type` of k8s.io/apiextensions-apiserver `pkg/apis/apiextensions/validation`.
//! Must not know other keywords.

use serde_json::{Map, Value, json};

use super::{Cause, Reader, child};
use crate::schema::node::{ListType, Node, Type};

impl Reader {
    pub(super) fn list_type(&mut self, map: &Map<String, Value>, node: &mut Node, path: &str) {
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
                self.required(
                    child(path, "x-kubernetes-list-type"),
                    "must be map if x-kubernetes-list-map-keys is non-empty",
                );
            }
            return;
        };
        let at = child(path, "x-kubernetes-list-type");
        if node.kind != Some(Type::Array) {
            self.invalid(
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
                let granular = items.is_some_and(|items| match items.kind {
                    Some(Type::Object) => !items.atomic_map,
                    Some(Type::Array) => items.list_type != ListType::Atomic,
                    _ => false,
                });
                if items.is_some_and(|items| items.nullable) {
                    self.forbidden(
                        child(path, "items.nullable"),
                        "cannot be nullable when x-kubernetes-list-type is set",
                    );
                }
                if granular {
                    self.invalid(
                        at,
                        list_type,
                        "items of a set must be scalars, atomic lists or atomic maps",
                    );
                }
                node.list_type = ListType::Set;
            }
            Some("map") => {
                if keys.is_empty() {
                    self.required(
                        keys_at,
                        "must not be empty if x-kubernetes-list-type is map",
                    );
                    return;
                }
                if let Some(items) = items {
                    self.map_keys(items, &keys, path);
                }
                node.list_type = ListType::Map(keys);
                return;
            }
            _ => self.unsupported(at, list_type, r#""atomic", "map", "set""#),
        }
        if !keys.is_empty() {
            self.forbidden(
                keys_at,
                "must be empty if x-kubernetes-list-type is not map",
            );
        }
    }

    fn map_keys(&mut self, items: &Node, keys: &[String], path: &str) {
        let items_at = child(path, "items");
        if items.kind != Some(Type::Object) {
            self.invalid(
                child(&items_at, "type"),
                &json!(items.kind.map_or("", Type::name)),
                "must be object if parent array's x-kubernetes-list-type is map",
            );
        }
        if items.nullable {
            self.forbidden(
                child(&items_at, "nullable"),
                "cannot be nullable when x-kubernetes-list-type is map",
            );
        }
        for (index, key) in keys.iter().enumerate() {
            let at = child(path, &format!("x-kubernetes-list-map-keys[{index}]"));
            let property_at = child(&items_at, &format!("properties[{key}]"));
            if keys[..index].contains(key) {
                self.causes.push(Cause {
                    reason: "FieldValueDuplicate",
                    message: format!("Duplicate value: {}", json!(key)),
                    field: at,
                });
                continue;
            }
            match items.properties.get(key) {
                None => self.invalid(
                    at,
                    &json!(key),
                    "entries must all be names of item properties",
                ),
                Some(property) => {
                    if matches!(property.kind, Some(Type::Array | Type::Object)) {
                        let kind = json!(property.kind.map_or("", Type::name));
                        self.invalid(
                            child(&property_at, "type"),
                            &kind,
                            "must be a scalar type if parent array's x-kubernetes-list-type is map",
                        );
                    }
                    if property.nullable {
                        self.forbidden(child(&property_at, "nullable"), "this property is in x-kubernetes-list-map-keys, so it cannot be nullable");
                    }
                    if property.default.is_none() && !items.rules.required.contains(key) {
                        self.required(
                            child(&property_at, "default"),
                            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
                        );
                    }
                }
            }
        }
    }
}
