//! The texts of all rules of a schema.
//!
//! Must not know what they mean.

use serde_json::Value;
use vmhost_schema::Fault;

use crate::decl::text;
use crate::path::child;
use crate::rule;

pub(super) fn has_rules(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(name, value)| {
            (name == "x-kubernetes-validations" && value.as_array().is_some_and(|r| !r.is_empty()))
                || has_rules(value)
        }),
        Value::Array(items) => items.iter().any(has_rules),
        _ => false,
    }
}

/// Returns the characters of the longest expression of a schema.
pub(super) fn longest(schema: &Value) -> usize {
    match schema {
        Value::Object(map) => {
            let size = |rule: &Value| {
                let texts = ["rule", "messageExpression"].map(|name| text(rule, name));
                texts.map(|text| text.chars().count()).into_iter().max()
            };
            let own = rules_of(schema).filter_map(size);
            own.chain(map.values().map(longest)).max().unwrap_or(0)
        }
        Value::Array(items) => items.iter().map(longest).max().unwrap_or(0),
        _ => 0,
    }
}

pub(super) fn rules_of(schema: &Value) -> impl Iterator<Item = &Value> {
    let rules = schema.get("x-kubernetes-validations");
    rules.and_then(Value::as_array).into_iter().flatten()
}

/// Returns the schemas directly below a schema that determine values, with their paths.
fn below<'s>(schema: &'s Value, path: &str) -> Vec<(String, &'s Value)> {
    let mut found = Vec::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        found.push((child(path, &format!("properties[{name}]")), property));
    }
    for name in ["additionalProperties", "items"] {
        let schema = schema.get(name).filter(|schema| schema.is_object());
        found.extend(schema.map(|schema| (child(path, name), schema)));
    }
    found
}

/// Returns what is wrong with the texts of all rules.
pub(super) fn text_faults(schema: &Value, path: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (place, schema) in below(schema, path) {
        faults.extend(text_faults(schema, &place));
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        let nested = schema.get(name).and_then(Value::as_array);
        for (at, schema) in nested.into_iter().flatten().enumerate() {
            let path = child(path, &format!("{name}[{at}]"));
            faults.extend(text_faults(schema, &path));
        }
    }
    for (at, rule) in rules_of(schema).enumerate() {
        let at = child(path, &format!("x-kubernetes-validations[{at}]"));
        faults.extend(rule::faults(rule, schema, &at));
    }
    faults
}
