//! Mappings: which primaries does a watched object wake?
//!
//! It owns the mappings that look at one object only, and takes one step: whoever the owner's owner is, it is not asked for. It must not know which primaries there
//! are: a name that it returns may belong to nobody. What needs the stores (`index`) or the plugin (`guest`) is the host's.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::field_path::FieldPath;
use crate::key::{Gvk, ObjectName};
use crate::metadata::{Metadata, OwnerReference};

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
    pub fn names(&self, object: &str, name: &ObjectName, primary: Scope) -> Vec<ObjectName> {
        let namespace = name.namespace();
        let found: Vec<ObjectName> = match &self.by {
            By::Name => local(primary, namespace, name.name()).into_iter().collect(),
            By::Field(path) => {
                let values = path.values(object);
                let names = values
                    .iter()
                    .filter_map(|value| match value.split_once('/') {
                        Some(of) => elsewhere(primary, of),
                        None => local(primary, namespace, value),
                    });
                names.collect()
            }
            By::Label(_) | By::Owner | By::Controller => {
                let Ok(metadata) = Metadata::parse(object) else {
                    return Vec::new();
                };
                let names = self.in_metadata(&metadata);
                let names = names.filter_map(|name| local(primary, namespace, name));
                names.collect()
            }
        };
        once(found)
    }

    fn in_metadata<'m>(&'m self, metadata: &'m Metadata<'_>) -> impl Iterator<Item = &'m str> {
        let label = match &self.by {
            By::Label(key) => metadata.labels.get(key),
            _ => None,
        };
        let wanted = |owner: &&OwnerReference<'_>| match self.by {
            By::Owner => true,
            By::Controller => owner.controller,
            _ => false,
        };
        let owners = metadata.owners.iter().filter(wanted);
        let owners = owners.filter(|owner| owner.is_of(&self.group, &self.kind));
        label.into_iter().chain(owners.map(|owner| &*owner.name))
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

fn once(names: Vec<ObjectName>) -> Vec<ObjectName> {
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
