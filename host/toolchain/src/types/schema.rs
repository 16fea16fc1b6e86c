//! Translates a definition's schema into one that type generators understand. Keeps what determines
//! a type, and drops what only validates values, because the API server has validated them.
//!
//! This module must not know generators.

use serde_json::{Map, Value, json};

/// The schema dialect that a generator reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// JSON Schema, draft 7.
    JsonSchema,
    /// The structural schema of a definition.
    Structural,
}

/// The formats that select a number type. Other formats would turn strings into dates or similar
/// types, which parse them differently from the API server.
const FORMATS: [&str; 4] = ["int32", "int64", "float", "double"];

/// Returns the kind's JSON Schema: the object with its metadata, and its parts named after the
/// kind.
pub(crate) fn json_schema(schema: &Value, kind: &str) -> Value {
    let mut root = shape(schema, Dialect::JsonSchema);
    root["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    root["title"] = json!(kind);
    root["type"] = json!("object");
    for (part, name) in [("spec", "Spec"), ("status", "Status")] {
        if let Some(part) = root.pointer_mut(&format!("/properties/{part}"))
            && part["type"] == "object"
            && part["properties"].is_object()
        {
            part["title"] = json!(format!("{kind}{name}"));
        }
    }
    for name in ["apiVersion", "kind"] {
        root["properties"][name] = json!({ "type": "string" });
    }
    root["properties"]["metadata"] = json!({ "$ref": "#/definitions/ObjectMeta" });
    let mut required = vec![json!("apiVersion"), json!("kind"), json!("metadata")];
    if let Some(Value::Array(also)) = root.get_mut("required") {
        also.retain(|name| !required.contains(name));
        required.append(also);
    }
    root["required"] = Value::Array(required);
    root["definitions"] = json!({ "ObjectMeta": object_meta() });
    root
}

/// Returns the schema of the part of `metadata` that policies read, as the SDKs have it.
fn object_meta() -> Value {
    let (text, texts) = (
        json!({ "type": "string" }),
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
    );
    json!({
        "title": "ObjectMeta",
        "description": "What all objects have.",
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": text, "namespace": text, "uid": text, "resourceVersion": text,
            "generation": { "type": "integer", "format": "int64" },
            "creationTimestamp": text, "deletionTimestamp": text,
            "labels": texts, "annotations": texts,
            "finalizers": { "type": "array", "items": text },
            "ownerReferences": { "type": "array", "items": {
                "title": "OwnerReference",
                "type": "object",
                "required": ["apiVersion", "kind", "name", "uid"],
                "properties": {
                    "apiVersion": text, "kind": text, "name": text, "uid": text,
                    "controller": { "type": "boolean" }, "blockOwnerDeletion": { "type": "boolean" },
                },
            } },
        },
    })
}

/// Returns the part of a schema that determines a type, recursively.
pub(crate) fn shape(schema: &Value, dialect: Dialect) -> Value {
    let says = |extension: &str| schema[extension] == true;
    let mut shaped = Map::new();
    if let Some(description) = schema.get("description") {
        shaped.insert("description".into(), description.clone());
    }
    match type_of(schema) {
        _ if says("x-kubernetes-int-or-string") => match dialect {
            Dialect::JsonSchema => set(&mut shaped, "type", json!(["integer", "string"])),
            Dialect::Structural => anything(&mut shaped, dialect),
        },
        "object" => object(schema, &mut shaped, dialect),
        "array" => {
            set(&mut shaped, "type", json!("array"));
            let items = schema.get("items").unwrap_or(&Value::Null);
            set(&mut shaped, "items", shape(items, dialect));
        }
        "" => anything(&mut shaped, dialect),
        scalar => {
            set(&mut shaped, "type", json!(scalar));
            let format = schema["format"].as_str();
            if let Some(format) = format.filter(|format| FORMATS.contains(format)) {
                set(&mut shaped, "format", json!(format));
            }
            for keyword in ["enum", "default"] {
                if let Some(value) = schema.get(keyword) {
                    set(&mut shaped, keyword, value.clone());
                }
            }
        }
    }
    if says("nullable") {
        nullable(&mut shaped, dialect);
    }
    Value::Object(shaped)
}

/// Returns the type, inferred from other keywords if it is missing.
fn type_of(schema: &Value) -> &str {
    let has = |keyword: &str| schema.get(keyword).is_some();
    match schema["type"].as_str() {
        Some(named) => named,
        None if has("properties") || has("additionalProperties") => "object",
        None if schema["x-kubernetes-embedded-resource"] == true => "object",
        None if has("items") => "array",
        None => "",
    }
}

fn object(schema: &Value, shaped: &mut Map<String, Value>, dialect: Dialect) {
    set(shaped, "type", json!("object"));
    let mut properties = Map::new();
    if schema["x-kubernetes-embedded-resource"] == true {
        for (name, of) in [
            ("apiVersion", "string"),
            ("kind", "string"),
            ("metadata", "object"),
        ] {
            properties.insert(name.into(), shape(&json!({ "type": of }), dialect));
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        properties.insert(name.clone(), shape(property, dialect));
    }
    let required = schema["required"].as_array().into_iter().flatten();
    let is_property = |name: &&Value| {
        name.as_str()
            .is_some_and(|name| properties.contains_key(name))
    };
    let required: Vec<Value> = required.filter(is_property).cloned().collect();
    let open = schema["x-kubernetes-preserve-unknown-fields"] == true
        || schema["x-kubernetes-embedded-resource"] == true;
    match &schema["additionalProperties"] {
        of @ Value::Object(_) => set(shaped, "additionalProperties", shape(of, dialect)),
        of if open || *of == true || properties.is_empty() => match dialect {
            Dialect::JsonSchema => set(shaped, "additionalProperties", json!(true)),
            Dialect::Structural => set(shaped, PRESERVE, json!(true)),
        },
        _ => {}
    }
    if !required.is_empty() {
        set(shaped, "required", Value::Array(required));
    }
    if !properties.is_empty() {
        set(shaped, "properties", Value::Object(properties));
    }
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// Allows any value. JSON Schema does that with no keyword.
fn anything(shaped: &mut Map<String, Value>, dialect: Dialect) {
    if dialect == Dialect::Structural {
        set(shaped, PRESERVE, json!(true));
    }
}

fn nullable(shaped: &mut Map<String, Value>, dialect: Dialect) {
    if dialect == Dialect::Structural {
        return set(shaped, "nullable", json!(true));
    }
    match shaped.get_mut("type") {
        Some(Value::Array(types)) => types.push(json!("null")),
        Some(named) => *named = json!([named.take(), "null"]),
        None => {}
    }
    if let Some(Value::Array(values)) = shaped.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

fn set(shaped: &mut Map<String, Value>, keyword: &str, value: Value) {
    shaped.insert(keyword.to_owned(), value);
}

/// Returns the names of all properties, recursively.
pub(crate) fn property_names(schema: &Value) -> Vec<String> {
    let mut names = Vec::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        names.push(name.clone());
        names.extend(property_names(property));
    }
    for below in ["items", "additionalProperties"] {
        names.extend(schema.get(below).map(property_names).unwrap_or_default());
    }
    names
}

#[cfg(test)]
mod tests;
