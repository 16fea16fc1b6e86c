//! How a place of an object merges: as a scalar, a list or a map, atomic or by item.
//!
//! Follows k8s.io/kube-openapi `pkg/schemaconv` (which turns schemas into merge types) and
//! structured-merge-diff's `typed/helpers.go`. Must not know managers.

use serde_json::Value;
use vmhost_schema::{Additional, ListType, Node, Type, object_meta};

use crate::set::Step;

/// What the schema says about a place, independent of its value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// A schema, and whether it or one above it preserves unknown fields.
    Node(&'a Node, bool),
    /// Any value: maps merge by key, lists are atomic.
    Open,
    /// Any value, merged as a whole.
    Atomic,
    /// A text field of the type metadata.
    Text,
}

/// How a place with a certain value merges.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'a> {
    Scalar,
    List(List<'a>),
    Map(Map<'a>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct List<'a> {
    pub(crate) kind: &'a ListType,
    pub(crate) item: Place<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Map<'a> {
    pub(crate) atomic: bool,
    node: Option<&'a Node>,
    element: Option<Place<'a>>,
    open: bool,
}

impl<'a> Place<'a> {
    pub(crate) fn root(node: &'a Node) -> Place<'a> {
        Place::Node(node, false)
    }

    /// Returns the shape for a value; a null or absent value takes the form of its counterpart.
    pub(crate) fn shape(self, value: Option<&Value>) -> Shape<'a> {
        let list = |item| {
            Shape::List(List {
                kind: &ListType::Atomic,
                item,
            })
        };
        let map = |atomic, element| {
            Shape::Map(Map {
                atomic,
                node: None,
                element: Some(element),
                open: true,
            })
        };
        match (self, value) {
            (Place::Text, _) => Shape::Scalar,
            (Place::Node(node, open), value) => node_shape(node, open, value),
            (
                Place::Open | Place::Atomic,
                Some(Value::Bool(_) | Value::Number(_) | Value::String(_)),
            ) => Shape::Scalar,
            (Place::Open | Place::Atomic, Some(Value::Array(_))) => list(Place::Atomic),
            (Place::Open, _) => map(false, Place::Open),
            (Place::Atomic, _) => map(true, Place::Atomic),
        }
    }
}

fn node_shape<'a>(node: &'a Node, open: bool, value: Option<&Value>) -> Shape<'a> {
    let open = open || node.preserve;
    let list = || {
        let item = node
            .items
            .as_deref()
            .map_or(Place::Atomic, |items| Place::Node(items, open));
        Shape::List(List {
            kind: &node.list_type,
            item,
        })
    };
    let map = || {
        let element = match &node.additional {
            Additional::Unset if open || (node.properties.is_empty() && !node.embedded) => {
                Some(Place::Open)
            }
            Additional::Unset | Additional::Allowed(false) => None,
            Additional::Allowed(true) => Some(Place::Open),
            Additional::Schema(schema) => Some(Place::Node(schema, open)),
        };
        Shape::Map(Map {
            atomic: node.atomic_map,
            node: Some(node),
            element,
            open,
        })
    };
    match (node.kind, value) {
        (Some(Type::Object), _) => map(),
        (Some(Type::Array), _) => list(),
        (Some(_), _) => Shape::Scalar,
        (None, Some(Value::Bool(_) | Value::Number(_) | Value::String(_))) => Shape::Scalar,
        (None, Some(Value::Array(_))) => list(),
        (None, _) => map(),
    }
}

impl<'a> Map<'a> {
    /// Returns the place of a field that the schema declares.
    pub(crate) fn declared(&self, name: &str) -> Option<Place<'a>> {
        let node = self.node?;
        if node.is_meta(name) {
            return Some(if name == "metadata" {
                Place::Node(object_meta(), false)
            } else {
                Place::Text
            });
        }
        node.properties
            .get(name)
            .map(|field| Place::Node(field, self.open))
    }

    /// Returns the place of any field or key; `None` if it is not declared.
    pub(crate) fn field(&self, name: &str) -> Option<Place<'a>> {
        self.declared(name).or(self.element)
    }

    /// Returns whether the map declares nothing. Such a map never changes between atomic and
    /// granular.
    pub(crate) fn is_untyped(&self) -> bool {
        matches!(self.element, Some(Place::Open | Place::Atomic))
            && self.node.is_none_or(|node| node.properties.is_empty())
    }
}

impl List<'_> {
    pub(crate) fn is_atomic(&self) -> bool {
        *self.kind == ListType::Atomic
    }

    /// Returns the step that leads to an item of a set or a map list.
    pub(crate) fn step(&self, item: &Value) -> Result<Step, String> {
        match (self.kind, item) {
            (ListType::Atomic, _) => Err("invalid indexing of non-associative list".to_owned()),
            (ListType::Set, Value::Object(_)) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            (ListType::Set, Value::Array(_)) => {
                Err("not supported: associative list with lists as elements".to_owned())
            }
            (ListType::Set, Value::Null) => Err(
                "associative list without keys has an element that's an explicit null".to_owned(),
            ),
            (ListType::Set, value) => Ok(Step::value(value)),
            (ListType::Map(_), Value::Null) => {
                Err("associative list with keys may not have a null element".to_owned())
            }
            (ListType::Map(keys), Value::Object(map)) => {
                let value = |key: &'_ String| map.get(key).or_else(|| self.key_default(key));
                let pairs: Vec<_> = keys
                    .iter()
                    .filter_map(|key| Some((key.as_str(), value(key)?)))
                    .collect();
                if pairs.is_empty() {
                    let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
                    return Err(format!(
                        "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                        keys.join(" ")
                    ));
                }
                Ok(Step::key(pairs))
            }
            (ListType::Map(_), _) => {
                Err("associative list with keys may not have non-map elements".to_owned())
            }
        }
    }

    fn key_default(&self, key: &str) -> Option<&Value> {
        match self.item {
            Place::Node(node, _) => node.properties.get(key)?.default.as_ref(),
            _ => None,
        }
    }
}
