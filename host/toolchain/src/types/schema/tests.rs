//! The parts of a definition's schema that a generator sees.

use super::*;

fn shaped(schema: Value) -> Value {
    shape(&schema, Dialect::JsonSchema)
}

#[test]
fn kubernetes_own_words_become_those_of_json_schema() {
    for (schema, wanted) in [
        (
            json!({ "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] }),
            json!({ "type": ["integer", "string"] }),
        ),
        (
            json!({ "x-kubernetes-int-or-string": true, "nullable": true }),
            json!({ "type": ["integer", "string", "null"] }),
        ),
        (
            json!({ "x-kubernetes-preserve-unknown-fields": true }),
            json!({}),
        ),
        (
            json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
            json!({ "type": "object", "additionalProperties": true }),
        ),
        (
            json!({ "type": "string", "nullable": true, "enum": ["a"] }),
            json!({ "type": ["string", "null"], "enum": ["a", null] }),
        ),
        (
            json!({ "type": "object" }),
            json!({ "type": "object", "additionalProperties": true }),
        ),
        (
            json!({ "additionalProperties": { "type": "integer", "format": "int32" } }),
            json!({ "type": "object", "additionalProperties": { "type": "integer", "format": "int32" } }),
        ),
        (
            json!({ "items": { "type": "string" } }),
            json!({ "type": "array", "items": { "type": "string" } }),
        ),
        (
            json!({ "type": "array" }),
            json!({ "type": "array", "items": {} }),
        ),
    ] {
        assert_eq!(shaped(schema.clone()), wanted, "{schema}");
    }
    let embedded = shaped(json!({ "x-kubernetes-embedded-resource": true }));
    assert_eq!(embedded["additionalProperties"], true);
    assert_eq!(embedded["properties"]["kind"], json!({ "type": "string" }));
}

#[test]
fn what_only_checks_values_goes() {
    let schema = json!({
        "type": "object", "required": ["at", "ghost"], "maxProperties": 3, "x-kubernetes-validations": [{ "rule": "true" }],
        "oneOf": [{ "required": ["at"] }],
        "properties": {
            "at": { "type": "string", "format": "date-time", "pattern": "^x", "description": "When." },
            "many": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "number", "format": "double", "minimum": 0, "default": 1.5 } },
        },
    });
    assert_eq!(
        shaped(schema),
        json!({ "type": "object", "required": ["at"], "properties": {
            "at": { "type": "string", "description": "When." },
            "many": { "type": "array", "items": { "type": "number", "format": "double", "default": 1.5 } },
        } })
    );
}

#[test]
fn a_definition_keeps_its_own_words_without_types_of_other_crates() {
    let schema = json!({ "type": "object", "properties": {
        "port": { "x-kubernetes-int-or-string": true },
        "free": { "type": "object", "additionalProperties": true },
        "no": { "type": "string", "nullable": true, "format": "date-time" },
    } });
    assert_eq!(
        shape(&schema, Dialect::Structural),
        json!({ "type": "object", "properties": {
            "port": { "x-kubernetes-preserve-unknown-fields": true },
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "no": { "type": "string", "nullable": true },
        } })
    );
}

#[test]
fn the_whole_object_has_its_metadata_and_named_parts() {
    let schema = json!({ "type": "object", "required": ["spec", "metadata"], "properties": {
        "metadata": { "type": "object" },
        "spec": { "type": "object", "properties": { "a-b": { "type": "string" } } },
        "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    } });
    let root = json_schema(&schema, "Foo");
    assert_eq!(root["title"], "Foo");
    assert_eq!(
        root["required"],
        json!(["apiVersion", "kind", "metadata", "spec"])
    );
    assert_eq!(root["properties"]["spec"]["title"], "FooSpec");
    assert_eq!(root["properties"]["status"].get("title"), None);
    assert_eq!(
        root["properties"]["metadata"]["$ref"],
        "#/definitions/ObjectMeta"
    );
    assert!(root["definitions"]["ObjectMeta"]["properties"]["uid"].is_object());
    let names = property_names(&schema);
    assert_eq!(names, ["metadata", "spec", "a-b", "status"]);
}
