//! What a description writes: all that is said, and nothing else, since a host refuses fields that
//! it does not know.

use serde_json::{Value, json};

use super::*;

const POD: Kind = Kind::core("v1", "Pod");

#[test]
fn what_is_not_said_is_not_written() {
    let description = Description::new("p").permission(Permission::new(POD, &[Verb::Patch]));
    let written: Value = serde_json::from_str(&description.to_json()).unwrap();
    assert_eq!(
        written,
        json!({"apiVersion": "vmhost/v1", "name": "p", "controllers": [],
            "permissions": [{"version": "v1", "kind": "Pod", "verbs": ["patch"]}]})
    );
}

#[test]
fn settings_have_a_schema_and_a_permission_may_be_optional() {
    let schema = json!({"type": "object", "required": ["zone"], "properties": {
        "zone": {"type": "string"}, "size": {"type": "integer", "default": 3}}});
    let status = Permission::new(POD, &[Verb::Patch])
        .subresource("status")
        .namespace("default")
        .optional();
    let description = Description::new("p")
        .permission(status)
        .settings_schema(schema.clone());
    let written: Value = serde_json::from_str(&description.to_json()).unwrap();
    assert_eq!(written["settingsSchema"], schema);
    assert_eq!(
        written["permissions"],
        json!([{"version": "v1", "kind": "Pod", "verbs": ["patch"], "subresources": ["status"],
            "namespaces": ["default"], "optional": true}])
    );
}
