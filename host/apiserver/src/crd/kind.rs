//! Builds the kind that a CustomResourceDefinition describes. Must not know whether the definition
//! may be written.

use serde_json::{Map, Value, json};
use vmhost_rules::Rules;
use vmhost_schema::Schema;

use crate::builtin;
use crate::jsonpath::JsonPath;
use crate::kinds::{
    ALL_VERBS, Column, Conversion, Deletion, Fill, Kind, Scale, Show, Version, join_version,
};
use crate::meta;
use crate::meta::check::Names;
use crate::reach::Reach;

/// The description of the column of a kind without columns.
const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// Returns a mark that differs between definitions whose kinds differ.
pub(crate) fn mark(definition: &Value) -> String {
    let generation = meta::get(definition, "generation")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    format!(
        "{}/{generation}/{}",
        meta::text(definition, "uid"),
        meta::is_deleting(definition)
    )
}

/// Returns the kind of a validated definition; `None` if it is invalid all the same.
pub(crate) fn of(definition: &Value, mark: String) -> Option<Kind> {
    let spec = definition.get("spec")?;
    let group = spec.get("group")?.as_str()?.to_owned();
    let names = spec.get("names")?;
    let text = |name: &str| names.get(name).and_then(Value::as_str).map(str::to_owned);
    let texts = |name: &str| {
        let list = names
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let plural = text("plural")?;
    let rows = spec.get("versions")?.as_array()?;
    let stored = rows
        .iter()
        .find(|v| v["storage"] == json!(true))?
        .get("name")?
        .as_str()?;
    Some(Kind {
        storage: storage(&group, &plural).into(),
        stored_as: join_version(&group, stored),
        registry: format!("{group}/{plural}"),
        kind: text("kind")?,
        list_kind: text("listKind")?,
        singular: text("singular")?,
        short_names: texts("shortNames"),
        categories: texts("categories"),
        namespaced: spec.get("scope")?.as_str()? == "Namespaced",
        verbs: ALL_VERBS.iter().map(|v| (*v).to_owned()).collect(),
        renames: Vec::new(),
        custom: true,
        definition: mark,
        terminating: meta::is_deleting(definition),
        create_on_update: false,
        has_generation: true,
        answer: None,
        defaults: Value::Null,
        fill: Fill::default(),
        content: Vec::new(),
        deletion: Deletion::default(),
        unknown_field: "field label not supported: {}".to_owned(),
        encoded: Vec::new(),
        protected: Vec::new(),
        fixed: Vec::new(),
        unnamed_rows: false,
        names: Names::default(),
        named_by_uid: false,
        conversion: conversion(spec),
        versions: rows.iter().map(|row| version(&group, names, row)).collect(),
        group,
        plural,
    })
}

fn conversion(spec: &Value) -> Option<Conversion> {
    let conversion = spec.get("conversion")?;
    if conversion["strategy"] != "Webhook" {
        return None;
    }
    let webhook = &conversion["webhook"];
    let versions = webhook["conversionReviewVersions"].as_array();
    let mut versions = versions.into_iter().flatten().filter_map(Value::as_str);
    Some(Conversion {
        reach: Reach::read(&webhook["clientConfig"]),
        version: versions.find_map(|version| match version {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        }),
    })
}

/// Returns the storage of a custom kind. A definition may have the group and the name of a built-in
/// kind, but must not reach its objects.
fn storage(group: &str, plural: &str) -> String {
    let name = format!("{group}/{plural}");
    let is_taken = builtin::kinds().iter().any(|kind| *kind.storage == *name);
    match is_taken {
        true => format!("custom/{name}"),
        false => name,
    }
}

fn version(group: &str, names: &Value, row: &Value) -> Version {
    let raw_schema = row
        .pointer("/schema/openAPIV3Schema")
        .cloned()
        .unwrap_or_else(|| Value::Object(Map::new()));
    let name = row["name"].as_str().unwrap_or_default().to_owned();
    let kind = names["kind"].as_str().unwrap_or_default();
    let deprecated = row["deprecated"] == json!(true);
    let warning = row["deprecationWarning"].as_str().map(str::to_owned);
    let path = |pointer: &str| {
        row.pointer(pointer)
            .and_then(Value::as_str)
            .and_then(JsonPath::parse)
    };
    let scale = (|| {
        Some(Scale {
            spec: path("/subresources/scale/specReplicasPath")?,
            status: path("/subresources/scale/statusReplicasPath")?,
            selector: path("/subresources/scale/labelSelectorPath"),
        })
    })();
    let selectable = row
        .get("selectableFields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let selectable = selectable.filter_map(|f| f["jsonPath"].as_str());
    Version {
        served: row["served"] == json!(true),
        schema: Schema::parse(&raw_schema).ok(),
        empty: None,
        rules: Rules::compile(&raw_schema, "").unwrap_or_default(),
        raw_schema,
        columns: columns(row),
        status: row
            .pointer("/subresources/status")
            .is_some_and(Value::is_object),
        scale,
        others: Vec::new(),
        selectable: selectable
            .filter_map(|p| {
                Some((
                    p.trim_start_matches('.').to_owned(),
                    vec![JsonPath::parse(p)?],
                ))
            })
            .collect(),
        warning: deprecated.then(|| {
            warning
                .unwrap_or_else(|| format!("{} {kind} is deprecated", join_version(group, &name)))
        }),
        name,
    }
}

fn columns(row: &Value) -> Vec<Column> {
    let rows = row
        .get("additionalPrinterColumns")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if rows.is_empty() {
        return vec![Column {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            description: AGE.to_owned(),
            priority: 0,
            paths: JsonPath::parse(".metadata.creationTimestamp")
                .into_iter()
                .collect(),
            show: Show::Age,
        }];
    }
    let column = |row: &Value| {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let date = text("type") == "date";
        Column {
            name: text("name"),
            format: text("format"),
            description: match text("description") {
                none if none.is_empty() => {
                    let path = text("jsonPath");
                    format!("Custom resource definition column (in JSONPath format): {path}")
                }
                given => given,
            },
            priority: row["priority"].as_i64().unwrap_or(0),
            paths: JsonPath::parse(&text("jsonPath")).into_iter().collect(),
            show: if date { Show::Age } else { Show::Value },
            kind: text("type"),
        }
    };
    rows.iter().map(column).collect()
}
