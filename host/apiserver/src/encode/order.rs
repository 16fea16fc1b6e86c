//! The order of keys in JSON.
//!
//! Must not know the forms of answers.

use std::collections::BTreeMap;

use serde::ser::{Error, Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::kinds::Target;
use crate::object::Shown;

/// An object with its keys in the order of a real server: custom objects alphabetically, built-in
/// ones with kind, apiVersion and metadata first. Built-in objects in a list omit kind and
/// apiVersion.
pub(super) struct Ordered<'a> {
    pub object: &'a Value,
    pub custom: bool,
    pub within_list: bool,
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(map) = self.object else {
            return self.object.serialize(serializer);
        };
        if self.custom {
            return map.serialize(serializer);
        }
        let first: &[&str] = match map.get("kind") {
            Some(kind) if kind == "Status" && !self.within_list => &[
                "kind",
                "apiVersion",
                "metadata",
                "status",
                "message",
                "reason",
                "details",
                "code",
            ],
            _ => first(self.within_list),
        };
        in_order(serializer, first, |key| map.get(key), map.iter())
    }
}

/// Returns the keys with which a built-in object begins.
fn first(within_list: bool) -> &'static [&'static str] {
    match within_list {
        true => &["metadata"],
        false => &["kind", "apiVersion", "metadata"],
    }
}

/// Writes the members of a built-in object, the `first` ones before the others.
fn in_order<'m, S: Serializer, V: Serialize + 'm>(
    serializer: S,
    first: &[&str],
    get: impl Fn(&str) -> Option<&'m V>,
    all: impl Iterator<Item = (&'m String, &'m V)>,
) -> Result<S::Ok, S::Error> {
    let mut out = serializer.serialize_map(None)?;
    for key in first {
        if let Some(value) = get(key) {
            out.serialize_entry(key, value)?;
        }
    }
    for (key, value) in all {
        let is_first = ["kind", "apiVersion", "metadata"].contains(&key.as_str());
        if !is_first && !first.contains(&key.as_str()) {
            out.serialize_entry(key, value)?;
        }
    }
    out.end()
}

/// An object as a request sees it, in the same order. The text of a stored one is not read.
pub(super) struct OrderedShown<'a> {
    pub shown: &'a Shown,
    pub custom: bool,
    pub within_list: bool,
}

impl Serialize for OrderedShown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = match self.shown {
            Shown::Stored(stored) => stored.text(),
            Shown::Made(object) => {
                let ordered = Ordered {
                    object,
                    custom: self.custom,
                    within_list: self.within_list,
                };
                return ordered.serialize(serializer);
            }
        };
        if self.custom {
            let whole: &RawValue = serde_json::from_str(text).map_err(S::Error::custom)?;
            return whole.serialize(serializer);
        }
        let members: BTreeMap<String, &RawValue> =
            serde_json::from_str(text).map_err(S::Error::custom)?;
        let first = first(self.within_list);
        in_order(serializer, first, |key| members.get(key), members.iter())
    }
}

/// A list of objects of a kind.
pub(super) struct List<'a> {
    pub target: &'a Target,
    pub metadata: &'a Value,
    pub items: &'a [Shown],
}

struct Items<'a>(&'a [Shown], bool);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_seq(Some(self.0.len()))?;
        for shown in self.0 {
            out.serialize_element(&OrderedShown {
                shown,
                custom: self.1,
                within_list: true,
            })?;
        }
        out.end()
    }
}

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, version) = (&self.target.kind.list_kind, self.target.api_version());
        let custom = self.target.kind.custom;
        let items = Items(self.items, custom);
        let mut out = serializer.serialize_map(Some(4))?;
        if custom {
            out.serialize_entry("apiVersion", &version)?;
            out.serialize_entry("items", &items)?;
            out.serialize_entry("kind", kind)?;
            out.serialize_entry("metadata", self.metadata)?;
        } else {
            out.serialize_entry("kind", kind)?;
            out.serialize_entry("apiVersion", &version)?;
            out.serialize_entry("metadata", self.metadata)?;
            out.serialize_entry("items", &items)?;
        }
        out.end()
    }
}
