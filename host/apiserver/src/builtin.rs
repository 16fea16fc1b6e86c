//! The built-in kinds, as data.
//!
//! Owns the form of their table (`kinds.json`), and the storages of the two kinds that other
//! objects depend on. Must not know requests, or what is done with an object.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::{Map, Value};
use vmhost_schema::Schema;

use crate::jsonpath::JsonPath;
use crate::kinds::{ALL_VERBS, Column, Fill, Kind, Scale, Show, Version, join_version};

/// The storage of namespaces.
pub(crate) const NAMESPACES: &str = "/namespaces";
/// The storage of CustomResourceDefinitions.
pub(crate) const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Row {
    #[serde(default)]
    group: String,
    version: String,
    kind: String,
    plural: String,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default)]
    namespaced: bool,
    verbs: Option<Vec<String>>,
    #[serde(default)]
    status: bool,
    storage: Option<String>,
    stored_as: Option<String>,
    #[serde(default)]
    renames: BTreeMap<String, String>,
    #[serde(default)]
    create_on_update: bool,
    #[serde(default)]
    has_generation: bool,
    answer: Option<Value>,
    #[serde(default)]
    defaults: Value,
    #[serde(default)]
    fill: Fill,
    #[serde(default)]
    annotations_are_content: bool,
    scale: Option<ScaleRow>,
    warning: Option<String>,
    #[serde(default)]
    encoded: BTreeMap<String, String>,
    #[serde(default)]
    protected: Vec<String>,
    #[serde(default)]
    unnamed_rows: bool,
    #[serde(default)]
    label_names: bool,
    #[serde(default)]
    columns: Vec<ColumnRow>,
    #[serde(default)]
    selectable: Vec<SelectableRow>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ColumnRow {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    paths: Vec<String>,
    #[serde(default)]
    priority: i64,
    #[serde(default)]
    show: Show,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScaleRow {
    spec: String,
    status: String,
    selector: String,
}

impl ScaleRow {
    fn read(&self) -> Option<Scale> {
        Some(Scale {
            spec: JsonPath::parse(&self.spec)?,
            status: JsonPath::parse(&self.status)?,
            selector: JsonPath::parse(&self.selector),
        })
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SelectableRow {
    Same(String),
    At { field: String, paths: Vec<String> },
}

/// Returns the built-in kinds. They are parsed once: their schemas are large, and tests create many
/// clusters.
pub(crate) fn kinds() -> Vec<Arc<Kind>> {
    static KINDS: LazyLock<Vec<Arc<Kind>>> = LazyLock::new(|| {
        // The table is embedded and a test parses it, so the result is never empty.
        let rows: Vec<Row> = serde_json::from_str(include_str!("kinds.json")).unwrap_or_default();
        rows.into_iter().map(|row| Arc::new(kind_of(row))).collect()
    });
    KINDS.clone()
}

fn kind_of(row: Row) -> Kind {
    let raw_schema =
        vmhost_schema::builtin(&row.group, &row.kind).unwrap_or_else(|| Value::Object(Map::new()));
    let schema = raw_schema
        .as_object()
        .filter(|s| !s.is_empty())
        .and_then(|_| Schema::parse(&raw_schema).ok());
    let paths = |texts: &[String]| {
        texts
            .iter()
            .filter_map(|t| JsonPath::parse(t))
            .collect::<Vec<_>>()
    };
    let columns = row.columns.iter().map(|c| Column {
        name: c.name.clone(),
        kind: c.kind.clone(),
        format: String::new(),
        description: String::new(),
        priority: c.priority,
        paths: paths(&c.paths),
        show: c.show,
    });
    let selectable = row.selectable.iter().map(|s| match s {
        SelectableRow::Same(field) => (field.clone(), paths(std::slice::from_ref(field))),
        SelectableRow::At {
            field,
            paths: texts,
        } => (field.clone(), paths(texts)),
    });
    let version = Version {
        name: row.version.clone(),
        served: true,
        raw_schema,
        schema,
        columns: columns.collect(),
        status: row.status,
        scale: row.scale.as_ref().and_then(ScaleRow::read),
        selectable: selectable.collect(),
        warning: row.warning,
    };
    let all = || ALL_VERBS.iter().map(|v| (*v).to_owned()).collect();
    Kind {
        storage: row
            .storage
            .unwrap_or_else(|| format!("{}/{}", row.group, row.plural))
            .into(),
        stored_as: row
            .stored_as
            .unwrap_or_else(|| join_version(&row.group, &row.version)),
        list_kind: format!("{}List", row.kind),
        singular: row.kind.to_lowercase(),
        verbs: row.verbs.unwrap_or_else(all),
        renames: row.renames.into_iter().collect(),
        group: row.group,
        kind: row.kind,
        plural: row.plural,
        short_names: row.short_names,
        categories: row.categories,
        namespaced: row.namespaced,
        custom: false,
        definition: String::new(),
        terminating: false,
        create_on_update: row.create_on_update,
        has_generation: row.has_generation,
        answer: row.answer,
        defaults: row.defaults,
        fill: row.fill,
        annotations_are_content: row.annotations_are_content,
        encoded: row.encoded.into_iter().collect(),
        protected: row.protected,
        unnamed_rows: row.unnamed_rows,
        label_names: row.label_names,
        versions: vec![version],
    }
}
