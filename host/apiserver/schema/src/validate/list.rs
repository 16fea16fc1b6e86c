//! Finds duplicates in sets and in map lists.
//!
//! Follows k8s.io/apiextensions-apiserver `pkg/apiserver/schema/listtype`: reports the second
//! occurrence, once.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::text;
use crate::error::Fault;
use crate::node::{Additional, ListType, Node};

pub(super) fn check(value: &Value, node: &Node, path: &str, faults: &mut Vec<Fault>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if let Additional::Schema(field) = &node.additional {
                    check(value, field, &format!("{path}[{name}]"), faults);
                }
                if let Some(field) = node.properties.get(name) {
                    let path = if path.is_empty() {
                        name.clone()
                    } else {
                        format!("{path}.{name}")
                    };
                    check(value, field, &path, faults);
                }
            }
        }
        Value::Array(items) => {
            match &node.list_type {
                _ if node.repeatable => {}
                ListType::Atomic => {}
                ListType::Set => duplicates(items, path, faults),
                ListType::Map(keys) => map_list(items, keys, path, faults),
            }
            if let Some(node) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    check(item, node, &format!("{path}[{index}]"), faults);
                }
            }
        }
        _ => {}
    }
}

fn duplicates(values: &[Value], path: &str, faults: &mut Vec<Fault>) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (index, value) in values.iter().enumerate() {
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            faults.push(text::duplicate(&format!("{path}[{index}]"), value));
        }
    }
}

fn map_list(items: &[Value], keys: &[String], path: &str, faults: &mut Vec<Fault>) {
    let not_object = items
        .iter()
        .position(|item| !item.is_null() && !item.is_object());
    if let Some(index) = not_object {
        let at = format!("{path}[{index}]");
        faults.push(text::bare(
            &at,
            &items[index],
            "must be an object for an array of list-type map",
        ));
        return;
    }
    let keys_of = |item: &Value| {
        let pairs = keys
            .iter()
            .filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
        Value::Object(Map::from_iter(pairs))
    };
    let found: Vec<Value> = items.iter().map(keys_of).collect();
    duplicates(&found, path, faults);
}
