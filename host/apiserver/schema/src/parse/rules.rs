//! The keywords that validate a value.
//!
//! Owns parsing them; `validate` applies them. Must not know the structure of a schema.

use regex::Regex;
use serde_json::{Map, Value, json};

use super::report::{Report, child};
use crate::node::{Pattern, Rules};

/// Parses the rules of a node, except `allOf`, `anyOf`, `oneOf` and `not`. `nested`: the node is
/// inside one of those.
pub(super) fn rules(
    report: &mut Report,
    map: &Map<String, Value>,
    nested: bool,
    path: &str,
) -> Rules {
    let count = |name: &str| map.get(name).and_then(Value::as_u64);
    let number = |name: &str| map.get(name).and_then(Value::as_number).cloned();
    let flag = |name: &str| map.get(name).and_then(Value::as_bool).unwrap_or(false);
    let rules = Rules {
        format: map
            .get("format")
            .and_then(Value::as_str)
            .filter(|f| !f.is_empty())
            .map(str::to_owned),
        required: map
            .get("required")
            .and_then(Value::as_array)
            .map(|names| {
                names
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect()
            })
            .unwrap_or_default(),
        allowed: map
            .get("enum")
            .and_then(Value::as_array)
            .filter(|values| !values.is_empty())
            .cloned(),
        minimum: number("minimum"),
        exclusive_minimum: flag("exclusiveMinimum"),
        maximum: number("maximum"),
        exclusive_maximum: flag("exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        pattern: pattern(report, map, path),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: flag("uniqueItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        ..Rules::default()
    };
    if rules.unique_items && !nested {
        report.forbidden(
            child(path, "uniqueItems"),
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        );
    }
    rules
}

fn pattern(report: &mut Report, map: &Map<String, Value>, path: &str) -> Option<Pattern> {
    let text = map
        .get("pattern")
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())?;
    match Regex::new(text) {
        Ok(regex) => Some(Pattern {
            text: text.to_owned(),
            regex,
        }),
        Err(error) => {
            let detail = format!("must be a valid regular expression, but isn't: {error}");
            report.invalid(child(path, "pattern"), &json!(text), &detail);
            None
        }
    }
}
