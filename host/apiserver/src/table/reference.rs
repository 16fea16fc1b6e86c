//! Cells that name another object.
//!
//! Follows k8s.io/kubernetes `pkg/printers/internalversion/printers.go`. Must not know kinds beyond
//! their columns.

use serde_json::{Value, json};

use crate::kinds::{Column, Show};

/// Returns the cell of a column that names an object; `None` if it does not.
pub(super) fn cell(column: &Column, object: &Value) -> Option<Value> {
    let all: Vec<&Value> = column.paths.iter().flat_map(|p| p.find(object)).collect();
    let found = all.first().copied().filter(|value| value.is_object());
    let or = |other: &str, text: fn(&Value) -> String| found.map_or(other.to_owned(), text);
    let text = match column.show {
        Show::Reference => match found {
            Some(found) => format!(
                "{}/{}",
                part(found, "kind").to_lowercase(),
                part(found, "name")
            ),
            None => return Some(Value::Null),
        },
        Show::KindName => or("/", |r| format!("{}/{}", part(r, "kind"), part(r, "name"))),
        Show::Namespaced => or("", |r| {
            format!("{}/{}", part(r, "namespace"), part(r, "name"))
        }),
        Show::ApiService => or("Local", |r| {
            format!("{}/{}", part(r, "namespace"), part(r, "name"))
        }),
        Show::Owner => or("<none>", owner),
        Show::ParamKind => or("<unset>", |r| {
            format!("{}/{}", part(r, "apiVersion"), part(r, "kind"))
        }),
        Show::ParamRef => or("<unset>", parameter),
        Show::Parameters => or("<none>", |r| {
            let group = Some(part(r, "apiGroup")).filter(|group| !group.is_empty());
            let group = group.map(|group| format!(".{group}")).unwrap_or_default();
            format!("{}{group}/{}", part(r, "kind"), part(r, "name"))
        }),
        Show::Parent => or("<none>", parent),
        Show::Accounts => {
            let name = |r: &&Value| format!("{}/{}", part(r, "namespace"), part(r, "name"));
            let names: Vec<String> = all.iter().map(name).collect();
            names.join(", ")
        }
        _ => return None,
    };
    Some(json!(text))
}

fn part<'a>(reference: &'a Value, name: &str) -> &'a str {
    reference
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns an owner as `deployment.apps/name`.
fn owner(reference: &Value) -> String {
    let kind = part(reference, "kind").to_lowercase();
    let name = part(reference, "name");
    match part(reference, "apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

/// Returns the parameter of a policy binding. A cluster-scoped one cannot be told from one in the
/// namespace of each request.
fn parameter(reference: &Value) -> String {
    match (part(reference, "namespace"), part(reference, "name")) {
        (_, "") => "<unset>".to_owned(),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

fn parent(reference: &Value) -> String {
    let parts = ["group", "namespace", "name"].map(|name| part(reference, name));
    let [group, namespace, name] = parts;
    let resource = match group {
        "" => part(reference, "resource").to_lowercase(),
        group => format!("{}.{group}", part(reference, "resource")).to_lowercase(),
    };
    match namespace {
        "" => format!("{resource}/{name}"),
        namespace => format!("{resource}/{namespace}/{name}"),
    }
}
