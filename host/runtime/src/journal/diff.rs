//! The fields that differ between two objects, with their values before and after.
//!
//! It compares JSON by its structure, and lists by the position of their items. It must not know
//! kinds, effects, or which values are sensitive.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::journal::path;
use crate::journal::story::Field;

/// The largest number of fields that are returned. Further fields are only counted.
pub(crate) const SHOWN: usize = 8;

/// Members of `metadata` that the API server changes with every write.
const BOOKKEEPING: [&str; 3] = ["managedFields", "resourceVersion", "generation"];

/// Members of an object whose fields are listed last, since they seldom show why the object
/// changed.
const LAST: [&str; 3] = ["metadata", "apiVersion", "kind"];

/// Fields that every object has. They are left out of an object that appears or disappears.
const NAMES: [&str; 6] = [
    "apiVersion",
    "kind",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.creationTimestamp",
];

/// Returns the leaf fields that differ, at most [`SHOWN`], and how many there are. `None` stands
/// for an object that does not exist.
///
/// A leaf is a value that contains no other: text, a number, an empty list.
pub(crate) fn fields(old: Option<&Value>, new: Option<&Value>) -> (Vec<Field>, u64) {
    fields_at("", old, new)
}

/// As [`fields`], for two values at a path of an object.
pub(crate) fn fields_at(path: &str, old: Option<&Value>, new: Option<&Value>) -> (Vec<Field>, u64) {
    up_to(SHOWN, path, old, new)
}

/// As [`fields`], but all of them.
pub(crate) fn all(old: Option<&Value>, new: Option<&Value>) -> Vec<Field> {
    up_to(usize::MAX, "", old, new).0
}

/// As [`fields_at`], with at most this many fields.
pub(crate) fn up_to(
    most: usize,
    path: &str,
    old: Option<&Value>,
    new: Option<&Value>,
) -> (Vec<Field>, u64) {
    let mut comparison = Comparison {
        path: path.to_owned(),
        one_sided: old.is_none() || new.is_none(),
        most,
        fields: Vec::new(),
        count: 0,
    };
    comparison.values(old, new);
    (comparison.fields, comparison.count)
}

/// A comparison of two values.
struct Comparison {
    /// The path of the values that are being compared.
    path: String,
    /// Whether the object appears or disappears.
    one_sided: bool,
    /// The largest number of fields that are returned.
    most: usize,
    fields: Vec<Field>,
    count: u64,
}

impl Comparison {
    fn values(&mut self, old: Option<&Value>, new: Option<&Value>) {
        if old == new {
            return;
        }
        match (old, new) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                self.members(Some(old), Some(new));
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) => self.items(old, new),
            _ => {
                let leaves = (leaf(old), leaf(new));
                if leaves != (None, None) {
                    self.add(leaves.0, leaves.1);
                }
                self.inside(old, None);
                self.inside(None, new);
            }
        }
    }

    /// Adds the leaves of a value that has no counterpart.
    fn inside(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match old.or(new) {
            Some(Value::Object(_)) => self.members(
                old.and_then(Value::as_object),
                new.and_then(Value::as_object),
            ),
            Some(Value::Array(_)) => self.items(items(old), items(new)),
            _ => {}
        }
    }

    fn members(&mut self, old: Option<&Map<String, Value>>, new: Option<&Map<String, Value>>) {
        let both = old.into_iter().chain(new);
        let names: BTreeSet<&str> = both
            .flat_map(|side| side.keys())
            .map(String::as_str)
            .collect();
        let mut names: Vec<&str> = names.into_iter().collect();
        if self.path.is_empty() {
            names.sort_by_key(|name| LAST.iter().position(|last| last == name));
        }
        for name in names {
            if self.path == "metadata" && BOOKKEEPING.contains(&name) {
                continue;
            }
            let end = self.path.len();
            path::push(&mut self.path, name);
            if !(self.one_sided && NAMES.contains(&self.path.as_str())) {
                self.values(
                    old.and_then(|old| old.get(name)),
                    new.and_then(|new| new.get(name)),
                );
            }
            self.path.truncate(end);
        }
    }

    fn items(&mut self, old: &[Value], new: &[Value]) {
        for index in 0..old.len().max(new.len()) {
            let end = self.path.len();
            self.path += &format!("[{index}]");
            self.values(old.get(index), new.get(index));
            self.path.truncate(end);
        }
    }

    fn add(&mut self, old: Option<&Value>, new: Option<&Value>) {
        self.count += 1;
        if self.fields.len() < self.most {
            self.fields.push(Field {
                path: self.path.clone(),
                old: old.cloned(),
                new: new.cloned(),
            });
        }
    }
}

/// Returns the value if it is a leaf.
fn leaf(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    })
}

/// Returns the items of a list, or no items if the value is not a list.
fn items(value: Option<&Value>) -> &[Value] {
    value
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(old: Option<Value>, new: Option<Value>) -> Vec<String> {
        let (fields, count) = fields(old.as_ref(), new.as_ref());
        assert_eq!(fields.len(), SHOWN.min(count as usize));
        let text = |value: Option<Value>| value.map_or("-".to_owned(), |value| value.to_string());
        let lines = fields.into_iter();
        lines
            .map(|field| format!("{} {} {}", field.path, text(field.old), text(field.new)))
            .collect()
    }

    #[test]
    fn changed_added_and_removed_leaves_are_found_by_their_path() {
        let old = json!({
            "metadata": { "labels": { "a/b": "1", "gone": "x" }, "resourceVersion": "7" },
            "spec": { "replicas": 2, "list": [{ "image": "a" }, { "image": "b" }], "same": [1] },
        });
        let new = json!({
            "metadata": {
                "labels": { "a/b": "2" }, "resourceVersion": "8", "generation": 2,
                "managedFields": [{}],
            },
            "spec": { "replicas": 3, "list": [{ "image": "c" }], "same": [1], "more": { "x": [] } },
        });
        assert_eq!(
            lines(Some(old), Some(new)),
            [
                "spec.list[0].image \"a\" \"c\"",
                "spec.list[1].image \"b\" -",
                "spec.more.x - []",
                "spec.replicas 2 3",
                "metadata.labels[\"a/b\"] \"1\" \"2\"",
                "metadata.labels.gone \"x\" -",
            ]
        );
    }

    #[test]
    fn a_value_of_another_type_is_replaced_leaf_by_leaf() {
        let old = json!({ "a": { "b": 1, "c": {} }, "d": {}, "e": [] });
        let new = json!({ "a": "x", "d": { "f": null }, "e": {} });
        assert_eq!(
            lines(Some(old), Some(new)),
            ["a - \"x\"", "a.b 1 -", "a.c {} -", "d.f - null", "e [] {}"]
        );
    }

    #[test]
    fn an_object_that_appears_shows_its_spec_first_and_not_its_names() {
        let object = json!({
            "apiVersion": "v1", "kind": "X", "metadata": { "name": "x", "labels": { "b": "c" } }, "spec": { "a": 1 },
        });
        let shown = lines(None, Some(object.clone()));
        assert_eq!(shown, ["spec.a - 1", "metadata.labels.b - \"c\""]);
        assert_eq!(lines(Some(object.clone()), None).len(), 2);
        assert!(lines(Some(object.clone()), Some(object)).is_empty());
        assert!(lines(None, None).is_empty());
    }

    #[test]
    fn only_the_first_fields_are_returned_and_all_are_counted() {
        let items: Vec<Value> = (0..100).map(|n| json!({ "n": n })).collect();
        let (fields, count) = fields(None, Some(&json!({ "items": items })));
        assert_eq!((fields.len(), count), (SHOWN, 100));
        assert_eq!(fields[7].path, "items[7].n");
        let items: Vec<Value> = (0..100).map(|n| json!({ "n": n })).collect();
        assert_eq!(all(None, Some(&json!({ "items": items }))).len(), 100);
    }
}
