//! What Go takes for the same: what is empty is absent.
//!
//! Must not know which fields are compared.

use serde_json::Value;

/// Returns whether two values are the same for Go.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let stays = |(name, value): (&String, &Value)| match b.get(name) {
                Some(other) => same(value, other),
                None => is_empty(value),
            };
            let mut added = b.iter().filter(|(name, _)| !a.contains_key(*name));
            a.iter().all(stays) && added.all(|(_, value)| is_empty(value))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (a, b) => a == b || (is_empty(a) && is_empty(b)),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.values().all(is_empty),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_empty_is_absent() {
        let full = json!({ "a": { "b": [{ "c": 1 }] }, "d": { "e": {}, "f": [] } });
        let less = json!({ "a": { "b": [{ "c": 1, "g": null }] } });
        assert!(same(&full, &less) && same(&less, &full));
        for other in [
            json!({}),
            json!({ "a": { "b": [] } }),
            json!({ "a": { "b": [{ "c": 1 }, {}] } }),
            json!({ "a": { "b": [{ "c": 1 }] }, "h": "" }),
        ] {
            assert!(!same(&full, &other) && !same(&other, &full), "{other}");
        }
    }
}
