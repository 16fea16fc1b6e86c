//! The JSON patch (RFC 6902) between two documents. It must not know what they are.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// Returns the operations that make `old` into `new`, in the order of the members' names.
pub(super) fn diff(old: &Value, new: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    compare(&mut String::new(), old, new, &mut operations);
    operations
}

fn compare(path: &mut String, old: &Value, new: &Value, to: &mut Vec<Value>) {
    match (old, new) {
        (old, new) if old == new => {}
        (Value::Object(old), Value::Object(new)) => members(path, old, new, to),
        (Value::Array(old), Value::Array(new)) => elements(path, old, new, to),
        (_, new) => to.push(json!({ "op": "replace", "path": path, "value": new })),
    }
}

fn members(
    path: &mut String,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    to: &mut Vec<Value>,
) {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let token = name.replace('~', "~0").replace('/', "~1");
        below(path, &token, |path| match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) => compare(path, old, new, to),
            (Some(_), None) => to.push(json!({ "op": "remove", "path": path })),
            (None, Some(new)) => to.push(json!({ "op": "add", "path": path, "value": new })),
            (None, None) => {}
        });
    }
}

/// Equal elements at both ends stay; those between are compared one by one, and what is left over
/// is added or removed.
fn elements(path: &mut String, old: &[Value], new: &[Value], to: &mut Vec<Value>) {
    let start = old
        .iter()
        .zip(new)
        .take_while(|(old, new)| old == new)
        .count();
    let old = old.get(start..).unwrap_or_default();
    let new = new.get(start..).unwrap_or_default();
    let ends = old.iter().rev().zip(new.iter().rev());
    let end = ends.take_while(|(old, new)| old == new).count();
    let (before, after) = (old.len() - end, new.len() - end);
    for (at, (old, new)) in old.iter().zip(new).take(before.min(after)).enumerate() {
        below(path, &(start + at).to_string(), |path| {
            compare(path, old, new, to)
        });
    }
    for (at, new) in new.iter().enumerate().take(after).skip(before) {
        let value = json!({ "op": "add", "path": format!("{path}/{}", start + at), "value": new });
        to.push(value);
    }
    // From the back, so that no removal moves what a later one names.
    for at in (after..before).rev() {
        to.push(json!({ "op": "remove", "path": format!("{path}/{}", start + at) }));
    }
}

/// Calls with the path of a member or an element.
fn below(path: &mut String, token: &str, call: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    path.push_str(token);
    call(path);
    path.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: Value, new: Value, operations: Value) {
        assert_eq!(Value::Array(diff(&old, &new)), operations, "{old} -> {new}");
    }

    #[test]
    fn only_what_differs_is_in_the_patch() {
        check(json!({"a": 1}), json!({"a": 1}), json!([]));
        check(
            json!({"a": {"b": 1, "c": [1, {"d": 2}]}, "z": 0}),
            json!({"a": {"b": 2, "c": [1, {"d": 3}]}, "n": null}),
            json!([
                {"op": "replace", "path": "/a/b", "value": 2},
                {"op": "replace", "path": "/a/c/1/d", "value": 3},
                {"op": "add", "path": "/n", "value": null},
                {"op": "remove", "path": "/z"},
            ]),
        );
        check(
            json!({"a": []}),
            json!({"a": {}}),
            json!([{"op": "replace", "path": "/a", "value": {}}]),
        );
        check(
            json!(1),
            json!("1"),
            json!([{"op": "replace", "path": "", "value": "1"}]),
        );
    }

    #[test]
    fn names_are_escaped() {
        check(
            json!({"a/b": 1, "c~d": 1, "": 1}),
            json!({"a/b": 2, "": 2}),
            json!([
                {"op": "replace", "path": "/", "value": 2},
                {"op": "replace", "path": "/a~1b", "value": 2},
                {"op": "remove", "path": "/c~0d"},
            ]),
        );
    }

    #[test]
    fn elements_come_and_go_without_touching_their_neighbours() {
        let add = |at, value| json!({"op": "add", "path": format!("/{at}"), "value": value});
        let remove = |at| json!({"op": "remove", "path": format!("/{at}")});
        check(
            json!([1, 4]),
            json!([1, 2, 3, 4]),
            json!([add(1, 2), add(2, 3)]),
        );
        check(
            json!([1, 2, 3, 4]),
            json!([1, 4]),
            json!([remove(2), remove(1)]),
        );
        check(json!([]), json!([1]), json!([add(0, 1)]));
        check(json!([1, 1]), json!([1]), json!([remove(1)]));
        check(
            json!([1, 2, 3]),
            json!([1, 9, 8, 3]),
            json!([{"op": "replace", "path": "/1", "value": 9}, add(2, 8)]),
        );
    }
}
