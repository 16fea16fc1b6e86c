//! Which objects of a kind a controller watches, and which changes wake whom.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::description::Kind;

/// A kind that a controller watches or reads. A [`Kind`] alone is all of its objects.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    #[serde(flatten)]
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    label_selector: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field_selector: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wanted_fields: Option<Vec<String>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    metadata_only: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    indexes: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predicates: Option<Predicates>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) map: Option<Map>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    live: bool,
}

/// Whom a change of a watched object wakes. The old and the new object are both mapped.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Map {
    /// The primary of the same namespace and name.
    Name,
    /// Primaries in its owner references.
    Owner,
    /// The primary in its controller reference.
    Controller,
    /// [`Policy::map_changes`](crate::Policy::map_changes) says.
    Guest,
    /// The value of this label is the primary's name.
    Label(String),
    /// The values of this field are names of primaries.
    Field(String),
    /// All primaries whose index of this name holds the object's name.
    Index(String),
}

/// Which changes wake anybody; all conditions hold together. A deletion always does, and so does the beginning of one.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Predicates {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label_selector: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field_selector: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cel: Option<String>,
}

impl From<Kind> for Watch {
    fn from(kind: Kind) -> Self {
        Self {
            kind,
            label_selector: None,
            field_selector: None,
            wanted_fields: None,
            metadata_only: false,
            indexes: BTreeMap::new(),
            predicates: None,
            map: None,
            live: false,
        }
    }
}

impl Watch {
    /// All objects of a kind.
    pub fn new(kind: Kind) -> Self {
        kind.into()
    }

    /// Only objects with these labels; the others are not in the cache.
    pub fn label_selector(mut self, selector: &str) -> Self {
        self.label_selector = Some(selector.into());
        self
    }

    /// Only objects with these fields, such as `metadata.name=x`.
    pub fn field_selector(mut self, selector: &str) -> Self {
        self.field_selector = Some(selector.into());
        self
    }

    /// The snapshots hold only these fields (dotted paths) besides `apiVersion`, `kind` and `metadata`.
    pub fn wanted_fields(mut self, fields: &[&str]) -> Self {
        self.wanted_fields = Some(fields.iter().map(|&field| field.into()).collect());
        self
    }

    /// The snapshots hold `apiVersion`, `kind` and `metadata` only.
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self
    }

    /// An index, for `cluster::list` and [`Map::Index`]: its name, and the path of the field, such as `spec.volumes[*].secret.secretName`.
    pub fn index(mut self, name: &str, path: &str) -> Self {
        self.indexes.insert(name.into(), path.into());
        self
    }

    /// Only these changes wake anybody.
    pub fn predicates(mut self, predicates: Predicates) -> Self {
        self.predicates = Some(predicates);
        self
    }

    /// For `reads`: keep no cache of it, answer live reads only.
    pub fn live(mut self) -> Self {
        self.live = true;
        self
    }
}

impl Predicates {
    /// Any change.
    pub fn new() -> Self {
        Self::default()
    }

    fn or_changed(mut self, what: &'static str) -> Self {
        self.changed.push(what);
        self
    }

    /// Of an update: this, or another `…_changed` that is asked for, differs. `metadata.generation`: the specification, for kinds that count it.
    pub fn generation_changed(self) -> Self {
        self.or_changed("generation")
    }

    /// As [`Predicates::generation_changed`], for the labels.
    pub fn labels_changed(self) -> Self {
        self.or_changed("labels")
    }

    /// As [`Predicates::generation_changed`], for the annotations.
    pub fn annotations_changed(self) -> Self {
        self.or_changed("annotations")
    }

    /// As [`Predicates::generation_changed`], for anything.
    pub fn resource_version_changed(self) -> Self {
        self.or_changed("resourceVersion")
    }

    /// The old or the new object has these labels.
    pub fn label_selector(mut self, selector: &str) -> Self {
        self.label_selector = Some(selector.into());
        self
    }

    /// The old or the new object has these fields, on any path: `spec.nodeName=a`.
    pub fn field_selector(mut self, selector: &str) -> Self {
        self.field_selector = Some(selector.into());
        self
    }

    /// A CEL expression over `object` and `oldObject` (null for a new object). An error wakes.
    pub fn cel(mut self, expression: &str) -> Self {
        self.cel = Some(expression.into());
        self
    }
}
