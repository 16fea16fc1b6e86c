//! Cells that combine several values.
//!
//! Follows k8s.io/kubernetes `pkg/printers/internalversion/printers.go`. Must not know kinds beyond
//! their columns.

use serde_json::{Value, json};

use crate::jsonpath::JsonPath;
use crate::kinds::{Column, Show};
use crate::selector;

const NONE: &str = "<none>";
/// The maximum number of endpoints, hosts and ports that are printed.
const SHOWN: usize = 3;

/// Returns the cell of a column that shows several values; `None` if it shows one.
pub(super) fn cell(column: &Column, object: &Value) -> Option<Value> {
    let found = || -> Vec<&Value> {
        let mut paths = column.paths.iter().map(|path| path.find(object));
        paths.find(|found| !found.is_empty()).unwrap_or_default()
    };
    let texts = |values: Vec<&Value>, text: fn(&Value) -> String| {
        let texts: Vec<String> = values.into_iter().map(text).collect();
        texts.join(",")
    };
    Some(match column.show {
        Show::Ratio => {
            let mut counts = column.paths.iter().map(|path| count(path, object));
            let (part, whole) = (counts.next().unwrap_or(0), counts.next().unwrap_or(0));
            json!(format!("{part}/{whole}"))
        }
        Show::Sum => json!(sum(&found())),
        Show::SumText => json!(sum(&found()).to_string()),
        Show::OrOne => json!(sum(&found()).max(1)),
        Show::Join | Show::OrEmpty => json!(texts(found(), plain)),
        Show::JoinWide => json!(texts(found(), plain).replace(',', ", ")),
        Show::Some => json!(some(&found())),
        Show::OrNone => match found().as_slice() {
            [Value::Number(number)] => json!(number),
            _ => json!(or_none(texts(found(), plain))),
        },
        Show::OrUnset => json!(or(texts(found(), plain), "<unset>")),
        Show::OrUnknown => json!(or(texts(found(), plain), "<unknown>")),
        Show::OrQuestion => json!(or(texts(found(), plain), "?")),
        Show::NotApplicable => json!(or(texts(found(), plain), "N/A")),
        Show::OrFalse => json!(found().first().and_then(|value| value.as_bool()) == Some(true)),
        Show::Flag => match found().first().and_then(|value| value.as_bool()) {
            Some(true) => json!("True"),
            Some(false) => json!("False"),
            None => json!("<unset>"),
        },
        Show::Source => json!(source(column, object)),
        Show::Ports => json!(or_none(texts(found(), port))),
        Show::Endpoints => json!(endpoints(&found())),
        Show::Selector => {
            let text = found().first().and_then(|found| selector::text(found));
            json!(or_none(text.unwrap_or_default()))
        }
        _ => return None,
    })
}

/// Returns the component of an event, and its host or instance. The paths of both are in one list,
/// half of them for each.
fn source(column: &Column, object: &Value) -> String {
    let (component, host) = column.paths.split_at(column.paths.len() / 2);
    let text = |paths: &[JsonPath]| {
        let mut texts = paths.iter().filter_map(|path| path.first(object)?.as_str());
        let found = texts.find(|text| !text.is_empty());
        found.unwrap_or_default().to_owned()
    };
    match (text(component), text(host)) {
        (component, host) if host.is_empty() => component,
        (component, host) => format!("{component}, {host}"),
    }
}

fn sum(values: &[&Value]) -> i64 {
    let numbers = values.iter().filter_map(|value| value.as_i64());
    numbers.fold(0, i64::saturating_add)
}

fn count(path: &JsonPath, object: &Value) -> usize {
    match path.find(object).as_slice() {
        [Value::Number(number)] => number.as_u64().and_then(|n| n.try_into().ok()).unwrap_or(0),
        found => found.len(),
    }
}

fn or(text: String, other: &str) -> String {
    if text.is_empty() {
        other.to_owned()
    } else {
        text
    }
}

fn or_none(text: String) -> String {
    or(text, NONE)
}

/// Returns the first three values, and how many more there are.
fn some(values: &[&Value]) -> String {
    let shown: Vec<String> = values.iter().take(SHOWN).map(|v| plain(v)).collect();
    let shown = or(shown.join(","), "<unset>");
    match values.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn port(port: &Value) -> String {
    let protocol = port["protocol"].as_str().unwrap_or("TCP");
    match port["nodePort"].as_u64().filter(|node| *node > 0) {
        Some(node) => format!("{}:{node}/{protocol}", port["port"]),
        None => format!("{}/{protocol}", port["port"]),
    }
}

fn endpoints(subsets: &[&Value]) -> String {
    let list = |subset: &Value, field: &str| subset[field].as_array().cloned().unwrap_or_default();
    let mut texts = Vec::new();
    for subset in subsets {
        let ports = list(subset, "ports");
        for address in list(subset, "addresses") {
            let ip = address["ip"].as_str().unwrap_or_default().to_owned();
            if ports.is_empty() {
                texts.push(ip.clone());
            }
            texts.extend(ports.iter().map(|port| format!("{ip}:{}", port["port"])));
        }
    }
    let more = texts.len().saturating_sub(SHOWN);
    let shown = texts[..texts.len() - more].join(",");
    if more > 0 {
        format!("{shown} + {more} more...")
    } else {
        or_none(shown)
    }
}
