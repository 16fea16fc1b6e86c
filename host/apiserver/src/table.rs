//! `Table`: what kubectl prints.
//!
//! Owns columns and cells. Must not know kinds beyond their columns.

mod many;

use jiff::{SpanRound, Timestamp, Unit};
use serde_json::{Value, json};

use crate::encode::partial;
use crate::kinds::{Column, Show, Target};

/// What rows include of their objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Include {
    pub fn parse(text: Option<&str>) -> Option<Include> {
        match text.unwrap_or_default() {
            "" | "Metadata" => Some(Include::Metadata),
            "None" => Some(Include::Nothing),
            "Object" => Some(Include::Object),
            _ => None,
        }
    }
}

/// Returns a Table. A watch omits the column definitions from all but the first.
pub(crate) fn table<'a>(
    target: &Target,
    metadata: Value,
    objects: impl IntoIterator<Item = &'a Value>,
    include: Include,
    with_columns: bool,
) -> Value {
    let rows: Vec<Value> = objects
        .into_iter()
        .map(|object| row(target, object, include))
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
        "name": "Name", "type": "string", "format": "name", "priority": 0,
        "description": "Name must be unique within a namespace.",
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
    if let Some(text) = many::cell(column, object) {
        return text;
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
            Some(text) => json!(age(text)),
            // A custom column whose path finds nothing is empty.
            None if column.kind == "date" => Value::Null,
            None => json!("<unknown>"),
        },
        Show::Reference => found.map_or(Value::Null, |r| {
            let part = |name: &str| r.get(name).and_then(Value::as_str).unwrap_or_default();
            json!(format!("{}/{}", part("kind").to_lowercase(), part("name")))
        }),
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

/// Returns the time since a timestamp, formatted like kubectl.
pub(crate) fn age(text: &str) -> String {
    let Ok(then) = text.parse::<Timestamp>() else {
        return "<invalid>".to_owned();
    };
    let seconds = Timestamp::now().since(then).ok().and_then(|span| {
        let rounded = span
            .round(
                SpanRound::new()
                    .largest(Unit::Second)
                    .smallest(Unit::Second),
            )
            .ok()?;
        Some(rounded.get_seconds())
    });
    duration(seconds.unwrap_or(0))
}

fn duration(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let two = |a: i64, x: &str, b: i64, y: &str| {
        if b == 0 {
            format!("{a}{x}")
        } else {
            format!("{a}{x}{b}{y}")
        }
    };
    match seconds {
        i64::MIN..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_in_kubectl() {
        let seen: Vec<String> = [
            0, 59, 119, 120, 125, 600, 3600, 10_800, 28_799, 100_000, 200_000, 700_000,
        ]
        .map(duration)
        .to_vec();
        assert_eq!(
            seen,
            [
                "0s", "59s", "119s", "2m", "2m5s", "10m", "60m", "3h", "7h59m", "27h", "2d7h", "8d"
            ]
        );
        assert_eq!(age("yesterday"), "<invalid>");
    }
}
