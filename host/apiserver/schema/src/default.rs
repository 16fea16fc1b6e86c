//! Fills in defaults for missing fields.
//!
//! Follows k8s.io/apiextensions-apiserver `pkg/apiserver/schema/defaulting`. Must not know
//! validation.

use serde_json::Value;

use crate::node::{Additional, Node};

fn is_wrong_null(value: &Value, node: &Node) -> bool {
    value.is_null() && !node.nullable
}

/// Drops nulls of fields that are not nullable and have no default, as
/// `PruneNonNullableNullsWithoutDefaults` does. Only visits declared fields, and so leaves the rest
/// of an open object unchanged.
pub(crate) fn drop_nulls(value: &mut Value, node: &Node) {
    match value {
        Value::Object(map) => {
            map.retain(|name, value| match node.field(name) {
                Some(field) => {
                    let drop = is_wrong_null(value, field) && field.default.is_none();
                    if !drop {
                        drop_nulls(value, field);
                    }
                    !drop
                }
                None => true,
            });
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                items.iter_mut().for_each(|item| drop_nulls(item, node));
            }
        }
        _ => {}
    }
}

/// Fills in defaults from the outside in, so that a default object gets its own defaults.
pub(crate) fn fill(value: &mut Value, node: &Node) {
    match value {
        Value::Object(map) => {
            for (name, field) in &node.properties {
                let Some(default) = &field.default else {
                    continue;
                };
                match map.get_mut(name) {
                    None => {
                        map.insert(name.clone(), default.clone());
                    }
                    Some(value) if is_wrong_null(value, field) => *value = default.clone(),
                    Some(_) => {}
                }
            }
            for (name, value) in map.iter_mut() {
                if let Some(field) = node.properties.get(name) {
                    fill(value, field);
                } else if let Additional::Schema(field) = &node.additional {
                    fill_null(value, field);
                    fill(value, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for item in items {
                    fill_null(item, node);
                    fill(item, node);
                }
            }
        }
        _ => {}
    }
}

fn fill_null(value: &mut Value, node: &Node) {
    if let Some(default) = node.default.as_ref().filter(|_| is_wrong_null(value, node)) {
        *value = default.clone();
    }
}
