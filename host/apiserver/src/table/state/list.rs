//! The items of a list inside of an object.

use serde_json::Value;

/// Returns the items of the list at `pointer`; none if there is no list.
pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> Vec<&'a Value> {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten().collect()
}
