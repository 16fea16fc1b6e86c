//! Mappings: which primaries does a watched object wake?
//!
//! It owns the mappings that look at one object only, and takes one step: whoever the owner's owner is, it is not asked for. It must not know which primaries there
//! are: a name that it returns may belong to nobody. What needs the stores (`index`) or the plugin (`guest`) is the host's.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::field_path::FieldPath;
use crate::key::{Gvk, ObjectName};
use crate::metadata::Metadata;

/// How a watched object names the primaries that it wakes, as a description writes it: `"owner"`, `{"label": "example.com/parent"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MapBy {
    /// The primary of the same namespace and name.
    Name,
    /// Every owner of the primary kind, controller or not.
    Owner,
    /// The owner that controls it, if it is of the primary kind.
    Controller,
    /// The plugin's `map` says.
    Guest,
    /// The value of this label is the primary's name, in the object's namespace.
    Label(String),
    /// The values at this path are names, or `namespace/name`, of primaries.
    Field(String),
    /// Every primary whose index of this name holds the object's name.
    Index(String),
}

/// A mapping that cannot be used: the author of the plugin has to act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("map: {reason}")]
pub struct MappingError {
    /// What is wrong with it.
    pub reason: String,
}

/// Do the objects of a kind lie in namespaces? Only the API server's discovery knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// They do.
    Namespaced,
    /// They do not.
    Cluster,
}

/// A primary that an object names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamedPrimary<'a> {
    /// Its namespace and name.
    pub name: ObjectName,
    /// The uid that it must have, as an owner reference says; without one, any that has the name.
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
    /// Compiles it; `Ok(None)`: `guest` or `index`, which no single object decides.
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

    /// The field that it looks at besides the metadata, as a dotted path for pruning.
    pub fn field(&self) -> Option<String> {
        match &self.by {
            By::Field(path) => Some(path.root_dotted()),
            _ => None,
        }
    }

    /// The primaries that this object names, each once, in its order.
    ///
    /// A namespaced primary lies in the object's namespace, unless a field's value says another; an object without a namespace names none by anything else. A
    /// primary without a namespace is named by its name alone. What is no object's name is passed over, as is metadata that cannot be read.
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

/// A primary beside the object.
fn local(primary: Scope, namespace: Option<&str>, name: &str) -> Option<ObjectName> {
    if !is_name(name) {
        return None;
    }
    match primary {
        Scope::Namespaced => Some(ObjectName::new(Some(namespace?), name)),
        Scope::Cluster => Some(ObjectName::new(None, name)),
    }
}

/// A primary in a namespace that the object names.
fn elsewhere(primary: Scope, (namespace, name): (&str, &str)) -> Option<ObjectName> {
    let sound = primary == Scope::Namespaced && is_namespace(namespace) && is_name(name);
    sound.then(|| ObjectName::new(Some(namespace), name))
}

/// Can an object have this name? The loosest rule that a kind may have: one segment of a URL's path (roles are called `system:node`).
fn is_name(name: &str) -> bool {
    let sound = |c: char| !matches!(c, '/' | '%') && !c.is_whitespace() && !c.is_control();
    !matches!(name, "" | "." | "..") && name.len() <= 253 && name.chars().all(sound)
}

/// A DNS label.
fn is_namespace(name: &str) -> bool {
    let sound = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty()
        && name.len() <= 63
        && name.chars().all(sound)
        && !name.starts_with('-')
        && !name.ends_with('-')
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
