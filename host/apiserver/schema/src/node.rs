//! A schema as a tree of nodes.
//!
//! Owns the parsed form that defaulting, pruning, validation and merging read. Must not know its
//! textual form.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Number, Value};

/// The `type` of a node; a node without one accepts any value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `object`
    Object,
    /// `array`
    Array,
    /// `string`
    String,
    /// `integer`
    Integer,
    /// `number`
    Number,
    /// `boolean`
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
pub enum Additional {
    /// Absent.
    #[default]
    Unset,
    /// `true` or `false`.
    Allowed(bool),
    /// The schema of every other field.
    Schema(Box<Node>),
}

/// `x-kubernetes-list-type`, with the keys of a map list. A list without one is atomic.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ListType {
    /// The list is one value.
    #[default]
    Atomic,
    /// Unique scalars.
    Set,
    /// Objects that are identified by these fields.
    Map(Vec<String>),
}

/// The keyword of [`Node::repeatable`].
pub(crate) const REPEATABLE: &str = "x-vmhost-repeatable";

/// One place of a schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// `type`
    pub kind: Option<Type>,
    pub(crate) nullable: bool,
    pub(crate) int_or_string: bool,
    /// `x-kubernetes-preserve-unknown-fields`
    pub preserve: bool,
    /// `x-kubernetes-embedded-resource`: the object has its own `apiVersion`, `kind` and
    /// `metadata`. True at the root.
    pub embedded: bool,
    /// `x-kubernetes-list-type`
    pub list_type: ListType,
    /// Whether a set or a map list of a built-in kind may have equal items. They merge as one.
    pub(crate) repeatable: bool,
    /// `x-kubernetes-map-type: atomic`
    pub atomic_map: bool,
    /// `default`
    pub default: Option<Value>,
    /// `properties`
    pub properties: BTreeMap<String, Node>,
    /// `additionalProperties`
    pub additional: Additional,
    /// `items`
    pub items: Option<Box<Node>>,
    pub(crate) rules: Rules,
}

impl Node {
    /// Returns the node of a field, declared or covered by `additionalProperties`.
    pub(crate) fn field(&self, name: &str) -> Option<&Node> {
        self.properties.get(name).or(match &self.additional {
            Additional::Schema(node) => Some(node),
            _ => None,
        })
    }

    /// Returns whether `name` belongs to the type and object metadata that every resource has.
    pub fn is_meta(&self, name: &str) -> bool {
        self.embedded && matches!(name, "apiVersion" | "kind" | "metadata")
    }

    /// Returns whether an object must have this field.
    pub fn requires(&self, name: &str) -> bool {
        self.rules.required.iter().any(|field| field == name)
    }

    /// Returns `format`.
    pub fn format(&self) -> Option<&str> {
        self.rules.format.as_deref()
    }
}

/// The parts of a schema that only validate. An absent rule accepts every value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rules {
    pub(crate) format: Option<String>,
    pub(crate) required: Vec<String>,
    pub(crate) allowed: Option<Vec<Value>>,
    pub(crate) minimum: Option<Number>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) maximum: Option<Number>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<Number>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) unique_items: bool,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) all_of: Vec<Node>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) not: Option<Box<Node>>,
}

/// A compiled `pattern`.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    pub(crate) regex: Regex,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
