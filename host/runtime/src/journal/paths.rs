//! Which fields a change of an object changed, as paths: `spec.replicas`,
//! `metadata.labels["a.b/c"]`, `spec.items[0].x`. This module must not know which writer changed
//! them, or why.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::journal::path;

/// Fields that every write changes.
const IGNORED: [&str; 3] = [
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
];

/// The paths of the values that differ between two texts of an object. Empty if one is not JSON.
pub(crate) fn changed(old: &str, new: &str) -> Vec<String> {
    let changes = changes(old, new);
    changes.into_iter().map(|(path, _)| path).collect()
}

/// Like [`changed`], each path with the value afterwards; `None` if the field is gone.
pub(crate) fn changes(old: &str, new: &str) -> Vec<(String, Option<Value>)> {
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    let mut found = Vec::new();
    if let (Some(old), Some(new)) = (parse(old), parse(new)) {
        compare(&mut String::new(), Some(&old), Some(&new), &mut found);
    }
    found
}

fn compare(
    path: &mut String,
    old: Option<&Value>,
    new: Option<&Value>,
    found: &mut Vec<(String, Option<Value>)>,
) {
    if old == new || IGNORED.contains(&path.as_str()) {
        return;
    }
    let both = || [old, new].into_iter().flatten();
    let objects = both().filter_map(Value::as_object);
    let fields: BTreeSet<&String> = objects.flat_map(|object| object.keys()).collect();
    let lists = both().filter_map(Value::as_array);
    let items = lists.map(Vec::len).max().unwrap_or_default();
    if fields.is_empty() && items == 0 {
        found.push((path.clone(), new.cloned()));
        return;
    }
    let length = path.len();
    for field in fields {
        path::push(path, field);
        let (old, new) = (
            old.and_then(|old| old.get(field)),
            new.and_then(|new| new.get(field)),
        );
        compare(path, old, new, found);
        path.truncate(length);
    }
    for item in 0..items {
        path.push_str(&format!("[{item}]"));
        let (old, new) = (
            old.and_then(|old| old.get(item)),
            new.and_then(|new| new.get(item)),
        );
        compare(path, old, new, found);
        path.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_that_differ_are_named() {
        for (old, new, expected) in [
            (r#"{"spec":{"a":1}}"#, r#"{"spec":{"a":1}}"#, &[][..]),
            (r#"{"spec":{"a":1}}"#, r#"{"spec":{"a":2}}"#, &["spec.a"]),
            (
                r#"{"b":[{"x":1},2]}"#,
                r#"{"b":[{"x":2},2,{"y":{"z":1}}]}"#,
                &["b[0].x", "b[2].y.z"],
            ),
            (
                r#"{"metadata":{"labels":{"a.b/c":"1","plain-one":"1"}}}"#,
                r#"{"metadata":{}}"#,
                &[r#"metadata.labels["a.b/c"]"#, "metadata.labels.plain-one"],
            ),
            (
                r#"{"metadata":{"resourceVersion":"1","generation":1,"managedFields":[1]}}"#,
                r#"{"metadata":{"resourceVersion":"2","generation":2,"finalizers":["f"]}}"#,
                &["metadata.finalizers[0]"],
            ),
            (
                r#"{"a":{},"b":1,"c":null}"#,
                r#"{"a":[],"b":{"x":1}}"#,
                &["a", "b.x", "c"],
            ),
            (r#"{"":1,"a\"b":1}"#, "{}", &[r#"[""]"#, r#"["a\"b"]"#]),
            ("{", r#"{"a":1}"#, &[]),
        ] {
            assert_eq!(changed(old, new), expected, "{old} {new}");
        }
    }

    #[test]
    fn a_change_shows_the_value_afterwards() {
        let found = changes(r#"{"a":1,"b":1}"#, r#"{"a":"x"}"#);
        let expected = vec![
            ("a".to_owned(), Some(Value::from("x"))),
            ("b".to_owned(), None),
        ];
        assert_eq!(found, expected);
    }
}
