//! Validates an object against its schema.
//!
//! Follows k8s.io/kube-openapi `pkg/validation/validate` in what is checked, in which order and
//! with which texts, and k8s.io/apiextensions-apiserver `pkg/apiserver/schema/listtype` for sets
//! and map lists. Must not know the HTTP answer.

mod list;
mod number;
mod text;

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use crate::error::Fault;
use crate::format;
use crate::node::{Additional, ListType, Node, Type};

pub(crate) fn validate(object: &Value, root: &Node) -> Vec<Fault> {
    let mut faults = Vec::new();
    check(object, None, root, "", &mut faults);
    list::check(object, root, "", &mut faults);
    faults
}

/// Validates an object that replaces `old`: what was wrong and did not change is forgiven, as
/// `CRDValidationRatcheting` does.
pub(crate) fn validate_update(object: &Value, old: &Value, root: &Node) -> Vec<Fault> {
    let mut faults = Vec::new();
    check(object, Some(old), root, "", &mut faults);
    let mut duplicates = Vec::new();
    list::check(old, root, "", &mut duplicates);
    if duplicates.is_empty() {
        list::check(object, root, "", &mut faults);
    }
    faults
}

/// Checks a value. `old` is the value that was in the same place, if that is known.
fn check(value: &Value, old: Option<&Value>, node: &Node, path: &str, faults: &mut Vec<Fault>) {
    let before = faults.len();
    check_all(value, old, node, path, faults);
    if faults.len() > before && old == Some(value) {
        faults.truncate(before);
    }
}

fn check_all(value: &Value, old: Option<&Value>, node: &Node, path: &str, faults: &mut Vec<Fault>) {
    check_type(value, node, path, faults);
    if !value.is_null() {
        junctors(value, node, path, faults);
    }
    match value {
        Value::String(string) => check_string(string, node, path, faults),
        Value::Number(number) => number::check(number, node, path, faults),
        Value::Array(items) => check_items(items, old, node, path, faults),
        _ => {}
    }
    // A null among the allowed values does not allow null.
    if let Some(allowed) = &node.rules.allowed
        && (value.is_null() || !allowed.iter().any(|one| equal(one, value)))
    {
        faults.push(text::not_supported(path, value, allowed));
    }
    if let Value::Object(map) = value {
        check_object(map, old, node, path, faults);
    }
}

/// Returns whether two JSON values are equal; 1 and 1.0 are equal.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

/// Returns the JSON type and Go's format of a value, as named by the type check.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_f64() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

fn check_type(value: &Value, node: &Node, path: &str, faults: &mut Vec<Fault>) {
    let kinds: &[Type] = match node.kind {
        Some(ref kind) => std::slice::from_ref(kind),
        None if node.int_or_string => &[Type::Integer, Type::String],
        None => &[],
    };
    if kinds.is_empty() {
        return;
    }
    let (actual, actual_format) = type_of(value);
    let wanted = || {
        kinds
            .iter()
            .map(|kind| kind.name())
            .collect::<Vec<_>>()
            .join(",")
    };
    if value.is_null() {
        if !node.nullable {
            faults.push(text::type_invalid(path, &wanted(), actual));
        }
        return;
    }
    let fits = kinds.iter().any(|kind| match (kind, value) {
        (Type::Integer, Value::Number(number)) => !number.is_f64() || is_whole(number),
        (Type::Number, Value::Number(_)) => true,
        (kind, _) => kind.name() == actual,
    });
    if fits {
        return;
    }
    match node
        .rules
        .format
        .as_deref()
        .filter(|format| format::is_known(node.kind, format))
    {
        Some(format) if !matches!(value, Value::String(_) | Value::Array(_)) => {
            faults.push(text::type_invalid(path, format, actual_format));
        }
        Some(_)
            if !kinds
                .iter()
                .any(|kind| matches!(kind, Type::Integer | Type::Number)) => {}
        _ => faults.push(text::type_invalid(path, &wanted(), actual)),
    }
}

fn is_whole(number: &Number) -> bool {
    number
        .as_f64()
        .is_some_and(|float| float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0)
}

fn junctors(value: &Value, node: &Node, path: &str, faults: &mut Vec<Fault>) {
    let rules = &node.rules;
    let failures = |node: &Node| {
        let mut faults = Vec::new();
        check(value, None, node, path, &mut faults);
        faults
    };
    if !rules.any_of.is_empty() {
        let results: Vec<_> = rules.any_of.iter().map(failures).collect();
        if !results.iter().any(Vec::is_empty) {
            faults.push(text::invalid_plain(format!(
                "{path:?} must validate at least one schema (anyOf)"
            )));
            faults.extend(closest(results));
        }
    }
    if !rules.one_of.is_empty() {
        let results: Vec<_> = rules.one_of.iter().map(failures).collect();
        match results.iter().filter(|faults| faults.is_empty()).count() {
            1 => {}
            valid => {
                let found = if valid == 0 {
                    "Found none valid".to_owned()
                } else {
                    format!("Found {valid} valid alternatives")
                };
                let detail =
                    format!("{path:?} must validate one and only one schema (oneOf). {found}");
                faults.push(text::invalid_plain(detail));
                if valid == 0 {
                    faults.extend(closest(results));
                }
            }
        }
    }
    if !rules.all_of.is_empty() {
        let results: Vec<_> = rules.all_of.iter().map(failures).collect();
        let valid = results.iter().filter(|faults| faults.is_empty()).count();
        faults.extend(results.into_iter().flatten());
        if valid != rules.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            faults.push(text::invalid_plain(format!(
                "{path:?} must validate all the schemas (allOf){none}"
            )));
        }
    }
    if let Some(not) = &rules.not
        && failures(not).is_empty()
    {
        faults.push(text::invalid_plain(format!(
            "{path:?} must not validate the schema (not)"
        )));
    }
}

/// Returns the faults of the alternative with the fewest faults.
fn closest(results: Vec<Vec<Fault>>) -> Vec<Fault> {
    results.into_iter().min_by_key(Vec::len).unwrap_or_default()
}

/// Checks the three string rules and reports only the first that fails.
fn check_string(string: &str, node: &Node, path: &str, faults: &mut Vec<Fault>) {
    let rules = &node.rules;
    let value = || Value::String(string.to_owned());
    let length = string.chars().count() as u64;
    if let Some(max) = rules.max_length.filter(|max| length > *max) {
        faults.push(text::too_long(path, max));
    } else if let Some(min) = rules.min_length.filter(|min| length < *min) {
        faults.push(text::invalid(
            path,
            &value(),
            &format!("should be at least {min} chars long"),
        ));
    } else if let Some(pattern) = rules
        .pattern
        .as_ref()
        .filter(|pattern| !pattern.regex.is_match(string))
    {
        faults.push(text::invalid(
            path,
            &value(),
            &format!("should match '{}'", pattern.text),
        ));
    }
    if let Some(format) = &rules.format
        && matches!(node.kind, None | Some(Type::String))
        && format::is_known(node.kind, format)
        && !format::matches(format, string)
    {
        faults.push(text::type_invalid(path, format, string));
    }
}

fn check_items(
    items: &[Value],
    old: Option<&Value>,
    node: &Node,
    path: &str,
    faults: &mut Vec<Fault>,
) {
    let rules = &node.rules;
    let old = match (&node.list_type, old) {
        (ListType::Map(keys), Some(Value::Array(old))) => Some((keys, by_keys(old, keys))),
        _ => None,
    };
    if let Some(node) = &node.items {
        for (index, item) in items.iter().enumerate() {
            let before = old.as_ref();
            let before = before.and_then(|(keys, old)| old.get(&keys_of(item, keys)).copied());
            check(item, before, node, &format!("{path}[{index}]"), faults);
        }
    }
    let length = items.len() as u64;
    let value = Value::from(length);
    if let Some(min) = rules.min_items.filter(|min| length < *min) {
        faults.push(text::invalid(
            path,
            &value,
            &format!("should have at least {min} items"),
        ));
    }
    if let Some(max) = rules.max_items.filter(|max| length > *max) {
        faults.push(text::too_many(path, length, max));
    }
    if rules.unique_items
        && items
            .iter()
            .enumerate()
            .any(|(i, item)| items[..i].contains(item))
    {
        faults.push(text::invalid(
            path,
            &Value::String(String::new()),
            "shouldn't contain duplicates",
        ));
    }
}

/// Returns the items of a map list by their keys. Of equal ones, the first counts.
fn by_keys<'v>(items: &'v [Value], keys: &[String]) -> HashMap<Vec<Option<&'v Value>>, &'v Value> {
    let all = items.iter().rev();
    all.map(|item| (keys_of(item, keys), item)).collect()
}

fn keys_of<'v>(item: &'v Value, keys: &[String]) -> Vec<Option<&'v Value>> {
    keys.iter().map(|key| item.get(key)).collect()
}

fn check_object(
    map: &Map<String, Value>,
    old: Option<&Value>,
    node: &Node,
    path: &str,
    faults: &mut Vec<Fault>,
) {
    let rules = &node.rules;
    let below = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    let length = map.len() as u64;
    if let Some(min) = rules.min_properties.filter(|min| length < *min) {
        faults.push(text::invalid(
            path,
            &Value::from(length),
            &format!("should have at least {min} properties"),
        ));
    }
    if let Some(max) = rules.max_properties.filter(|max| length > *max) {
        faults.push(text::too_many(path, length, max));
    }
    for (name, value) in map {
        let old = old.and_then(|old| old.get(name));
        if let Some(field) = node.properties.get(name) {
            check(value, old, field, &below(name), faults);
        } else if let Additional::Schema(field) = &node.additional {
            check(value, old, field, &below(name), faults);
        }
    }
    if node.embedded && !path.is_empty() {
        for name in ["apiVersion", "kind"] {
            if map.get(name).is_none_or(|value| value == "") {
                faults.push(text::required(&below(name)));
            }
        }
    }
    for name in rules
        .required
        .iter()
        .filter(|name| !map.contains_key(*name))
    {
        faults.push(text::required(&below(name)));
    }
}
