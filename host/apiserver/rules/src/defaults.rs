//! Applies the rules of a schema to its defaults.
//!
//! Must not know objects.

use serde_json::Value;
use vmhost_schema::Fault;

use crate::compile::Place;
use crate::path::child;
use crate::validate::validate;

/// Returns the rules that the defaults of a schema at `at` break.
pub(crate) fn faults(schema: &Value, place: &Place, at: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let at = child(at, "default");
        for mut fault in validate(place, default, None).faults {
            fault.field = match fault.field.as_str() {
                "<nil>" => at.clone(),
                below => child(&at, below),
            };
            faults.push(fault);
        }
    }
    for (name, below) in &place.properties {
        let property = schema.get("properties").and_then(|all| all.get(name));
        if let Some(property) = property {
            let at = child(at, &format!("properties[{name}]"));
            faults.extend(self::faults(property, below, &at));
        }
    }
    for (name, below) in [
        ("additionalProperties", &place.values),
        ("items", &place.items),
    ] {
        if let (Some(schema), Some(below)) = (schema.get(name), below) {
            faults.extend(self::faults(schema, below, &child(at, name)));
        }
    }
    faults
}
