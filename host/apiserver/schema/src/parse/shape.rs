//! Checks the declarations of a node that determines structure, depending on its position.
//!
//! Owns the rules on types, metadata and maps of k8s.io/apiextensions-apiserver
//! `pkg/apiserver/schema/validation.go`. Must not know how nodes are parsed.

use serde_json::{Map, Value, json};

use super::list;
use super::report::{Report, child};
use crate::node::{Additional, Node, Type};

/// The position of a node, which decides the error for a missing type and what is forbidden.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Root,
    Field,
    Item,
    /// Inside `allOf`, `anyOf`, `oneOf` or `not`, where a node may only validate.
    Nested,
}

/// Checks the rules for nodes that determine structure.
pub(super) fn shape(
    report: &mut Report,
    map: &Map<String, Value>,
    node: &mut Node,
    level: Level,
    path: &str,
) {
    if node.kind == Some(Type::Array) && map.get("items").is_none_or(Value::is_null) {
        report.required(child(path, "items"), "must be specified");
    }
    if !matches!(node.additional, Additional::Unset) {
        if level == Level::Root {
            report.forbidden(
                child(path, "additionalProperties"),
                "must not be used at the root",
            );
        }
        if node.embedded {
            report.forbidden(
                child(path, "additionalProperties"),
                "must not be used if x-kubernetes-embedded-resource is set",
            );
        }
        if !node.properties.is_empty() && node.additional != Additional::Allowed(false) {
            report.forbidden(
                child(path, "additionalProperties"),
                "additionalProperties and properties are mutual exclusive",
            );
        }
    }
    match (node.kind, level) {
        (Some(Type::Object), _) => {}
        (Some(kind), _) if node.embedded => report.invalid(
            child(path, "type"),
            &json!(kind.name()),
            "must be object if x-kubernetes-embedded-resource is true",
        ),
        (Some(kind), Level::Root) => {
            report.invalid(
                child(path, "type"),
                &json!(kind.name()),
                "must be object at the root",
            );
        }
        (Some(_), _) => {}
        (None, _) if node.embedded => {
            report.required(
                child(path, "type"),
                "must be object if x-kubernetes-embedded-resource is true",
            );
        }
        (None, _)
            if node.int_or_string
                || node.preserve
                || map.get("type").is_some_and(|t| t != &json!("")) => {}
        (None, Level::Root) => {
            report.required(child(path, "type"), "must not be empty at the root")
        }
        (None, Level::Item) => report.required(
            child(path, "type"),
            "must not be empty for specified array items",
        ),
        (None, _) => report.required(
            child(path, "type"),
            "must not be empty for specified object fields",
        ),
    }
    if node.int_or_string && node.preserve {
        report.invalid(
            child(path, "x-kubernetes-preserve-unknown-fields"),
            &json!(true),
            "must be false if x-kubernetes-int-or-string is true",
        );
    }
    if node.embedded && !node.preserve && node.properties.is_empty() {
        report.required(
            child(path, "properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        );
    }
    if level == Level::Root || node.embedded {
        for name in ["kind", "apiVersion"] {
            let kind = node.properties.get(name).map(|property| property.kind);
            if let Some(kind) = kind.filter(|kind| *kind != Some(Type::String)) {
                let at = child(path, &format!("properties[{name}].type"));
                report.invalid(at, &json!(kind.map_or("", Type::name)), "must be string");
            }
        }
    }
    if level == Level::Root {
        metadata(report, map, path);
    }
    list::list_type(report, map, node, path);
    if let Some(map_type) = map.get("x-kubernetes-map-type") {
        let at = child(path, "x-kubernetes-map-type");
        match map_type.as_str() {
            Some("atomic" | "granular") if node.kind != Some(Type::Object) => {
                let kind = json!(node.kind.map_or("", Type::name));
                report.invalid(
                    child(path, "type"),
                    &kind,
                    "must be object if x-kubernetes-map-type is specified",
                );
            }
            Some("atomic") => node.atomic_map = true,
            Some("granular") => {}
            _ => report.unsupported(at, map_type, r#""atomic", "granular""#),
        }
    }
}

/// Checks that the root restricts no metadata but names.
fn metadata(report: &mut Report, map: &Map<String, Value>, path: &str) {
    let Some(metadata) = map
        .get("properties")
        .and_then(|p| p.get("metadata"))
        .and_then(Value::as_object)
    else {
        return;
    };
    let at = child(path, "properties[metadata]");
    let kind = metadata.get("type").cloned().unwrap_or(json!(""));
    if kind != json!("object") {
        report.invalid(child(&at, "type"), &kind, "must be object");
    }
    let names_only = metadata
        .get("properties")
        .and_then(Value::as_object)
        .is_none_or(|p| {
            p.keys()
                .all(|name| matches!(name.as_str(), "name" | "generateName"))
        });
    let keywords_only = metadata.keys().all(|key| {
        matches!(
            key.as_str(),
            "type" | "properties" | "description" | "title"
        )
    });
    if !names_only || !keywords_only {
        report.forbidden(
            at,
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        );
    }
}
