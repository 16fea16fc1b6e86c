//! Finds the fields in which two effects that write the same object differ. This module knows the
//! form of a test case, and must not know the effects themselves.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::journal::story::Field;
use crate::journal::{diff, path};

/// The most fields of an effect that are compared.
const MOST: usize = 64;

/// The members in which the form of an effect has the content that it writes.
const BODIES: [&str; 2] = ["object", "body"];

/// Returns the fields that differ between two effects of the same verb, in the form of a test case.
/// If only the order of operations differs, returns one field without a path.
pub(super) fn fields(live: &Value, other: &Value) -> Vec<Field> {
    let (of_live, of_other) = (Parts::new(live), Parts::new(other));
    let (mut fields, _) = diff::up_to(MOST, "", Some(&of_live.rest), Some(&of_other.rest));
    if of_live.rest.get("type") == of_other.rest.get("type") {
        let (live, other) = (of_live.body.as_ref(), of_other.body.as_ref());
        fields.extend(match (of_live.operations(), of_other.operations()) {
            (Some(live), Some(other)) => of_operations(live, other),
            _ => diff::up_to(MOST, "", live, other).0,
        });
    }
    if fields.is_empty() {
        fields.push(Field {
            path: String::new(),
            old: Some(live.clone()),
            new: Some(other.clone()),
        });
    }
    fields.truncate(MOST);
    fields
}

/// The content that an effect writes, and everything else.
struct Parts {
    body: Option<Value>,
    rest: Value,
}

impl Parts {
    fn new(form: &Value) -> Self {
        let inner = form.as_object().and_then(|form| form.values().next());
        let mut rest = inner.cloned().unwrap_or_default();
        let members = rest.as_object_mut();
        let body = members.and_then(|members| BODIES.iter().find_map(|name| members.remove(*name)));
        Self { body, rest }
    }

    /// Returns the operations of a JSON patch.
    fn operations(&self) -> Option<&[Value]> {
        let is_json_patch = self.rest.get("type").is_some_and(|kind| kind == "json");
        let operations = self.body.as_ref()?.as_array()?;
        is_json_patch.then_some(operations.as_slice())
    }
}

fn of_operations(live: &[Value], other: &[Value]) -> Vec<Field> {
    let (live, other) = (by_path(live), by_path(other));
    let paths: BTreeSet<&str> = live.keys().chain(other.keys()).copied().collect();
    let mut fields = Vec::new();
    for pointer in paths {
        let of = |all: &BTreeMap<&str, Vec<Value>>| all.get(pointer).cloned().unwrap_or_default();
        let (live, other) = (of(&live), of(&other));
        let only = |some: &[Value], others: &[Value]| -> Vec<Value> {
            let some = some.iter().filter(|operation| !others.contains(operation));
            some.cloned().collect()
        };
        let at = path::from_pointer(pointer);
        match (&only(&live, &other)[..], &only(&other, &live)[..]) {
            ([], []) => {}
            ([live], [other]) if live.get("op") == other.get("op") => {
                let values = (live.get("value"), other.get("value"));
                fields.extend(diff::up_to(MOST, &at, values.0, values.1).0);
            }
            (live, other) => fields.push(Field {
                path: at,
                old: shown(live),
                new: shown(other),
            }),
        }
    }
    fields
}

fn by_path(operations: &[Value]) -> BTreeMap<&str, Vec<Value>> {
    let mut paths: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for operation in operations {
        let pointer = operation.get("path").and_then(Value::as_str);
        let of_path = paths.entry(pointer.unwrap_or_default()).or_default();
        of_path.push(operation.clone());
    }
    paths
}

/// Returns the value that the operations set, or else the operations themselves.
fn shown(operations: &[Value]) -> Option<Value> {
    match operations {
        [] => None,
        [one] => one.get("value").or_else(|| one.get("op")).cloned(),
        several => Some(several.to_vec().into()),
    }
}
