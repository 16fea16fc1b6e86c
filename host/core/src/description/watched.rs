//! A kind that a controller watches or reads, and which keys its changes wake.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::key::Gvk;
use crate::mapping::MapBy;
use crate::predicate::PredicateDescription;

/// A kind that a controller watches or reads. A field that is invalid in its position is rejected
/// by name.
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
    /// Label selector; objects that do not match are not cached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
    /// Field selector (`metadata.name=x`, and any other field that the kind supports); objects that
    /// do not match are not cached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<String>,
    /// The fields to keep (dotted paths such as `spec.status`) besides `apiVersion`, `kind` and
    /// `metadata`. Default: all. Fewer fields save memory, and time in the plugin's parser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_fields: Option<Vec<String>>,
    /// Whether to fetch and keep only `apiVersion`, `kind` and `metadata`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub metadata_only: bool,
    /// Indexes by name; the value is the path of the indexed field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub indexes: BTreeMap<String, String>,
    /// Which changes wake keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicates: Option<PredicateDescription>,
    /// Which keys a change wakes; only in `watches`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<MapBy>,
    /// Whether the kind is only read live, without a cache; only in `reads`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live: bool,
}

impl Watched {
    /// The kind's group, version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }

    /// Returns whether a selector keeps some objects of the kind out of the cache.
    pub fn is_selective(&self) -> bool {
        self.label_selector.is_some() || self.field_selector.is_some()
    }
}

/// The role of a kind in a controller's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Its objects are the keys.
    Primary,
    /// Created by the controller: mapped to keys by controller reference.
    Owned,
    /// Mapped to keys by `map`.
    Watched,
    /// Wakes no keys.
    Read,
}
