//! The definitions of built-in types, as a real server publishes them.
//!
//! Follows references: a kind comes with all the types that it consists of. Must not know kinds.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::info::Dialect;

/// The texts for people, read when a client first asks for a document.
static TEXTS: LazyLock<Map<String, Value>> = LazyLock::new(vmhost_schema::descriptions);

/// Adds a definition and all definitions that it refers to.
pub(super) fn add(out: &mut Map<String, Value>, name: &str, dialect: Dialect) {
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        let found = vmhost_schema::definition(&name).filter(|_| !out.contains_key(&name));
        if let Some(definition) = found {
            let mut written = write(definition, dialect, &mut open);
            describe(&mut written, TEXTS.get(&name));
            out.insert(name, written);
        }
    }
}

/// Writes a schema in a dialect, and collects the names that it refers to.
fn write(schema: &Value, dialect: Dialect, names: &mut Vec<String>) -> Value {
    let Some(map) = schema.as_object() else {
        return schema.clone();
    };
    let mut out = Map::new();
    for (keyword, value) in map {
        match (keyword.as_str(), value) {
            ("$ref", Value::String(name)) => names.push(name.clone()),
            ("properties", Value::Object(fields)) => {
                let fields = fields.iter();
                let written: Map<String, Value> = fields
                    .map(|(name, field)| (name.clone(), write(field, dialect, names)))
                    .collect();
                out.insert(keyword.clone(), Value::Object(written));
            }
            ("items" | "additionalProperties", Value::Object(_)) => {
                out.insert(keyword.clone(), write(value, dialect, names));
            }
            // OpenAPI v2 has no alternatives: what may be a number too is published as a text.
            ("oneOf", _) if dialect == Dialect::V2 => {
                out.insert("type".to_owned(), json!("string"));
            }
            ("default", _) if dialect == Dialect::V2 => {}
            _ => {
                out.insert(keyword.clone(), value.clone());
            }
        }
    }
    refer(&mut out, map.get("$ref"), dialect);
    Value::Object(out)
}

/// Adds a reference. Beside other keywords, v3 has it in a list.
fn refer(out: &mut Map<String, Value>, name: Option<&Value>, dialect: Dialect) {
    let Some(name) = name.and_then(Value::as_str) else {
        return;
    };
    let reference = dialect.reference(name);
    if dialect == Dialect::V3 {
        out.insert("allOf".to_owned(), json!([reference]));
    } else if let Value::Object(reference) = reference {
        out.extend(reference);
    }
}

/// Sets the texts of a definition and its fields.
fn describe(definition: &mut Value, texts: Option<&Value>) {
    let texts = texts.and_then(Value::as_object);
    for (field, text) in texts.into_iter().flatten() {
        let place = match field.as_str() {
            "" => Some(&mut *definition),
            field => definition
                .get_mut("properties")
                .and_then(|fields| fields.get_mut(field)),
        };
        if let Some(place) = place.and_then(Value::as_object_mut) {
            place.insert("description".to_owned(), text.clone());
        }
    }
}
