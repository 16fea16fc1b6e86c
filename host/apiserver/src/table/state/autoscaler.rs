//! The cell with the metrics of an autoscaler.
//!
//! Must not know other kinds.

use serde_json::{Map, Value};

use super::list::list;

/// How many metrics of an autoscaler are printed.
const METRICS: usize = 2;

/// Returns the metrics of an autoscaler, each with its current and its wanted value.
pub(super) fn targets(autoscaler: &Value) -> String {
    if let Some(percent) = autoscaler.pointer("/spec/targetCPUUtilizationPercentage") {
        let now = autoscaler.pointer("/status/currentCPUUtilizationPercentage");
        let now = now.map_or("<unknown>".to_owned(), |now| format!("{now}%"));
        return format!("cpu: {now}/{percent}%");
    }
    let (specs, now) = (
        list(autoscaler, "/spec/metrics"),
        list(autoscaler, "/status/currentMetrics"),
    );
    let texts = specs.iter().enumerate().map(|(at, spec)| {
        let current = now.get(at).copied().unwrap_or(&Value::Null);
        target(spec, current)
    });
    let mut texts: Vec<String> = texts.collect();
    let more = texts.len().saturating_sub(METRICS);
    texts.truncate(METRICS);
    match (texts.is_empty(), more) {
        (true, _) => "<none>".to_owned(),
        (false, 0) => texts.join(", "),
        (false, more) => format!("{} + {more} more...", texts.join(", ")),
    }
}

fn target(spec: &Value, current: &Value) -> String {
    const SOURCES: [&str; 5] = [
        "resource",
        "containerResource",
        "pods",
        "object",
        "external",
    ];
    let of = |name: &'static str| Some((name, spec.get(name)?, current.get(name)));
    let Some((kind, source, now)) = SOURCES.into_iter().find_map(of) else {
        return "<unknown type>".to_owned();
    };
    let empty = Map::new();
    let part = |value: Option<&Value>, name: &str| -> Map<String, Value> {
        let part = value.and_then(|value| value.get(name)?.as_object());
        part.unwrap_or(&empty).clone()
    };
    let (wanted, now) = (part(Some(source), "target"), part(now, "current"));
    let is = |name: &str| wanted.contains_key(name);
    let (field, end) = match kind {
        "pods" => ("averageValue", ""),
        "object" | "external" if is("averageValue") => ("averageValue", " (avg)"),
        "object" | "external" => ("value", ""),
        _ if is("averageValue") => ("averageValue", ""),
        _ => ("averageUtilization", ""),
    };
    let text = |value: Option<&Value>, other: &str| match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) if field == "averageUtilization" => format!("{number}%"),
        Some(other) => other.to_string(),
        None => other.to_owned(),
    };
    let pair = format!(
        "{}/{}{end}",
        text(now.get(field), "<unknown>"),
        text(wanted.get(field), "<auto>")
    );
    match source["name"].as_str() {
        Some(name) => format!("{name}: {pair}"),
        None => pair,
    }
}
