//! Walks over one object: computes the set of its fields, checks it against the schema, and removes
//! a set from it.
//!
//! Follows structured-merge-diff `typed/{tofieldset,validate,remove,reconcile_schema}.go`. Must not
//! know managers.

use std::collections::BTreeSet;

use serde_json::Value;
use vmhost_schema::Type;

use crate::set::{Set, Step};
use crate::shape::{List, Place, Shape};

/// Returns every field that an object states, in the form in which its author owns them.
pub(crate) fn fields(place: Place<'_>, object: &Value) -> Set {
    let mut set = Set::default();
    collect(place, object, &mut Vec::new(), &mut set);
    set
}

fn collect(place: Place<'_>, value: &Value, path: &mut Vec<Step>, set: &mut Set) {
    match place.shape(Some(value)) {
        Shape::Scalar => set.insert(path),
        Shape::List(list) if list.is_atomic() => set.insert(path),
        Shape::List(list) => {
            for (step, items) in group(list, value) {
                path.push(step);
                if let [item] = items.as_slice() {
                    collect(list.item, item, path, set);
                }
                set.insert(path);
                path.pop();
            }
        }
        Shape::Map(map) if map.atomic => set.insert(path),
        Shape::Map(map) => {
            for (name, value) in value.as_object().into_iter().flatten() {
                path.push(Step::field(name));
                collect(map.field(name).unwrap_or(Place::Open), value, path, set);
                let empty =
                    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                if empty || map.declared(name).is_none() {
                    set.insert(path);
                }
                path.pop();
            }
        }
    }
}

fn group<'a>(list: List<'_>, value: &'a Value) -> Vec<(Step, Vec<&'a Value>)> {
    let mut groups: Vec<(Step, Vec<&Value>)> = Vec::new();
    for item in value.as_array().into_iter().flatten() {
        let Ok(step) = list.step(item) else { continue };
        match groups.iter_mut().find(|(one, _)| *one == step) {
            Some((_, items)) => items.push(item),
            None => groups.push((step, vec![item])),
        }
    }
    groups
}

/// Returns an error if the object does not fit the schema: undeclared fields, wrong types, items
/// without keys, duplicates.
pub(crate) fn check(place: Place<'_>, object: &Value, duplicates: bool) -> Result<(), String> {
    let mut errors = Vec::new();
    check_at(place, object, duplicates, "", &mut errors);
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.concat()),
        _ => Err(format!("errors:\n  {}", errors.join("\n  "))),
    }
}

fn check_at(
    place: Place<'_>,
    value: &Value,
    duplicates: bool,
    path: &str,
    errors: &mut Vec<String>,
) {
    let mut say = |text: &str| {
        errors.push(if path.is_empty() {
            text.to_owned()
        } else {
            format!("{path}: {text}")
        })
    };
    match (place.shape(Some(value)), value) {
        (_, Value::Null) => {}
        (Shape::Scalar, value) => {
            if let Some(text) = wrong_scalar(place, value) {
                say(&text);
            }
        }
        (Shape::List(list), Value::Array(items)) => {
            let mut seen = BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                let step = if list.is_atomic() {
                    Ok(Step::Index(index as u64))
                } else {
                    list.step(item)
                };
                let step = match step {
                    Ok(step) => step,
                    Err(error) => {
                        say(&format!("element {index}: {error}"));
                        return;
                    }
                };
                if !seen.insert(step.clone()) && !duplicates {
                    say(&format!("duplicate entries for key {step}"));
                }
            }
            for (index, item) in items.iter().enumerate() {
                let step = if list.is_atomic() {
                    Ok(Step::Index(index as u64))
                } else {
                    list.step(item)
                };
                if let Ok(step) = step {
                    check_at(
                        list.item,
                        item,
                        duplicates,
                        &format!("{path}{step}"),
                        errors,
                    );
                }
            }
        }
        (Shape::List(_), value) => say(&format!("expected list, got {value}")),
        (Shape::Map(map), Value::Object(fields)) => {
            for (name, value) in fields {
                match map.field(name) {
                    Some(place) => {
                        check_at(place, value, duplicates, &format!("{path}.{name}"), errors)
                    }
                    None => errors.push(format!("{path}.{name}: field not declared in schema")),
                }
            }
        }
        (Shape::Map(_), value) => say(&format!("expected map, got &{{{value}}}")),
    }
}

fn wrong_scalar(place: Place<'_>, value: &Value) -> Option<String> {
    let (kind, plain) = match place {
        Place::Text => (Some(Type::String), true),
        Place::Node(node, _) => (node.kind, matches!(node.format(), None | Some("byte"))),
        Place::Open | Place::Atomic => (None, true),
    };
    let go = match value {
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::Array(_) => "[]interface {}",
        _ => "map[string]interface {}",
    };
    match kind {
        Some(Type::Integer | Type::Number) if !value.is_number() => {
            Some(format!("expected numeric (int or float), got {go}"))
        }
        Some(Type::String) if plain && !value.is_string() => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{value}}}"
        )),
        Some(Type::Boolean) if !value.is_boolean() => {
            Some(format!("expected boolean, got &{{{value}}}"))
        }
        _ if value.is_array() || value.is_object() => {
            Some(format!("expected any scalar, got &{{{value}}}"))
        }
        _ => None,
    }
}

/// Returns the object without the members of `set`. An emptied map or list becomes null.
pub(crate) fn remove(place: Place<'_>, object: &Value, set: &Set) -> Value {
    match place.shape(Some(object)) {
        Shape::Scalar => object.clone(),
        Shape::List(list) if list.is_atomic() => Value::Null,
        Shape::List(list) => {
            let mut out = Vec::new();
            for item in object.as_array().into_iter().flatten() {
                match list.step(item) {
                    Ok(step) if set.members.contains(&step) => {}
                    Ok(step) => match set.children.get(&step) {
                        Some(below) => out.push(remove(list.item, item, below)),
                        None => out.push(item.clone()),
                    },
                    Err(_) => out.push(item.clone()),
                }
            }
            if out.is_empty() {
                Value::Null
            } else {
                Value::Array(out)
            }
        }
        Shape::Map(map) if map.atomic => Value::Null,
        Shape::Map(map) => {
            let mut out = serde_json::Map::new();
            for (name, value) in object.as_object().into_iter().flatten() {
                let step = Step::field(name);
                if set.members.contains(&step) {
                    continue;
                }
                let value = match set.children.get(&step) {
                    Some(below) => remove(map.field(name).unwrap_or(Place::Open), value, below),
                    None => value.clone(),
                };
                out.insert(name.clone(), value);
            }
            if out.is_empty() {
                Value::Null
            } else {
                Value::Object(out)
            }
        }
    }
}

/// Returns the set with all declared ancestors of its members, so that an emptied struct is
/// removed.
pub(crate) fn with_parents(place: Option<Place<'_>>, set: &Set) -> Set {
    let mut out = Set {
        members: set.members.clone(),
        ..Set::default()
    };
    for (step, child) in &set.children {
        let below = match (step, place) {
            (Step::Field(name), Some(place)) => match place.shape(None) {
                Shape::Map(map) => {
                    if map.declared(name).is_some() {
                        out.members.insert(step.clone());
                    }
                    map.field(name)
                }
                _ => None,
            },
            (Step::Key(_), Some(place)) => list_of(place).map(|list| list.item),
            _ => None,
        };
        out.children
            .insert(step.clone(), with_parents(below, child));
    }
    out
}

fn list_of(place: Place<'_>) -> Option<List<'_>> {
    match place.shape(Some(&Value::Array(Vec::new()))) {
        Shape::List(list) => Some(list),
        _ => None,
    }
}

/// Returns the set after a change of its schema: a place that became atomic is owned as a whole.
pub(crate) fn reconcile(place: Place<'_>, set: &Set) -> Set {
    let mut out = set.clone();
    for (step, child) in &set.children {
        let below = match (step, place.shape(None), list_of(place)) {
            (Step::Field(name), Shape::Map(map), _) => map.field(name),
            (Step::Key(_) | Step::Value(_), _, Some(list)) => Some(list.item),
            _ => None,
        };
        let Some(below) = below else { continue };
        let atomic = match (below.shape(None), list_of(below)) {
            (_, Some(list))
                if child
                    .children
                    .keys()
                    .chain(&child.members)
                    .all(|s| !matches!(s, Step::Field(_))) =>
            {
                list.is_atomic()
            }
            (Shape::Map(map), _) => map.atomic && !map.is_untyped(),
            _ => false,
        };
        if atomic {
            out.children.remove(step);
            out.members.insert(step.clone());
        } else {
            out.children.insert(step.clone(), reconcile(below, child));
        }
    }
    out
}
