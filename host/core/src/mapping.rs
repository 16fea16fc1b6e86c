//! Mappings: which primaries a watched object wakes.
//!
//! This module owns the mappings that need only one object, and makes one step: it does not follow
//! the owner's owner. It must not know which primaries exist: a returned name may belong to no
//! object. The host implements the mappings that need the stores (`index`) or the plugin (`guest`).

use std::borrow::Cow;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::field_path::FieldPath;
use crate::key::{Gvk, ObjectName, is_dns_label, is_path_segment};
use crate::metadata::Metadata;

/// How a watched object names the primaries that it wakes, as a description writes it: `"owner"`,
/// `{"label": "example.com/parent"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MapBy {
    /// The primary with the same namespace and name.
    Name,
    /// Every owner of the primary kind, whether it controls the object or not.
    Owner,
    /// The controlling owner, if it is of the primary kind.
    Controller,
    /// The plugin's function `map` returns the keys.
    Guest,
    /// The value of this label is the primary's name, in the object's namespace.
    Label(String),
    /// The values at this path are names, or `namespace/name`, of primaries.
    Field(String),
    /// Every primary whose index of this name holds the object's name.
    Index(String),
}

/// An invalid mapping. The author of the plugin must fix it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("map: {reason}")]
pub struct MappingError {
    /// Why the mapping is invalid.
    pub reason: String,
}

/// Whether the objects of a kind are namespaced. Only the API server's discovery knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Objects are in namespaces.
    Namespaced,
    /// Objects are cluster-scoped.
    Cluster,
}

/// A primary that an object names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamedPrimary<'a> {
    /// Namespace and name of the primary.
    pub name: ObjectName,
    /// The uid that the primary must have, from an owner reference; `None` if any uid matches.
    pub uid: Option<Cow<'a, str>>,
}

/// A compiled mapping to one primary kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    by: By,
    group: String,
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    Name,
    Owner,
    Controller,
    Label(String),
    Field(FieldPath),
}

impl Mapping {
    /// Compiles a mapping; `Ok(None)` for `guest` and `index`, which need more than one object.
    pub fn compile(map: &MapBy, primary: &Gvk) -> Result<Option<Self>, MappingError> {
        let by = match map {
            MapBy::Name => By::Name,
            MapBy::Owner => By::Owner,
            MapBy::Controller => By::Controller,
            MapBy::Label(key) if crate::selector::is_label_key(key) => By::Label(key.clone()),
            MapBy::Label(key) => {
                return Err(MappingError {
                    reason: format!("{key:?} is not a label key"),
                });
            }
            MapBy::Field(path) => {
                By::Field(FieldPath::parse(path).map_err(|error| MappingError {
                    reason: error.to_string(),
                })?)
            }
            MapBy::Guest | MapBy::Index(_) => return Ok(None),
        };
        Ok(Some(Self {
            by,
            group: primary.group.clone(),
            kind: primary.kind.clone(),
        }))
    }

    /// The field that the mapping reads besides the metadata, as a dotted path for pruning.
    pub fn field(&self) -> Option<String> {
        match &self.by {
            By::Field(path) => Some(path.root_dotted()),
            _ => None,
        }
    }

    /// The primaries that this object names, each once, in the order of the text.
    ///
    /// A namespaced primary is in the object's namespace, unless a field's value names another; an
    /// object without a namespace names such a primary only by `namespace/name`. A cluster-scoped
    /// primary is named by its name alone. Values that are not valid names are skipped, as is
    /// metadata that cannot be parsed.
    pub fn names<'a>(
        &self,
        object: &'a str,
        name: &ObjectName,
        primary: Scope,
    ) -> Vec<NamedPrimary<'a>> {
        let namespace = name.namespace();
        let by_name = |name| NamedPrimary { name, uid: None };
        let found: Vec<NamedPrimary<'a>> = match &self.by {
            By::Name => local(primary, namespace, name.name())
                .map(by_name)
                .into_iter()
                .collect(),
            By::Field(path) => {
                let values = path.values(object);
                let names = values
                    .iter()
                    .filter_map(|value| match value.split_once('/') {
                        Some(of) => elsewhere(primary, of),
                        None => local(primary, namespace, value),
                    });
                names.map(by_name).collect()
            }
            By::Label(key) => {
                let metadata = Metadata::parse(object).unwrap_or_default();
                let value = metadata.labels.get(key);
                let name = value.and_then(|value| local(primary, namespace, value));
                name.map(by_name).into_iter().collect()
            }
            By::Owner | By::Controller => {
                let metadata = Metadata::parse(object).unwrap_or_default();
                let owners = metadata.owners.into_iter();
                owners
                    .filter(|owner| self.by == By::Owner || owner.controller)
                    .filter(|owner| owner.is_of(&self.group, &self.kind))
                    .filter_map(|owner| {
                        Some(NamedPrimary {
                            name: local(primary, namespace, &owner.name)?,
                            uid: Some(owner.uid),
                        })
                    })
                    .collect()
            }
        };
        once(found)
    }
}

/// A primary in the object's namespace, or a cluster-scoped one.
fn local(primary: Scope, namespace: Option<&str>, name: &str) -> Option<ObjectName> {
    if !is_name(name) {
        return None;
    }
    match primary {
        Scope::Namespaced => Some(ObjectName::new(Some(namespace?), name)),
        Scope::Cluster => Some(ObjectName::new(None, name)),
    }
}

/// A primary in a namespace that the field's value names.
fn elsewhere(primary: Scope, (namespace, name): (&str, &str)) -> Option<ObjectName> {
    let sound = primary == Scope::Namespaced && is_dns_label(namespace) && is_name(name);
    sound.then(|| ObjectName::new(Some(namespace), name))
}

/// Returns whether an object can have this name, by the loosest rule of any kind: one segment of a
/// URL path (roles have names such as `system:node`).
fn is_name(name: &str) -> bool {
    let sound = |c: char| !c.is_whitespace() && !c.is_control();
    is_path_segment(name) && name.len() <= 253 && name.chars().all(sound)
}

fn once(names: Vec<NamedPrimary<'_>>) -> Vec<NamedPrimary<'_>> {
    if names.len() < 2 {
        return names;
    }
    let mut seen = HashSet::with_capacity(names.len());
    let mut names = names;
    names.retain(|name| seen.insert(name.clone()));
    names
}

#[cfg(test)]
mod tests;
