//! The operations of a JSON patch, and how deep objects nest.
//!
//! Owns the limits of both: a copy can double an object or its depth. Must not know where a patch
//! comes from.

use json_patch::{PatchOperation, TestOperation};
use serde_json::Value;

/// The most levels of an object. What is read again, by a journal or by a client, may have 128,
/// and the record of the owners of its fields is up to six levels deeper than the object.
const DEEPEST: usize = 100;

/// The most bytes that the operations of a patch copy, as in a real server.
const COPIED: usize = 3 << 20;

/// Returns whether a value may be so many levels below the root of an object.
pub(crate) fn nests(value: &Value, below: usize) -> bool {
    let inner = below + 1;
    match value {
        Value::Array(items) => inner <= DEEPEST && items.iter().all(|item| nests(item, inner)),
        Value::Object(map) => inner <= DEEPEST && map.values().all(|item| nests(item, inner)),
        _ => true,
    }
}

/// Why the operations of a patch are not carried out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// A test of the patch does not hold.
    Test(String),
    Unfit(String),
}

impl From<Stopped> for String {
    fn from(stopped: Stopped) -> String {
        match stopped {
            Stopped::Test(why) | Stopped::Unfit(why) => why,
        }
    }
}

/// Carries out the operations of a JSON patch. An error says why that is impossible; what it leaves
/// of the object is of no use.
pub(crate) fn operate(object: &mut Value, operations: &[PatchOperation]) -> Result<(), Stopped> {
    let level = |path: &str| path.matches('/').count();
    let mut copied = 0_usize;
    for operation in operations {
        let fits = match operation {
            PatchOperation::Add(add) => nests(&add.value, level(add.path.as_str())),
            PatchOperation::Replace(to) => nests(&to.value, level(to.path.as_str())),
            PatchOperation::Copy(copy) => {
                let (from, to) = (copy.from.as_str(), level(copy.path.as_str()));
                let value = object.pointer(from).unwrap_or(&Value::Null);
                copied = copied.saturating_add(value.to_string().len());
                copied <= COPIED && nests(value, to)
            }
            PatchOperation::Move(moved) => {
                let (from, to) = (moved.from.as_str(), level(moved.path.as_str()));
                let value = object.pointer(from).unwrap_or(&Value::Null);
                to <= level(from) || {
                    copied = copied.saturating_add(value.to_string().len());
                    copied <= COPIED && nests(value, to)
                }
            }
            PatchOperation::Remove(_) | PatchOperation::Test(_) => true,
        };
        if !fits {
            let why = "it copies too much or nests too deep";
            return Err(Stopped::Unfit(why.to_owned()));
        }
        let done = json_patch::patch_unsafe(object, std::slice::from_ref(operation));
        match (done, operation) {
            (Ok(()), _) => {}
            (Err(error), PatchOperation::Test(test)) => missed(object, test, error.to_string())?,
            (Err(error), _) => return Err(Stopped::Unfit(error.to_string())),
        }
    }
    Ok(())
}

/// Decides about a test whose place does not have the value. As in a real server, a field that an
/// object lacks is null, and a place that can have no value is a fault of the patch.
fn missed(object: &Value, test: &TestOperation, why: String) -> Result<(), Stopped> {
    let path = test.path.as_str();
    let above = path.rsplit_once('/');
    let above = above.and_then(|(above, _)| object.pointer(above));
    match (object.pointer(path), above) {
        (None, Some(Value::Object(_))) if test.value.is_null() => Ok(()),
        (Some(_), _) | (None, Some(Value::Object(_))) => Err(Stopped::Test(why)),
        (None, _) => Err(Stopped::Unfit(why)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_test_takes_what_an_object_lacks_for_null() {
        let object = json!({ "a": { "b": 1 }, "list": [1] });
        let tested = |path: &str, value: Value| {
            let patch = json!([{ "op": "test", "path": path, "value": value }]);
            let patch: json_patch::Patch = serde_json::from_value(patch).unwrap();
            operate(&mut object.clone(), &patch)
        };
        assert_eq!(tested("/a/b", json!(1)), Ok(()));
        assert_eq!(tested("/a/c", Value::Null), Ok(()));
        for (path, value) in [
            ("/a/b", json!(2)),
            ("/a/b", Value::Null),
            ("/a/c", json!(1)),
        ] {
            let stopped = tested(path, value);
            assert!(matches!(stopped, Err(Stopped::Test(_))), "{path}");
        }
        for path in ["/x/y", "/list/1", "/a/b/c"] {
            let stopped = tested(path, Value::Null);
            assert!(matches!(stopped, Err(Stopped::Unfit(_))), "{path}");
        }
    }
}
