//! Reads an `openAPIV3Schema` into nodes and refuses what is not structural.
//!
//! Owns the rules of k8s.io/apiextensions-apiserver `pkg/apiserver/schema/validation.go` and the part of
//! `pkg/apis/apiextensions/validation` that concerns schemas. Must not know CustomResourceDefinitions around the schema.

mod list;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::Cause;
use super::node::{Additional, Node, Type};
use super::rules::{Pattern, Rules};
use super::{prune, validate};

/// Where a node stands; decides how a missing type is worded, and what is forbidden.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
    /// Inside `allOf`, `anyOf`, `oneOf` or `not`: judges values, shapes nothing.
    Nested,
}

/// Keywords of JSON schema that a CustomResourceDefinition must not use.
const FORBIDDEN: [&str; 7] = [
    "$ref",
    "id",
    "$schema",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
];

/// Keywords that shape an object, and so have no place under a junctor.
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

pub(super) fn structural(schema: &Value) -> Result<Node, Vec<Cause>> {
    let mut reader = Reader { causes: Vec::new() };
    let mut root = reader.node(schema, Level::Root, "", false);
    root.embedded = true;
    reader
        .causes
        .sort_by(|a, b| (&a.field, &a.message).cmp(&(&b.field, &b.message)));
    if reader.causes.is_empty() {
        Ok(root)
    } else {
        Err(reader.causes)
    }
}

struct Reader {
    causes: Vec<Cause>,
}

impl Reader {
    fn required(&mut self, field: String, detail: &str) {
        self.causes.push(Cause {
            reason: "FieldValueRequired",
            message: format!("Required value: {detail}"),
            field,
        });
    }

    fn forbidden(&mut self, field: String, detail: &str) {
        self.causes.push(Cause {
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {detail}"),
            field,
        });
    }

    fn invalid(&mut self, field: String, value: &Value, detail: &str) {
        self.causes.push(Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}: {detail}"),
            field,
        });
    }

    /// `typed` says that this node may name its type although it is nested.
    fn node(&mut self, schema: &Value, level: Level, path: &str, typed: bool) -> Node {
        let Some(map) = schema.as_object() else {
            self.invalid(path.to_owned(), schema, "must be a schema");
            return Node::default();
        };
        let flag = |name: &str| map.get(name).and_then(Value::as_bool).unwrap_or(false);
        let mut node = Node {
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            preserve: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            default: map.get("default").filter(|value| !value.is_null()).cloned(),
            ..Node::default()
        };
        for name in FORBIDDEN.iter().filter(|name| map.contains_key(**name)) {
            self.forbidden(child(path, name), &format!("{name} is not supported"));
        }
        node.kind = self.kind(map, path);
        self.children(map, &mut node, level, path);
        node.rules = self.rules(map, level, path);
        if level == Level::Nested {
            for (name, detail) in SHAPING {
                let excused = name == "type" && typed;
                if !excused && map.get(name).is_some_and(|value| *value != json!(false)) {
                    self.forbidden(child(path, name), detail);
                }
            }
            if map
                .get("properties")
                .and_then(|p| p.get("metadata"))
                .is_some()
            {
                self.forbidden(
                    child(path, "properties[metadata]"),
                    "must not be specified in a nested context",
                );
            }
        } else {
            self.shape(map, &mut node, level, path);
        }
        if let Some(default) = &node.default {
            self.default(default, &node, &child(path, "default"));
        }
        node
    }

    /// A default must itself be what the schema asks for.
    fn default(&mut self, default: &Value, node: &Node, at: &str) {
        let mut pruned = default.clone();
        if !prune::prune(&mut pruned, node).is_empty() {
            self.invalid(at.to_owned(), default, "must not have unknown fields");
        }
        for mut cause in validate::validate(default, node) {
            cause.field = match cause.field.as_str() {
                "<nil>" => at.to_owned(),
                below => child(at, below),
            };
            self.causes.push(cause);
        }
    }

    fn kind(&mut self, map: &Map<String, Value>, path: &str) -> Option<Type> {
        let value = map.get("type")?;
        let kind = value.as_str().and_then(Type::parse);
        if kind.is_none() && value != &json!("") {
            self.causes.push(Cause {
                reason: "FieldValueNotSupported",
                message: format!(
                    r#"Unsupported value: {value}: supported values: "array", "boolean", "integer", "number", "object", "string""#
                ),
                field: child(path, "type"),
            });
        }
        kind
    }

    fn children(&mut self, map: &Map<String, Value>, node: &mut Node, level: Level, path: &str) {
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
                let property = self.node(schema, below(Level::Field), &at, false);
                node.properties.insert(name.clone(), property);
            }
        }
        node.additional = match map.get("additionalProperties") {
            None | Some(Value::Null) => Additional::Unset,
            Some(Value::Bool(allowed)) => Additional::Allowed(*allowed),
            // Refused as a whole; what it says does not matter any more.
            Some(_) if level == Level::Nested => Additional::Unset,
            Some(schema) => {
                let at = child(path, "additionalProperties");
                Additional::Schema(Box::new(self.node(schema, below(Level::Field), &at, false)))
            }
        };
        match map.get("items") {
            None | Some(Value::Null) => {}
            Some(Value::Array(_)) => self.forbidden(
                child(path, "items"),
                "items must be a schema object and not an array",
            ),
            Some(schema) => {
                let at = child(path, "items");
                node.items = Some(Box::new(self.node(schema, below(Level::Item), &at, false)));
            }
        }
    }

    /// The rules for nodes that shape objects.
    fn shape(&mut self, map: &Map<String, Value>, node: &mut Node, level: Level, path: &str) {
        if node.kind == Some(Type::Array) && map.get("items").is_none_or(Value::is_null) {
            self.required(child(path, "items"), "must be specified");
        }
        if !matches!(node.additional, Additional::Unset) {
            if level == Level::Root {
                self.forbidden(
                    child(path, "additionalProperties"),
                    "must not be used at the root",
                );
            }
            if node.embedded {
                self.forbidden(
                    child(path, "additionalProperties"),
                    "must not be used if x-kubernetes-embedded-resource is set",
                );
            }
            if !node.properties.is_empty() && node.additional != Additional::Allowed(false) {
                self.forbidden(
                    child(path, "additionalProperties"),
                    "additionalProperties and properties are mutual exclusive",
                );
            }
        }
        match (node.kind, level) {
            (Some(Type::Object), _) => {}
            (Some(kind), _) if node.embedded => self.invalid(
                child(path, "type"),
                &json!(kind.name()),
                "must be object if x-kubernetes-embedded-resource is true",
            ),
            (Some(kind), Level::Root) => {
                self.invalid(
                    child(path, "type"),
                    &json!(kind.name()),
                    "must be object at the root",
                );
            }
            (Some(_), _) => {}
            (None, _) if node.embedded => {
                self.required(
                    child(path, "type"),
                    "must be object if x-kubernetes-embedded-resource is true",
                );
            }
            (None, _)
                if node.int_or_string
                    || node.preserve
                    || map.get("type").is_some_and(|t| t != &json!("")) => {}
            (None, Level::Root) => {
                self.required(child(path, "type"), "must not be empty at the root")
            }
            (None, Level::Item) => self.required(
                child(path, "type"),
                "must not be empty for specified array items",
            ),
            (None, _) => self.required(
                child(path, "type"),
                "must not be empty for specified object fields",
            ),
        }
        if node.int_or_string && node.preserve {
            self.invalid(
                child(path, "x-kubernetes-preserve-unknown-fields"),
                &json!(true),
                "must be false if x-kubernetes-int-or-string is true",
            );
        }
        if node.embedded && !node.preserve && node.properties.is_empty() {
            self.required(
                child(path, "properties"),
                "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
            );
        }
        if level == Level::Root || node.embedded {
            for name in ["kind", "apiVersion"] {
                let kind = node.properties.get(name).map(|property| property.kind);
                if let Some(kind) = kind.filter(|kind| *kind != Some(Type::String)) {
                    let at = child(path, &format!("properties[{name}].type"));
                    self.invalid(at, &json!(kind.map_or("", Type::name)), "must be string");
                }
            }
        }
        if level == Level::Root {
            self.metadata(map, path);
        }
        self.list_type(map, node, path);
        if let Some(map_type) = map.get("x-kubernetes-map-type") {
            let at = child(path, "x-kubernetes-map-type");
            match map_type.as_str() {
                Some("atomic" | "granular") if node.kind != Some(Type::Object) => {
                    let kind = json!(node.kind.map_or("", Type::name));
                    self.invalid(
                        child(path, "type"),
                        &kind,
                        "must be object if x-kubernetes-map-type is specified",
                    );
                }
                Some("atomic") => node.atomic_map = true,
                Some("granular") => {}
                _ => self.unsupported(at, map_type, r#""atomic", "granular""#),
            }
        }
    }

    fn unsupported(&mut self, field: String, value: &Value, supported: &str) {
        self.causes.push(Cause {
            reason: "FieldValueNotSupported",
            message: format!("Unsupported value: {value}: supported values: {supported}"),
            field,
        });
    }

    /// The root may restrict names, and nothing else of the metadata.
    fn metadata(&mut self, map: &Map<String, Value>, path: &str) {
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
            self.invalid(child(&at, "type"), &kind, "must be object");
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
            self.forbidden(
                at,
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            );
        }
    }

    fn rules(&mut self, map: &Map<String, Value>, level: Level, path: &str) -> Rules {
        let count = |name: &str| map.get(name).and_then(Value::as_u64);
        let number = |name: &str| map.get(name).and_then(Value::as_number).cloned();
        let flag = |name: &str| map.get(name).and_then(Value::as_bool).unwrap_or(false);
        let mut rules = Rules {
            format: map
                .get("format")
                .and_then(Value::as_str)
                .filter(|f| !f.is_empty())
                .map(str::to_owned),
            required: map
                .get("required")
                .and_then(Value::as_array)
                .map(|names| {
                    names
                        .iter()
                        .filter_map(Value::as_str)
                        .map(str::to_owned)
                        .collect()
                })
                .unwrap_or_default(),
            allowed: map
                .get("enum")
                .and_then(Value::as_array)
                .filter(|values| !values.is_empty())
                .cloned(),
            minimum: number("minimum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            maximum: number("maximum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            pattern: self.pattern(map, path),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            unique_items: flag("uniqueItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            ..Rules::default()
        };
        if rules.unique_items && level != Level::Nested {
            self.forbidden(
                child(path, "uniqueItems"),
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            );
        }
        // `anyOf: [{type: integer}, {type: string}]`, alone or first in `allOf`, is the one place for types here.
        let int_or_string = json!([{ "type": "integer" }, { "type": "string" }]);
        let typed = map.get("anyOf") == Some(&int_or_string);
        rules.any_of = self.junctor(map, "anyOf", path, typed);
        rules.all_of = self.junctor(map, "allOf", path, false);
        rules.one_of = self.junctor(map, "oneOf", path, false);
        rules.not = map
            .get("not")
            .filter(|not| !not.is_null())
            .map(|not| Box::new(self.node(not, Level::Nested, &child(path, "not"), false)));
        rules
    }

    fn junctor(
        &mut self,
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
                self.node(
                    schema,
                    Level::Nested,
                    &child(path, &format!("{name}[{index}]")),
                    typed,
                )
            })
            .collect()
    }

    fn pattern(&mut self, map: &Map<String, Value>, path: &str) -> Option<Pattern> {
        let text = map
            .get("pattern")
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())?;
        match Regex::new(text) {
            Ok(regex) => Some(Pattern {
                text: text.to_owned(),
                regex,
            }),
            Err(error) => {
                let detail = format!("must be a valid regular expression, but isn't: {error}");
                self.invalid(child(path, "pattern"), &json!(text), &detail);
                None
            }
        }
    }
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
