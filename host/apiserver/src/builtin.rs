//! The built-in kinds, as data.
//!
//! Owns the form of their three tables: what a real server publishes of each kind
//! (`builtin/kinds.zz`, made by the suite's `table` from its discovery documents), what it does but
//! does not publish (`builtin/behaviour.json`, by hand), and how Go encodes a value of each kind in
//! which nothing is set (`builtin/empty.json`, made by `tests/kube-apiserver/cmd/empty`). Owns the
//! storages of the kinds that other objects depend on. Must not know requests, or what is done with
//! an object.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::jsonpath::JsonPath;
use crate::kinds::{
    ALL_VERBS, Column, Deletion, Fill, Fixed, Kind, Scale, Show, Subresource, Version, join_version,
};
use crate::meta::check::Names;

/// The storage of namespaces.
pub(crate) const NAMESPACES: &str = "/namespaces";
/// The storage of CustomResourceDefinitions.
pub(crate) const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// The storages of which the server itself reads objects when others are written, or at each
/// request.
pub(crate) const OFTEN_READ: &[&str] = &[
    NAMESPACES,
    DEFINITIONS,
    "/services",
    "rbac.authorization.k8s.io/clusterrolebindings",
    "rbac.authorization.k8s.io/clusterroles",
    "rbac.authorization.k8s.io/rolebindings",
    "rbac.authorization.k8s.io/roles",
    "scheduling.k8s.io/priorityclasses",
];

/// How most kinds refuse a field selector with an unknown field.
const UNKNOWN_FIELD: &str =
    r#""{}" is not a known field selector: only "metadata.name", "metadata.namespace""#;

/// One version of a kind, as published. The preferred version of a kind comes first.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Row {
    group: String,
    version: String,
    kind: String,
    plural: String,
    singular: Option<String>,
    namespaced: bool,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    /// Absent: all verbs.
    verbs: Option<Vec<String>>,
    #[serde(default)]
    subresources: Vec<Subresource>,
    /// The name of its schema.
    definition: String,
    #[serde(default)]
    columns: Vec<ColumnRow>,
    #[serde(default)]
    selectable: Vec<String>,
    warning: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnRow {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    format: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    priority: i64,
}

/// What a kind does that no document says.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Behaviour {
    storage: Option<String>,
    stored_as: Option<String>,
    /// Absent: the plural.
    registry: Option<String>,
    renames: BTreeMap<String, String>,
    create_on_update: bool,
    generation: bool,
    answer: Option<Value>,
    defaults: Value,
    fill: Fill,
    content: Vec<String>,
    deletion: Deletion,
    /// Absent: only name and namespace are known.
    unknown_field: Option<String>,
    encoded: BTreeMap<String, String>,
    protected: Vec<String>,
    fixed: Vec<Fixed>,
    names: Names,
    named_by_uid: bool,
    /// How columns are computed, by their names.
    cells: BTreeMap<String, Cell>,
    /// Selectable fields that are not the path of their name.
    selectable: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Deserialize)]
struct Cell(Show, Vec<String>);

/// Returns the built-in kinds. They are read once: tests create many clusters.
pub(crate) fn kinds() -> Vec<Arc<Kind>> {
    static KINDS: LazyLock<Vec<Arc<Kind>>> = LazyLock::new(read);
    KINDS.clone()
}

fn read() -> Vec<Arc<Kind>> {
    // The tables are embedded and tests parse them, so the results are never empty.
    let text = vmhost_schema::inflate(include_bytes!("builtin/kinds.zz"));
    let rows: Vec<Row> = serde_json::from_str(&text).unwrap_or_default();
    let behaviours: BTreeMap<String, Behaviour> =
        serde_json::from_str(include_str!("builtin/behaviour.json")).unwrap_or_default();
    let mut empty: BTreeMap<String, Value> =
        serde_json::from_str(include_str!("builtin/empty.json")).unwrap_or_default();
    let mut kinds: Vec<Kind> = Vec::new();
    for row in rows {
        let dot = if row.group.is_empty() { "" } else { "." };
        let name = format!("{}{dot}{}", row.kind, row.group);
        let behaviour = behaviours.get(&name).cloned().unwrap_or_default();
        let api_version = join_version(&row.group, &row.version);
        let empty = empty.remove(&format!("{api_version} {}", row.kind));
        let version = version_of(&row, &behaviour, empty);
        let same = |kind: &&mut Kind| kind.group == row.group && kind.plural == row.plural;
        match kinds.iter_mut().find(same) {
            Some(kind) => kind.versions.push(version),
            None => kinds.push(kind_of(row, behaviour, version)),
        }
    }
    kinds.into_iter().map(Arc::new).collect()
}

fn version_of(row: &Row, behaviour: &Behaviour, empty: Option<Value>) -> Version {
    let has = |name: &str| row.subresources.iter().any(|s| s.name == name);
    let others = row.subresources.iter();
    let others = others.filter(|s| !matches!(s.name.as_str(), "status" | "scale"));
    let scale = has("scale").then(|| {
        Some(Scale {
            spec: JsonPath::parse(".spec.replicas")?,
            status: JsonPath::parse(".status.replicas")?,
            selector: JsonPath::parse(".spec.selector"),
        })
    });
    let selectable = row.selectable.iter().chain(behaviour.selectable.keys());
    let mut selectable: Vec<&String> = selectable.collect();
    selectable.sort();
    selectable.dedup();
    let paths_of = |field: &String| {
        let other = behaviour.selectable.get(field);
        other.map_or_else(|| paths(std::slice::from_ref(field)), |list| paths(list))
    };
    Version {
        name: row.version.clone(),
        served: true,
        raw_schema: json!({ "$ref": row.definition }),
        schema: None,
        empty,
        rules: vmhost_rules::Rules::default(),
        columns: columns(row, behaviour),
        status: has("status"),
        scale: scale.flatten(),
        others: others.cloned().collect(),
        selectable: selectable
            .into_iter()
            .map(|field| (field.clone(), paths_of(field)))
            .collect(),
        warning: row.warning.clone(),
    }
}

fn paths(texts: &[String]) -> Vec<JsonPath> {
    texts.iter().filter_map(|t| JsonPath::parse(t)).collect()
}

/// Returns the columns of a kind, without the name that leads most tables.
fn columns(row: &Row, behaviour: &Behaviour) -> Vec<Column> {
    let named = usize::from(!is_unnamed(row));
    let rest = row.columns.iter().skip(named);
    rest.map(|column| {
        let (show, paths) = match (behaviour.cells.get(&column.name), column.name.as_str()) {
            (Some(Cell(show, texts)), _) => (*show, paths(texts)),
            (None, "Age") => (Show::Age, creation()),
            (None, "Created At") => (Show::Value, creation()),
            (None, _) => (Show::Value, Vec::new()),
        };
        Column {
            name: column.name.clone(),
            kind: column.kind.clone(),
            format: column.format.clone(),
            description: column.description.clone(),
            priority: column.priority,
            paths,
            show,
        }
    })
    .collect()
}

fn creation() -> Vec<JsonPath> {
    let path = JsonPath::parse(".metadata.creationTimestamp");
    path.into_iter().collect()
}

/// Returns whether the tables of a kind do not begin with the name.
fn is_unnamed(row: &Row) -> bool {
    let first = row.columns.first();
    first.is_some_and(|column| column.name != "Name")
}

fn kind_of(row: Row, behaviour: Behaviour, version: Version) -> Kind {
    let all = || ALL_VERBS.iter().map(|v| (*v).to_owned()).collect();
    let storage = behaviour.storage;
    Kind {
        storage: storage
            .unwrap_or_else(|| format!("{}/{}", row.group, row.plural))
            .into(),
        stored_as: behaviour
            .stored_as
            .unwrap_or_else(|| join_version(&row.group, &row.version)),
        registry: behaviour.registry.unwrap_or_else(|| row.plural.clone()),
        list_kind: format!("{}List", row.kind),
        unnamed_rows: is_unnamed(&row),
        singular: row.singular.unwrap_or_else(|| row.kind.to_lowercase()),
        verbs: row.verbs.unwrap_or_else(all),
        renames: behaviour.renames.into_iter().collect(),
        group: row.group,
        kind: row.kind,
        plural: row.plural,
        short_names: row.short_names,
        categories: row.categories,
        namespaced: row.namespaced,
        custom: false,
        definition: String::new(),
        terminating: false,
        create_on_update: behaviour.create_on_update,
        has_generation: behaviour.generation,
        answer: behaviour.answer,
        defaults: behaviour.defaults,
        fill: behaviour.fill,
        content: behaviour.content,
        deletion: behaviour.deletion,
        unknown_field: behaviour
            .unknown_field
            .unwrap_or_else(|| UNKNOWN_FIELD.to_owned()),
        encoded: behaviour.encoded.into_iter().collect(),
        protected: behaviour.protected,
        fixed: behaviour.fixed,
        names: behaviour.names,
        named_by_uid: behaviour.named_by_uid,
        conversion: None,
        versions: vec![version],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_behaviour_belongs_to_a_kind_and_every_cell_to_a_column() {
        let text = vmhost_schema::inflate(include_bytes!("builtin/kinds.zz"));
        let rows: Vec<Row> = serde_json::from_str(&text).unwrap();
        let behaviours: BTreeMap<String, Behaviour> =
            serde_json::from_str(include_str!("builtin/behaviour.json")).unwrap();
        for (name, behaviour) in &behaviours {
            let of =
                |row: &&Row| *name == format!("{}.{}", row.kind, row.group).trim_end_matches('.');
            let row = rows.iter().find(of).unwrap_or_else(|| panic!("{name}"));
            for column in behaviour.cells.keys() {
                let known = row.columns.iter().any(|c| c.name == *column);
                assert!(known, "{name}: {column}");
            }
        }
    }

    #[test]
    fn versions_know_what_their_objects_have_from_the_start() {
        let kinds = kinds();
        let of = |plural: &str| {
            let kind = kinds.iter().find(|kind| kind.plural == plural).unwrap();
            kind.versions[0].empty.clone()
        };
        let pod = of("pods").unwrap();
        assert_eq!(pod["spec"], json!({ "containers": null }));
        assert_eq!(of("configmaps"), None);
    }

    #[test]
    fn every_column_has_a_path() {
        let kinds = kinds();
        assert!(kinds.len() >= 60, "{}", kinds.len());
        for kind in &kinds {
            for version in &kind.versions {
                for column in &version.columns {
                    assert!(!column.paths.is_empty(), "{} {}", kind.kind, column.name);
                }
            }
        }
    }

    #[test]
    fn what_is_often_read_is_stored() {
        let kinds = kinds();
        for storage in OFTEN_READ {
            let mut all = kinds.iter();
            assert!(all.any(|kind| &*kind.storage == *storage), "{storage}");
        }
    }

    #[test]
    fn versions_of_one_kind_share_its_objects() {
        let kinds = kinds();
        let found = kinds
            .iter()
            .find(|k| k.plural == "horizontalpodautoscalers");
        let versions = found.unwrap().versions.iter().map(|v| v.name.as_str());
        assert_eq!(versions.collect::<Vec<_>>(), ["v2", "v1"]);
    }
}
