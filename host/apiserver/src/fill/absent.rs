//! Fills in missing fields of an object.

use serde_json::Value;

/// Sets the fields of `defaults` that an object lacks.
pub(super) fn absent(object: &mut Value, defaults: &Value) {
    let (Value::Object(map), Value::Object(defaults)) = (object, defaults) else {
        return;
    };
    for (field, value) in defaults {
        map.entry(field.clone()).or_insert_with(|| value.clone());
    }
}
