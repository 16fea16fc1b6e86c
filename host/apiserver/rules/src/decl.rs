//! Declared types: what a schema says about a value, as far as an expression sees it.
//!
//! Owns which parts of a schema expressions see, under which names, and how large the values can
//! be. Follows k8s.io/apiserver `pkg/cel/common/schemas.go` and `pkg/cel/escaping.go`. Must not
//! know expressions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

/// The size of the largest request: no value is larger.
pub(crate) const REQUEST_BYTES: u64 = 3 << 20;

/// The declared type of a value.
#[derive(Debug)]
pub(crate) struct Decl {
    pub shape: Shape,
    pub nullable: bool,
    /// The most bytes of a text, items of a list or entries of a map; 0 for other values.
    pub most: u64,
    /// The fewest bytes of a value as JSON.
    pub least: u64,
}

/// The form of a value.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Whatever it is: a value without a schema.
    Open,
    IntOrString,
    Bool,
    Int,
    Double,
    String,
    Bytes,
    Duration,
    Date,
    DateTime,
    List {
        item: Arc<Decl>,
        listing: Listing,
    },
    Map(Arc<Decl>),
    /// Fields by the names that expressions use.
    Object(BTreeMap<String, Field>),
}

/// What identifies the items of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Listing {
    #[default]
    Position,
    Value,
    Keys(Vec<String>),
}

/// A field of an object.
#[derive(Debug)]
pub(crate) struct Field {
    /// The name in JSON.
    pub name: String,
    pub decl: Arc<Decl>,
}

/// The declared type of values without a schema. Their fields keep their names.
pub(crate) static OPEN: Decl = Decl {
    shape: Shape::Open,
    nullable: true,
    most: REQUEST_BYTES,
    least: 1,
};

impl Decl {
    /// Returns the declared type of a schema; `None` if expressions do not see its values.
    /// `resource`: the value has its own `apiVersion`, `kind` and `metadata`.
    pub fn of(schema: &Value, resource: bool) -> Option<Arc<Decl>> {
        let nullable = flag(schema, "nullable");
        let count = |name: &str| schema.get(name).and_then(Value::as_u64);
        let made = |shape, most, least| {
            Some(Arc::new(Decl {
                shape,
                nullable,
                most,
                least,
            }))
        };
        // A length counts characters, of at most four bytes.
        let length = |otherwise| count("maxLength").map_or(otherwise, |n| n.saturating_mul(4));
        if flag(schema, "x-kubernetes-int-or-string") {
            return made(Shape::IntOrString, length(REQUEST_BYTES - 2), 1);
        }
        match text(schema, "type") {
            "array" => {
                let items = schema.get("items")?;
                let item = Decl::of(items, flag(items, "x-kubernetes-embedded-resource"))?;
                let most = count("maxItems").unwrap_or((REQUEST_BYTES - 2) / (item.least + 1));
                let listing = Listing::of(schema);
                made(Shape::List { item, listing }, most, 2)
            }
            "object" => {
                if let Some(values) = schema.get("additionalProperties").filter(|s| s.is_object()) {
                    let value = Decl::of(values, flag(values, "x-kubernetes-embedded-resource"))?;
                    let most = (REQUEST_BYTES - 2) / (value.least + 6);
                    let most = count("maxProperties").unwrap_or(most);
                    return made(Shape::Map(value), most, 2);
                }
                let (fields, least) = fields(schema, resource);
                made(Shape::Object(fields), 0, least)
            }
            "string" => match text(schema, "format") {
                "byte" => {
                    let most = count("maxLength").unwrap_or(REQUEST_BYTES - 2);
                    made(Shape::Bytes, most, 2)
                }
                "duration" => made(Shape::Duration, 32, 3),
                "date" => made(Shape::Date, 12, 12),
                "date-time" => made(Shape::DateTime, 32, 21),
                _ => {
                    let values = schema.get("enum").and_then(Value::as_array);
                    let longest = values.and_then(|values| {
                        let texts = values.iter().filter_map(Value::as_str);
                        texts.map(|text| text.len() as u64).max()
                    });
                    let most = length(longest.unwrap_or(REQUEST_BYTES - 2));
                    made(Shape::String, most, 2)
                }
            },
            "boolean" => made(Shape::Bool, 0, 4),
            "number" => made(Shape::Double, 0, 1),
            "integer" => made(Shape::Int, 0, 1),
            _ => None,
        }
    }

    /// Returns the declared type of an item of a list or of a value of a map.
    pub fn inner(&self) -> Option<&Arc<Decl>> {
        match &self.shape {
            Shape::List { item, .. } => Some(item),
            Shape::Map(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the declared type of a field, which is named as in expressions.
    pub fn field(&self, escaped: &str) -> Option<&Field> {
        match &self.shape {
            Shape::Object(fields) => match fields.get(escaped) {
                // A reserved word is also understood as it is.
                None if RESERVED.contains(&escaped) => fields.get(&format!("__{escaped}__")),
                found => found,
            },
            _ => None,
        }
    }
}

impl Listing {
    /// Returns what identifies the items of a schema's lists.
    pub fn of(schema: &Value) -> Listing {
        match text(schema, "x-kubernetes-list-type") {
            "set" => Listing::Value,
            "map" => {
                let keys = schema
                    .get("x-kubernetes-list-map-keys")
                    .and_then(Value::as_array);
                let keys = keys.into_iter().flatten().filter_map(Value::as_str);
                Listing::Keys(keys.map(str::to_owned).collect())
            }
            _ => Listing::Position,
        }
    }

    /// Returns the item of an older list that is the same item as `item`.
    pub fn old_item<'o>(&self, item: &Value, old: &'o [Value]) -> Option<&'o Value> {
        match self {
            Listing::Keys(keys) => old.iter().find(|old| same_keys(keys, item, old)),
            Listing::Position | Listing::Value => None,
        }
    }
}

/// Returns whether two items of a list have the same keys.
pub(crate) fn same_keys(keys: &[String], a: &Value, b: &Value) -> bool {
    keys.iter().all(|key| a.get(key) == b.get(key))
}

fn fields(schema: &Value, resource: bool) -> (BTreeMap<String, Field>, u64) {
    let text_type = json!({ "type": "string" });
    let metadata = json!({
        "type": "object",
        "properties": { "name": text_type, "generateName": text_type },
    });
    let meta = [
        ("apiVersion", &text_type),
        ("kind", &text_type),
        ("metadata", &metadata),
    ];
    let required = schema.get("required").and_then(Value::as_array);
    let required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let declared = schema.get("properties").and_then(Value::as_object);
    let declared = declared.into_iter().flatten();
    let declared = declared.filter(|(name, _)| !(resource && is_meta(name)));
    let declared = declared.map(|(name, property)| (name.as_str(), property));
    let mut fields = BTreeMap::new();
    let mut least = 2;
    for (name, property) in declared.chain(meta.into_iter().filter(|_| resource)) {
        let Some(decl) = Decl::of(property, flag(property, "x-kubernetes-embedded-resource"))
        else {
            continue;
        };
        if required(name) && property.get("default").is_none_or(Value::is_null) {
            least += name.len() as u64 + decl.least + 4;
        }
        if let Some(escaped) = escape(name) {
            let name = name.to_owned();
            fields.insert(escaped, Field { name, decl });
        }
    }
    (fields, least)
}

/// Returns whether `name` is one of the fields that every resource has.
pub(crate) fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// Returns a text of a schema; empty if there is none.
pub(crate) fn text<'a>(schema: &'a Value, name: &str) -> &'a str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns whether a schema sets a flag.
pub(crate) fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// Words that the language reserves.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Returns the name under which expressions select a field; `None` if they cannot.
pub(crate) fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    if !name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
    {
        return None;
    }
    let escaped = name
        .replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__");
    Some(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_in_kubernetes() {
        for (name, escaped) in [
            ("plain", Some("plain")),
            ("namespace", Some("__namespace__")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("a__b", Some("a__underscores__b")),
            ("1st", None),
            ("a b", None),
            ("", None),
        ] {
            assert_eq!(escape(name).as_deref(), escaped, "{name}");
        }
    }

    #[test]
    fn sizes_follow_from_the_limits_of_the_schema() {
        let most = |schema: Value| Decl::of(&schema, false).unwrap().most;
        assert_eq!(most(json!({ "type": "string", "maxLength": 3 })), 12);
        assert_eq!(most(json!({ "type": "string", "enum": ["ab", "c"] })), 2);
        assert_eq!(most(json!({ "type": "string" })), REQUEST_BYTES - 2);
        let list = json!({ "type": "array", "items": { "type": "integer" } });
        assert_eq!(most(list), (REQUEST_BYTES - 2) / 2);
        let object = json!({
            "type": "object",
            "required": ["name"],
            "properties": { "name": { "type": "string" }, "open": { "x-kubernetes-preserve-unknown-fields": true } },
        });
        let decl = Decl::of(&object, true).unwrap();
        assert_eq!(decl.least, 2 + 4 + 2 + 4);
        assert!(decl.field("open").is_none());
        assert!(
            decl.field("metadata")
                .is_some_and(|f| f.decl.field("name").is_some())
        );
    }
}
