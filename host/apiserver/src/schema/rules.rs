//! The value validations of a node: everything in a schema that only judges and never shapes.
//!
//! Owns reading them; `validate` applies them. Must not know the structure of a schema beyond the junctors.

use regex::Regex;
use serde_json::{Number, Value};

use super::node::Node;

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

/// Value validations; absent ones judge nothing.
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
