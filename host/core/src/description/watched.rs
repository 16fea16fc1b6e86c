//! A kind that a controller watches or reads, and what of it wakes whom.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::key::Gvk;
use crate::mapping::MapBy;
use crate::predicate::PredicateDescription;

/// A kind that a controller watches or reads. What makes no sense where it stands is refused by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Watched {
    /// API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Only objects with these labels; the others are not in the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
    /// Only objects with these fields (`metadata.name=x`; what else the kind allows).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<String>,
    /// Keep only these fields (dotted paths: `spec.status`) besides `apiVersion`, `kind` and `metadata`. Default: all. Saves memory, and time in the policy's parser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_fields: Option<Vec<String>>,
    /// Fetch and keep `apiVersion`, `kind` and `metadata` only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub metadata_only: bool,
    /// Indexes by name: the path of a field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub indexes: BTreeMap<String, String>,
    /// Which of its changes wake anybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicates: Option<PredicateDescription>,
    /// Only in `watches`: whom its changes wake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<MapBy>,
    /// Only in `reads`: no cache, live reads only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live: bool,
}

impl Watched {
    /// Its group, version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }

    /// Are there objects of the kind that the cache leaves out?
    pub fn is_selective(&self) -> bool {
        self.label_selector.is_some() || self.field_selector.is_some()
    }
}

/// Where a watched kind stands in a controller's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Its objects are the keys.
    Primary,
    /// Made by the controller: mapped by controller reference.
    Owned,
    /// Wakes keys by its `map`.
    Watched,
    /// Wakes nobody.
    Read,
}
