//! Fields that no update may change.
//!
//! Must not know which fields these are: the kind's data names them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::same::same;
use crate::kinds::Fixed;
use crate::status::{Cause, FORBIDDEN, INVALID, cause};

/// Returns a refusal for each immutable field that differs between two versions of an object.
pub(super) fn changed(fixed: &[Fixed], live: &Value, new: &Value) -> Vec<Cause> {
    let applies = |rule: &&Fixed| {
        let flag = rule.when.as_ref().and_then(|when| live.get(when));
        rule.when.is_none() || flag == Some(&Value::Bool(true))
    };
    let differs = |rule: &&Fixed| match rule.unordered {
        true => items(live, rule) != items(new, rule),
        false => !same(&part(live, rule), &part(new, rule)),
    };
    let broken = fixed.iter().filter(applies).filter(differs);
    broken
        .map(|rule| {
            let value = at(new, &rule.field).unwrap_or(&Value::Null);
            let message = rule.message.replace("{}", &value.to_string());
            let reason = match message.starts_with("Forbidden") {
                true => FORBIDDEN,
                false => INVALID,
            };
            cause(reason, rule.shown.as_ref().unwrap_or(&rule.field), message)
        })
        .collect()
}

fn at<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    field.split('.').try_fold(object, |at, name| at.get(name))
}

/// Returns the field without the parts that may change; null if it is absent.
fn part(object: &Value, rule: &Fixed) -> Value {
    let mut value = at(object, &rule.field).cloned().unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        map.retain(|name, _| !rule.except.contains(name));
    }
    value
}

/// Returns the texts of a list.
fn items<'a>(object: &'a Value, rule: &Fixed) -> BTreeSet<&'a str> {
    let list = at(object, &rule.field).and_then(Value::as_array);
    let texts = list.into_iter().flatten();
    texts.filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fixed_field_may_change_in_its_exceptions_only() {
        let rule = |json: Value| -> Vec<Fixed> { vec![serde_json::from_value(json).unwrap()] };
        let spec = rule(
            json!({ "field": "spec", "message": "Invalid value: {}: no", "except": ["size"] }),
        );
        let object = |spec: Value| json!({ "spec": spec });
        let one = object(json!({ "size": 1, "kind": "a" }));
        assert!(changed(&spec, &one, &object(json!({ "size": 2, "kind": "a" }))).is_empty());
        let causes = changed(&spec, &one, &object(json!({ "kind": "b" })));
        assert_eq!(causes.len(), 1);
        let flagged = rule(json!({ "field": "data", "message": "Forbidden", "when": "immutable" }));
        let (a, b) = (json!({ "data": 1 }), json!({ "data": 2 }));
        assert!(changed(&flagged, &a, &b).is_empty());
        let mut locked = a.clone();
        locked["immutable"] = json!(true);
        assert_eq!(changed(&flagged, &locked, &b).len(), 1);
        let scopes = rule(json!({ "field": "spec", "message": "no", "unordered": true }));
        let one = object(json!(["a", "b"]));
        assert!(changed(&scopes, &one, &object(json!(["b", "a", "b"]))).is_empty());
        assert_eq!(changed(&scopes, &one, &object(json!(["a"]))).len(), 1);
        assert!(changed(&scopes, &object(json!([])), &json!({})).is_empty());
    }
}
