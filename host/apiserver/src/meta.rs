//! Object metadata: its fields, and those that only the server writes.
//!
//! Owns generated names, uids and timestamps; its rules are in `check`. Must not know kinds,
//! storage or refusals.

pub(crate) mod check;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Returns the server's timestamp: seconds, UTC.
pub(crate) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(crate) fn new_uid() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Returns a text field of the metadata; empty if it is missing.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|m| m.get(field))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns the metadata for writing, and creates it if it is missing.
pub(crate) fn of(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = json!({});
    }
    match metadata {
        Value::Object(map) => map,
        _ => unreachable!("it was made an object above"),
    }
}

/// Sets a field of the metadata, or removes it for `None`.
pub(crate) fn set(object: &mut Value, field: &str, value: Option<Value>) {
    match value {
        Some(value) => of(object).insert(field.to_owned(), value),
        None => of(object).remove(field),
    };
}

pub(crate) fn get<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    object
        .get("metadata")
        .and_then(|m| m.get(field))
        .filter(|v| !v.is_null())
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    get(object, "deletionTimestamp").is_some()
}

pub(crate) fn has_finalizers(object: &Value) -> bool {
    get(object, "finalizers")
        .and_then(Value::as_array)
        .is_some_and(|f| !f.is_empty())
}

/// Returns a generated name. The suffix contains no vowels, so that it spells no word.
pub(crate) fn generate(prefix: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let suffix = (0..5).map(|_| char::from(LETTERS[fastrand::usize(..LETTERS.len())]));
    prefix.chars().take(58).chain(suffix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_keep_their_prefix() {
        let name = generate("vm-");
        assert!(name.starts_with("vm-") && name.len() == 8);
    }
}
