//! The messages of Kubernetes, as data.
//!
//! Owns the form of their table (`protobuf/messages.json`), which `tests/protobuf.py` makes of the
//! types of the pinned Go modules. Must not know bytes or objects.
//!
//! A field reads `name kind`, its number is the key. The kind is `string` if it is absent; `[]`
//! makes a list, `map:` a map with texts as keys. `?` marks a field that Go writes even if it is
//! not set, since it is no pointer; of a text, the opposite is marked: `!` is a pointer. `inline`
//! marks a message whose fields belong to the outer object in JSON.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// The message of a JSON schema, on which three kinds of fields are built.
pub(super) const SCHEMA: &str = "apiextensions.JSONSchemaProps";

/// A message.
#[derive(Debug)]
pub(super) struct Message {
    pub name: String,
    /// In the order of their numbers, in which Go writes them.
    pub fields: Vec<Field>,
}

impl Message {
    pub fn field(&self, number: u64) -> Option<&Field> {
        let found = self.fields.binary_search_by_key(&number, |f| f.number);
        self.fields.get(found.ok()?)
    }
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub number: u64,
    /// Its name in JSON; empty if its content belongs to the outer object.
    pub name: String,
    pub shape: Shape,
    pub kind: Kind,
    /// Whether Go writes it even if it is not set.
    pub always: bool,
}

/// How many values a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Inline,
    One,
    List,
    Map,
}

/// What a value of a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Bytes,
    Bool,
    Int,
    Double,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// Any JSON: `RawExtension`, `FieldsV1`, `JSON`.
    Json,
    /// A message that is a list of texts in JSON: `ExtraValue`, `Verbs`.
    Texts,
    SchemaOrBool,
    SchemaOrList,
    SchemaOrTexts,
    /// The position of a message in the table.
    Message(usize),
}

struct Table {
    positions: HashMap<String, usize>,
    messages: Vec<Message>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    // The table is embedded and a test parses it, so the result is never empty.
    let rows: BTreeMap<String, BTreeMap<u64, String>> =
        serde_json::from_str(include_str!("messages.json")).unwrap_or_default();
    let positions = rows.keys().cloned().enumerate();
    let positions: HashMap<String, usize> = positions.map(|(at, name)| (name, at)).collect();
    let messages = rows.into_iter().map(|(name, fields)| {
        let fields = fields.iter();
        let fields = fields.map(|(number, text)| field(*number, text, &positions));
        Message {
            name,
            fields: fields.collect(),
        }
    });
    Table {
        messages: messages.collect(),
        positions,
    }
});

/// Returns the message of a name: that of a kind is `v1 Pod`, `apps/v1 Deployment`.
pub(super) fn named(name: &str) -> Option<&'static Message> {
    at(*TABLE.positions.get(name)?)
}

/// Returns the message at a position.
pub(super) fn at(position: usize) -> Option<&'static Message> {
    TABLE.messages.get(position)
}

#[cfg(test)]
pub(super) fn all() -> &'static [Message] {
    &TABLE.messages
}

fn field(number: u64, text: &str, positions: &HashMap<String, usize>) -> Field {
    let (name, whole) = match text.strip_prefix("inline ") {
        Some(whole) => ("", whole),
        None => text.split_once(' ').unwrap_or((text, "string")),
    };
    let (shape, item) = match whole {
        _ if name.is_empty() => (Shape::Inline, whole),
        "map" => (Shape::Map, "string"),
        "bytesmap" => (Shape::Map, "bytes"),
        "quantitymap" => (Shape::Map, "quantity"),
        _ => match (whole.strip_prefix("[]"), whole.strip_prefix("map:")) {
            (Some(item), _) => (Shape::List, item),
            (None, Some(item)) => (Shape::Map, item),
            (None, None) => (Shape::One, whole),
        },
    };
    Field {
        number,
        name: name.to_owned(),
        shape,
        kind: kind(item.trim_end_matches(['?', '!']), positions),
        always: shape == Shape::Inline || item.ends_with('?') || item == "string",
    }
}

fn kind(text: &str, positions: &HashMap<String, usize>) -> Kind {
    match text {
        "string" => Kind::Text,
        "bytes" => Kind::Bytes,
        "bool" => Kind::Bool,
        "int" => Kind::Int,
        "double" => Kind::Double,
        "time" => Kind::Time,
        "microtime" => Kind::MicroTime,
        "quantity" => Kind::Quantity,
        "intorstring" => Kind::IntOrString,
        "json" => Kind::Json,
        "strings" => Kind::Texts,
        "schemaorbool" => Kind::SchemaOrBool,
        "schemaorlist" => Kind::SchemaOrList,
        "schemaorstrings" => Kind::SchemaOrTexts,
        // A test finds each message; of one that is missing, nothing is read or written.
        name => Kind::Message(positions.get(name).copied().unwrap_or(usize::MAX)),
    }
}
