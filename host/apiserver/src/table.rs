//! `Table`: what kubectl prints.
//!
//! Owns columns and cells. Must not know kinds beyond their columns.

mod age;
mod many;
mod reference;
mod state;

use std::borrow::Borrow;

use serde_json::{Value, json};

use age::{age, duration};

use crate::encode::partial;
use crate::kinds::{Column, Show, Target};
use crate::negotiate::Include;

/// What a real server says about the first column of every table.
const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// Returns a Table. A watch omits the column definitions from all but the first.
pub(crate) fn table<V: Borrow<Value>>(
    target: &Target,
    metadata: Value,
    objects: impl IntoIterator<Item = V>,
    include: Include,
    with_columns: bool,
) -> Value {
    let rows: Vec<Value> = objects
        .into_iter()
        .map(|object| row(target, object.borrow(), include))
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": if with_columns { columns(target) } else { Value::Null },
        "rows": rows,
    })
}

fn columns(target: &Target) -> Value {
    let name = json!({
        "name": "Name", "type": "string", "format": "name", "priority": 0, "description": NAME,
    });
    let rest = target.version().columns.iter().map(|c| {
        json!({
            "name": c.name, "type": c.kind, "format": c.format, "description": c.description, "priority": c.priority,
        })
    });
    Some(name)
        .filter(|_| !target.kind.unnamed_rows)
        .into_iter()
        .chain(rest)
        .collect()
}

fn row(target: &Target, object: &Value, include: Include) -> Value {
    let name = object
        .pointer("/metadata/name")
        .cloned()
        .unwrap_or_default();
    let cells = Some(name)
        .filter(|_| !target.kind.unnamed_rows)
        .into_iter()
        .chain(target.version().columns.iter().map(|c| cell(c, object)));
    let cells: Vec<Value> = cells.collect();
    let mut row = json!({ "cells": cells });
    match include {
        Include::Nothing => {}
        Include::Metadata => row["object"] = partial(object),
        Include::Object => row["object"] = object.clone(),
    }
    row
}

fn cell(column: &Column, object: &Value) -> Value {
    let special = many::cell(column, object)
        .or_else(|| reference::cell(column, object))
        .or_else(|| state::cell(column, object));
    if let Some(cell) = special {
        return cell;
    }
    let found = column.paths.iter().find_map(|path| path.first(object));
    match column.show {
        Show::Count => {
            let counts = column
                .paths
                .iter()
                .filter_map(|path| path.first(object))
                .map(|v| match v {
                    Value::Object(map) => map.len(),
                    Value::Array(items) => items.len(),
                    _ => 0,
                });
            json!(counts.sum::<usize>())
        }
        Show::Age => match found.and_then(Value::as_str) {
            Some("") => json!("<unknown>"),
            Some(text) => json!(age(text)),
            // A custom column whose path finds nothing is empty.
            None if column.kind == "date" => Value::Null,
            None => json!("<unknown>"),
        },
        Show::AgeOrNone => json!(
            found
                .and_then(Value::as_str)
                .map_or("<none>".to_owned(), age)
        ),
        Show::Seconds => match found.and_then(Value::as_i64) {
            Some(seconds) => json!(duration(seconds)),
            None => json!("<none>"),
        },
        _ => found.map_or(Value::Null, |value| plain_cell(column, value)),
    }
}

fn plain_cell(column: &Column, value: &Value) -> Value {
    match (column.kind.as_str(), value) {
        ("string", Value::String(_)) => value.clone(),
        ("string", other) => json!(other.to_string()),
        ("integer", Value::Number(n)) => n.as_i64().or_else(|| n.as_f64().map(|f| f as i64)).into(),
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) => json!(text),
        _ => Value::Null,
    }
}
