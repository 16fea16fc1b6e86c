//! Which objects of a kind a controller watches, and which keys a change wakes.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::description::Kind;

/// A kind that a controller watches or reads. A [`Kind`] alone stands for all of its objects.
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

/// Which keys a change of a watched object wakes. The old and the new object are both mapped.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Map {
    /// The primary of the same namespace and name.
    Name,
    /// Primaries in its owner references.
    Owner,
    /// The primary in its controller reference.
    Controller,
    /// The keys that [`Policy::map_changes`](crate::Policy::map_changes) returns.
    Guest,
    /// The value of this label is the primary's name.
    Label(String),
    /// The values of this field are names of primaries.
    Field(String),
    /// All primaries whose index of this name contains the object's name.
    Index(String),
}

/// Which changes wake keys; all conditions must hold. A deletion and the beginning of a deletion
/// always wake keys.
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
    /// Watches all objects of a kind.
    pub fn new(kind: Kind) -> Self {
        kind.into()
    }

    /// Watches only objects with these labels; other objects are not in the cache.
    pub fn label_selector(mut self, selector: &str) -> Self {
        self.label_selector = Some(selector.into());
        self
    }

    /// Watches only objects with these fields, such as `metadata.name=x`.
    pub fn field_selector(mut self, selector: &str) -> Self {
        self.field_selector = Some(selector.into());
        self
    }

    /// Restricts snapshots to these fields (dotted paths) besides `apiVersion`, `kind` and
    /// `metadata`.
    pub fn wanted_fields(mut self, fields: &[&str]) -> Self {
        self.wanted_fields = Some(fields.iter().map(|&field| field.into()).collect());
        self
    }

    /// Restricts snapshots to `apiVersion`, `kind` and `metadata`.
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self
    }

    /// Adds an index, for `cluster::list` and [`Map::Index`]: its name, and the path of the field,
    /// such as `spec.volumes[*].secret.secretName`.
    pub fn index(mut self, name: &str, path: &str) -> Self {
        self.indexes.insert(name.into(), path.into());
        self
    }

    /// Restricts the changes that wake keys.
    pub fn predicates(mut self, predicates: Predicates) -> Self {
        self.predicates = Some(predicates);
        self
    }

    /// For `reads`: nothing is cached, and only live reads work.
    pub fn live(mut self) -> Self {
        self.live = true;
        self
    }
}

impl Predicates {
    /// Accepts any change.
    pub fn new() -> Self {
        Self::default()
    }

    fn or_changed(mut self, what: &'static str) -> Self {
        self.changed.push(what);
        self
    }

    /// Requires of an update that `metadata.generation` differs, or another selected `…_changed`.
    /// The generation counts changes of the spec, for kinds that count them.
    pub fn generation_changed(self) -> Self {
        self.or_changed("generation")
    }

    /// Like [`Predicates::generation_changed`], for the labels.
    pub fn labels_changed(self) -> Self {
        self.or_changed("labels")
    }

    /// Like [`Predicates::generation_changed`], for the annotations.
    pub fn annotations_changed(self) -> Self {
        self.or_changed("annotations")
    }

    /// Like [`Predicates::generation_changed`], for anything.
    pub fn resource_version_changed(self) -> Self {
        self.or_changed("resourceVersion")
    }

    /// Requires that the old or the new object has these labels.
    pub fn label_selector(mut self, selector: &str) -> Self {
        self.label_selector = Some(selector.into());
        self
    }

    /// Requires that the old or the new object has these fields, on any path: `spec.nodeName=a`.
    pub fn field_selector(mut self, selector: &str) -> Self {
        self.field_selector = Some(selector.into());
        self
    }

    /// Requires that a CEL expression over `object` and `oldObject` (null for a new object) is
    /// true. An error wakes the keys.
    pub fn cel(mut self, expression: &str) -> Self {
        self.cel = Some(expression.into());
        self
    }
}
