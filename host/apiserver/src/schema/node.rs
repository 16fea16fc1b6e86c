//! A schema as a tree of nodes.
//!
//! Owns the parsed form that defaulting, pruning, validation and merging read. Must not know how it is written down.

use std::collections::BTreeMap;

use serde_json::Value;

use super::rules::Rules;

/// The `type` of a node; a node without one takes any value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    pub(crate) fn parse(text: &str) -> Option<Type> {
        Some(match text {
            "object" => Type::Object,
            "array" => Type::Array,
            "string" => Type::String,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
        }
    }
}

/// `additionalProperties`
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Additional {
    #[default]
    Unset,
    Allowed(bool),
    Schema(Box<Node>),
}

/// `x-kubernetes-list-type`, with the keys of a map list. A list without one is atomic.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// One place of a schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Node {
    pub(crate) kind: Option<Type>,
    pub(crate) nullable: bool,
    pub(crate) int_or_string: bool,
    /// `x-kubernetes-preserve-unknown-fields`
    pub(crate) preserve: bool,
    /// `x-kubernetes-embedded-resource`: has `apiVersion`, `kind` and `metadata` of its own. True at the root.
    pub(crate) embedded: bool,
    pub(crate) list_type: ListType,
    /// `x-kubernetes-map-type: atomic`
    pub(crate) atomic_map: bool,
    pub(crate) default: Option<Value>,
    pub(crate) properties: BTreeMap<String, Node>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Node>>,
    pub(crate) rules: Rules,
}

impl Node {
    /// The node of a field: declared, or covered by `additionalProperties`.
    pub(crate) fn field(&self, name: &str) -> Option<&Node> {
        self.properties.get(name).or(match &self.additional {
            Additional::Schema(node) => Some(node),
            _ => None,
        })
    }

    /// Whether `name` belongs to the type and object metadata that every resource has.
    pub(crate) fn is_meta(&self, name: &str) -> bool {
        self.embedded && matches!(name, "apiVersion" | "kind" | "metadata")
    }
}
