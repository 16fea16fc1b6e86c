//! Parses an `openAPIV3Schema` into nodes and refuses schemas that are not structural.
//!
//! Owns the rules of k8s.io/apiextensions-apiserver `pkg/apiserver/schema/validation.go` and the
//! part of `pkg/apis/apiextensions/validation` that concerns schemas. Must not know the
//! CustomResourceDefinition around the schema.

mod list;
mod report;
mod rules;
mod shape;

use serde_json::{Map, Value, json};

use crate::error::NotStructural;
use crate::node::{Additional, Node, REPEATABLE, Rules, Type};
use crate::{prune, validate};
use report::{Report, child};
use shape::Level;

/// Keywords of JSON Schema that a CustomResourceDefinition must not use.
const FORBIDDEN: [&str; 7] = [
    "$ref",
    "id",
    "$schema",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
];

/// Keywords that determine structure, and so are forbidden under `allOf`, `anyOf`, `oneOf` and
/// `not`.
const SHAPING: [(&str, &str); 10] = [
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    (
        "x-kubernetes-preserve-unknown-fields",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-embedded-resource",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-list-type",
        "must be undefined to be structural",
    ),
    (
        "x-kubernetes-map-type",
        "must be undefined to be structural",
    ),
];

pub(crate) fn structural(schema: &Value) -> Result<Node, NotStructural> {
    let mut report = Report::default();
    let mut root = read(&mut report, schema, Level::Root, "", false);
    root.embedded = true;
    let mut faults = report.faults;
    faults.sort_by(|a, b| (&a.field, &a.message).cmp(&(&b.field, &b.message)));
    if faults.is_empty() {
        Ok(root)
    } else {
        Err(NotStructural(faults))
    }
}

/// Parses the schema of a built-in kind, which need not be structural by the letter: the default of
/// an object may lack what the object requires.
pub(crate) fn trusted(schema: &Value) -> Node {
    let mut report = Report {
        is_trusted: true,
        ..Report::default()
    };
    let mut root = read(&mut report, schema, Level::Root, "", false);
    root.embedded = true;
    root
}

/// Parses a node. `typed`: the node may name its type although it is nested.
fn read(report: &mut Report, schema: &Value, level: Level, path: &str, typed: bool) -> Node {
    let Some(map) = schema.as_object() else {
        report.invalid(path.to_owned(), schema, "must be a schema");
        return Node::default();
    };
    let flag = |name: &str| map.get(name).and_then(Value::as_bool).unwrap_or(false);
    let is_default = |value: &&Value| report.is_trusted || !value.is_null();
    let mut node = Node {
        nullable: flag("nullable"),
        int_or_string: flag("x-kubernetes-int-or-string"),
        preserve: flag("x-kubernetes-preserve-unknown-fields"),
        embedded: flag("x-kubernetes-embedded-resource"),
        repeatable: report.is_trusted && flag(REPEATABLE),
        default: map.get("default").filter(is_default).cloned(),
        ..Node::default()
    };
    for name in FORBIDDEN.iter().filter(|name| map.contains_key(**name)) {
        report.forbidden(child(path, name), &format!("{name} is not supported"));
    }
    node.kind = kind(report, map, path);
    children(report, map, &mut node, level, path);
    node.rules = rules::rules(report, map, level == Level::Nested, path);
    junctors(report, map, &mut node.rules, path);
    if level == Level::Nested {
        for (name, detail) in SHAPING {
            let excused = name == "type" && typed;
            if !excused && map.get(name).is_some_and(|value| *value != json!(false)) {
                report.forbidden(child(path, name), detail);
            }
        }
        if map
            .get("properties")
            .and_then(|p| p.get("metadata"))
            .is_some()
        {
            report.forbidden(
                child(path, "properties[metadata]"),
                "must not be specified in a nested context",
            );
        }
    } else {
        shape::shape(report, map, &mut node, level, path);
    }
    if let Some(default) = &node.default {
        check_default(report, default, &node, &child(path, "default"));
    }
    node
}

/// Checks that a default fits the schema itself.
fn check_default(report: &mut Report, default: &Value, node: &Node, at: &str) {
    let mut pruned = default.clone();
    if !prune::prune(&mut pruned, node).is_empty() {
        report.invalid(at.to_owned(), default, "must not have unknown fields");
    }
    for mut fault in validate::validate(default, node) {
        fault.field = match fault.field.as_str() {
            "<nil>" => at.to_owned(),
            below => child(at, below),
        };
        report.faults.push(fault);
    }
}

fn kind(report: &mut Report, map: &Map<String, Value>, path: &str) -> Option<Type> {
    let value = map.get("type")?;
    let kind = value.as_str().and_then(Type::parse);
    if kind.is_none() && value != &json!("") {
        let known = r#""array", "boolean", "integer", "number", "object", "string""#;
        report.unsupported(child(path, "type"), value, known);
    }
    kind
}

fn children(
    report: &mut Report,
    map: &Map<String, Value>,
    node: &mut Node,
    level: Level,
    path: &str,
) {
    let below = |at: Level| {
        if level == Level::Nested {
            Level::Nested
        } else {
            at
        }
    };
    if let Some(properties) = map.get("properties").and_then(Value::as_object) {
        for (name, schema) in properties {
            let at = child(path, &format!("properties[{name}]"));
            let property = read(report, schema, below(Level::Field), &at, false);
            node.properties.insert(name.clone(), property);
        }
    }
    node.additional = match map.get("additionalProperties") {
        None | Some(Value::Null) => Additional::Unset,
        Some(Value::Bool(allowed)) => Additional::Allowed(*allowed),
        // The keyword is refused here, so its content does not matter.
        Some(_) if level == Level::Nested => Additional::Unset,
        Some(schema) => {
            let at = child(path, "additionalProperties");
            Additional::Schema(Box::new(read(
                report,
                schema,
                below(Level::Field),
                &at,
                false,
            )))
        }
    };
    match map.get("items") {
        None | Some(Value::Null) => {}
        Some(Value::Array(_)) => report.forbidden(
            child(path, "items"),
            "items must be a schema object and not an array",
        ),
        Some(schema) => {
            let at = child(path, "items");
            node.items = Some(Box::new(read(
                report,
                schema,
                below(Level::Item),
                &at,
                false,
            )));
        }
    }
}

/// Parses the schemas under `allOf`, `anyOf`, `oneOf` and `not`.
fn junctors(report: &mut Report, map: &Map<String, Value>, rules: &mut Rules, path: &str) {
    // Types are allowed here only in `anyOf: [{type: integer}, {type: string}]`, alone or first in
    // `allOf`.
    let int_or_string = json!([{ "type": "integer" }, { "type": "string" }]);
    let typed = map.get("anyOf") == Some(&int_or_string);
    rules.any_of = junctor(report, map, "anyOf", path, typed);
    rules.all_of = junctor(report, map, "allOf", path, false);
    rules.one_of = junctor(report, map, "oneOf", path, false);
    rules.not = map
        .get("not")
        .filter(|not| !not.is_null())
        .map(|not| Box::new(read(report, not, Level::Nested, &child(path, "not"), false)));
}

fn junctor(
    report: &mut Report,
    map: &Map<String, Value>,
    name: &str,
    path: &str,
    typed: bool,
) -> Vec<Node> {
    let Some(schemas) = map.get(name).and_then(Value::as_array) else {
        return Vec::new();
    };
    schemas
        .iter()
        .enumerate()
        .map(|(index, schema)| {
            read(
                report,
                schema,
                Level::Nested,
                &child(path, &format!("{name}[{index}]")),
                typed,
            )
        })
        .collect()
}
