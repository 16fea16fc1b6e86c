//! Which fields a selector of a kind may name: those that the server does not refuse.

use std::collections::BTreeSet;

use anyhow::Result;
use http::Method;
use kube::Client;
use serde_json::{Map, Value};

use crate::net;

/// How deep a selectable field lies at most.
const DEPTH: usize = 3;
/// Names that are no path of a field.
const OTHERS: [&str; 4] = [
    "source",
    "reportingController",
    "spec.host",
    "status.successful",
];

/// Returns the fields that the server accepts in a selector of this kind, other than metadata.
pub(super) async fn selectable(
    client: &Client,
    path: &str,
    definition: &str,
    definitions: &Map<String, Value>,
) -> Result<Vec<String>> {
    let mut tried: BTreeSet<String> = OTHERS.map(str::to_owned).into();
    candidates(definition, definitions, "", DEPTH, &mut tried);
    let mut accepted = Vec::new();
    for field in tried {
        let path = format!("{path}?limit=1&fieldSelector={field}%3Dtrue");
        let (code, _) = net::send(client, Method::GET, &path, "", &Value::Null).await?;
        if code == 200 {
            accepted.push(field);
        }
    }
    Ok(accepted)
}

/// Collects the paths of a definition's plain fields.
fn candidates(
    name: &str,
    definitions: &Map<String, Value>,
    prefix: &str,
    depth: usize,
    found: &mut BTreeSet<String>,
) {
    let fields = |name: &str| definitions.get(name)?.get("properties")?.as_object();
    for (field, schema) in fields(name).into_iter().flatten() {
        if prefix.is_empty() && matches!(field.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        let path = format!("{prefix}{field}");
        let plain = matches!(
            schema["type"].as_str(),
            Some("string" | "integer" | "boolean")
        );
        match schema["$ref"].as_str().filter(|_| depth > 1) {
            Some(inner) if fields(inner).is_some() => {
                candidates(inner, definitions, &format!("{path}."), depth - 1, found);
            }
            Some(_) => {
                found.insert(path);
            }
            None if plain => {
                found.insert(path);
            }
            None => {}
        }
    }
}
