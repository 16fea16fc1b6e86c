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

/// How much memory a value takes, besides its texts.
const VALUE: usize = 32;

/// How many bytes of defaults there is room for.
pub(crate) struct Room {
    /// `None` for any number.
    left: Option<usize>,
}

/// There is no room for another default.
pub(crate) struct Full;

impl Room {
    /// Room for any number of defaults.
    pub(crate) fn any() -> Self {
        Self { left: None }
    }

    /// Room for this many bytes.
    pub(crate) fn of(bytes: usize) -> Self {
        Self { left: Some(bytes) }
    }

    /// Returns a copy of a default.
    fn copy(&mut self, default: &Value) -> Result<Value, Full> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(size(default)).ok_or(Full)?;
        }
        Ok(default.clone())
    }
}

/// About how many bytes a value takes.
fn size(value: &Value) -> usize {
    VALUE
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(size).sum(),
            Value::Object(map) => map.iter().map(|(name, of)| name.len() + size(of)).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

/// Fills in defaults from the outside in, so that a default object gets its own defaults.
pub(crate) fn fill(value: &mut Value, node: &Node, room: &mut Room) -> Result<(), Full> {
    match value {
        Value::Object(map) => {
            for (name, field) in &node.properties {
                let Some(default) = &field.default else {
                    continue;
                };
                match map.get_mut(name) {
                    None => {
                        map.insert(name.clone(), room.copy(default)?);
                    }
                    Some(value) if is_wrong_null(value, field) => *value = room.copy(default)?,
                    Some(_) => {}
                }
            }
            for (name, value) in map.iter_mut() {
                if let Some(field) = node.properties.get(name) {
                    fill(value, field, room)?;
                } else if let Additional::Schema(field) = &node.additional {
                    fill_null(value, field, room)?;
                    fill(value, field, room)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for item in items {
                    fill_null(item, node, room)?;
                    fill(item, node, room)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn fill_null(value: &mut Value, node: &Node, room: &mut Room) -> Result<(), Full> {
    if let Some(default) = node.default.as_ref().filter(|_| is_wrong_null(value, node)) {
        *value = room.copy(default)?;
    }
    Ok(())
}
