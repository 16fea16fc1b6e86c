//! The tables of built-in kinds that the embedded API server has, made from the documents of a
//! kube-apiserver.
//!
//! Owns what is taken from discovery, from OpenAPI v3 and from the answers to lists (columns,
//! warnings, and which fields a selector may name), and where the tables are kept. Must not know
//! what the embedded server does with them.

mod fields;
mod files;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use http::{Request, header};
use kube::Client;
use serde_json::{Map, Value, json};

use crate::net;
use crate::wait::eventually;

pub use files::{Tables, differences};

const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const REFERENCE: &str = "#/components/schemas/";
const OF_KINDS: &str = "x-kubernetes-group-version-kind";
/// What a kind's row leaves out if it is so.
const ALL_VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// Makes the tables. The server must have no custom kinds.
pub async fn read(client: &Client) -> Result<Tables> {
    let mut groups = Vec::new();
    for path in ["/api", "/apis"] {
        let found = get(client, path, DISCOVERY).await?;
        let items = found["items"].as_array().context("discovery has items")?;
        groups.extend(items.iter().cloned());
    }
    let (definitions, descriptions) = definitions(client, &groups).await?;
    let mut kinds = Vec::new();
    for group in &groups {
        let name = group.pointer("/metadata/name").and_then(Value::as_str);
        for version in list(&group["versions"]) {
            for resource in list(&version["resources"]) {
                let place = Place {
                    group: name.unwrap_or_default(),
                    version: text(version, "version")?,
                };
                kinds.push(row(client, &place, resource, &definitions).await?);
            }
        }
    }
    Ok(Tables {
        kinds: Value::Array(kinds),
        definitions: Value::Object(definitions),
        descriptions: Value::Object(descriptions),
    })
}

/// A group and a version of it.
struct Place<'a> {
    group: &'a str,
    version: &'a str,
}

impl Place<'_> {
    fn path(&self) -> String {
        match self.group {
            "" => format!("api/{}", self.version),
            group => format!("apis/{group}/{}", self.version),
        }
    }
}

async fn get(client: &Client, path: &str, accept: &str) -> Result<Value> {
    let request = Request::get(path)
        .header(header::ACCEPT, accept)
        .body(Vec::new())?;
    let (code, value) = net::answer(client, request).await?;
    ensure!(code == 200, "GET {path}: {code} {value}");
    Ok(value)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str> {
    let found = value.get(name).and_then(Value::as_str);
    found.with_context(|| format!("no {name} in {value}"))
}

/// Returns the definitions of all documents, and their descriptions.
async fn definitions(
    client: &Client,
    groups: &[Value],
) -> Result<(Map<String, Value>, Map<String, Value>)> {
    let paths = eventually("every group has a document", async || {
        let index = get(client, "/openapi/v3", "application/json").await?;
        let paths = index["paths"].as_object().context("the index has paths")?;
        let complete = groups.iter().all(|group| {
            let name = group.pointer("/metadata/name").and_then(Value::as_str);
            list(&group["versions"]).all(|version| {
                let place = Place {
                    group: name.unwrap_or_default(),
                    version: version["version"].as_str().unwrap_or_default(),
                };
                paths.contains_key(&place.path())
            })
        });
        Ok(complete.then(|| paths.clone()))
    })
    .await?;
    let (mut definitions, mut descriptions) = (Map::new(), Map::new());
    for place in paths.values() {
        let document = get(
            client,
            text(place, "serverRelativeURL")?,
            "application/json",
        )
        .await?;
        let schemas = document.pointer("/components/schemas");
        let schemas = schemas.and_then(Value::as_object).into_iter().flatten();
        for (name, schema) in schemas.filter(|(name, schema)| !is_list(name, schema)) {
            let mut definition = form(schema);
            let of_many = list(&definition[OF_KINDS]).count() > 1;
            if let Some(definition) = definition.as_object_mut().filter(|_| of_many) {
                // A type of every group, such as DeleteOptions.
                definition.remove(OF_KINDS);
            }
            definitions.insert(name.clone(), definition);
            let said = descriptions_of(schema);
            if !said.is_empty() {
                descriptions.insert(name.clone(), Value::Object(said));
            }
        }
    }
    Ok((definitions, descriptions))
}

/// Returns whether a definition is the list of a kind, which follows from the kind.
fn is_list(name: &str, schema: &Value) -> bool {
    let items = schema.pointer("/properties/items");
    name.ends_with("List") && items.is_some() && schema.get(OF_KINDS).is_some()
}

/// Returns a schema without descriptions, whose references are names.
fn form(schema: &Value) -> Value {
    let mut out = Map::new();
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        let reference = |value: &Value| {
            let name = value.get("$ref")?.as_str()?;
            name.strip_prefix(REFERENCE).map(|name| json!(name))
        };
        let only = value.as_array().filter(|all| all.len() == 1);
        let only = only.and_then(|all| reference(all.first()?));
        match (keyword.as_str(), value, only) {
            ("description", _, _) => {}
            ("allOf", _, Some(name)) => {
                out.insert("$ref".to_owned(), name);
            }
            ("$ref", _, _) => {
                out.extend(reference(schema).map(|name| ("$ref".to_owned(), name)));
            }
            ("properties", Value::Object(fields), _) => {
                let fields = fields
                    .iter()
                    .map(|(name, field)| (name.clone(), form(field)));
                out.insert(keyword.clone(), Value::Object(fields.collect()));
            }
            ("items" | "additionalProperties", Value::Object(_), _) => {
                out.insert(keyword.clone(), form(value));
            }
            _ => {
                out.insert(keyword.clone(), value.clone());
            }
        }
    }
    Value::Object(out)
}

fn descriptions_of(schema: &Value) -> Map<String, Value> {
    let mut said = Map::new();
    let own = schema.get("description").cloned();
    said.extend(own.map(|text| (String::new(), text)));
    let fields = schema.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        let text = field.get("description").cloned();
        said.extend(text.map(|text| (name.clone(), text)));
    }
    said
}

/// Returns the row of a kind in one version.
async fn row(
    client: &Client,
    place: &Place<'_>,
    resource: &Value,
    definitions: &Map<String, Value>,
) -> Result<Value> {
    let kind = text(&resource["responseKind"], "kind")?;
    let plural = text(resource, "resource")?;
    let definition = definition_of(place, kind, definitions)?;
    let mut row = json!({
        "group": place.group, "version": place.version, "kind": kind, "plural": plural,
        "namespaced": resource["scope"] == "Namespaced", "definition": definition,
    });
    let singular = text(resource, "singularResource")?;
    if singular != kind.to_lowercase() {
        row["singular"] = json!(singular);
    }
    if resource["verbs"] != json!(ALL_VERBS) {
        row["verbs"] = resource["verbs"].clone();
    }
    for names in ["shortNames", "categories"] {
        if list(&resource[names]).next().is_some() {
            row[names] = resource[names].clone();
        }
    }
    let subresources = list(&resource["subresources"]).map(|sub| subresource(place, sub));
    let subresources = subresources.collect::<Result<Vec<_>>>()?;
    if !subresources.is_empty() {
        row["subresources"] = json!(subresources);
    }
    if list(&resource["verbs"]).any(|verb| verb == "list") {
        let path = format!("/{}/{plural}", place.path());
        shown(client, &path, &mut row).await?;
        let selectable = fields::selectable(client, &path, definition, definitions).await?;
        if !selectable.is_empty() {
            row["selectable"] = json!(selectable);
        }
    }
    Ok(row)
}

fn subresource(place: &Place<'_>, sub: &Value) -> Result<Value> {
    let kind = &sub["responseKind"];
    let part = |name: &str| kind[name].as_str().unwrap_or_default();
    // An empty version stands for the group and version of the kind itself.
    let (group, version) = match part("version") {
        "" => (place.group, place.version),
        version => (part("group"), version),
    };
    Ok(json!({
        "name": text(sub, "subresource")?, "group": group, "version": version,
        "kind": text(kind, "kind")?, "verbs": sub["verbs"],
    }))
}

fn definition_of<'a>(
    place: &Place<'_>,
    kind: &str,
    definitions: &'a Map<String, Value>,
) -> Result<&'a str> {
    let wanted = json!({ "group": place.group, "version": place.version, "kind": kind });
    let mut found = definitions
        .iter()
        .filter(|(_, definition)| list(&definition[OF_KINDS]).any(|one| *one == wanted));
    let (name, _) = found
        .next()
        .with_context(|| format!("no definition of {wanted}"))?;
    Ok(name)
}

/// Adds the columns of a kind's tables, and the warning that its lists come with.
async fn shown(client: &Client, path: &str, row: &mut Value) -> Result<()> {
    let request = Request::get(format!("{path}?limit=1"))
        .header(header::ACCEPT, TABLE)
        .body(kube::client::Body::from(Vec::new()))?;
    let response = client.send(request).await?;
    let warning = response.headers().get(header::WARNING);
    let warning = warning.and_then(|text| text.to_str().ok());
    // `299 - "text"`
    let warning = warning.and_then(|text| text.split_once('"')?.1.strip_suffix('"'));
    if let Some(text) = warning {
        row["warning"] = json!(text);
    }
    let table = get(client, &format!("{path}?limit=1"), TABLE).await?;
    let columns = list(&table["columnDefinitions"]).map(|column| {
        let parts = ["name", "type", "format", "description", "priority"].into_iter();
        let parts = parts.filter_map(|part| Some((part, column.get(part)?.clone())));
        let set = |value: &Value| *value != json!("") && *value != json!(0);
        let parts = parts.filter(|(_, value)| set(value));
        parts.collect::<BTreeMap<&str, Value>>()
    });
    row["columns"] = json!(columns.collect::<Vec<_>>());
    Ok(())
}
