//! An object's metadata, read from the text in one pass and without building a tree.
//!
//! This module owns the parsing of `metadata`. It must not know what the fields are used for.
//! Strings without escapes are borrowed from the text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::json;
use serde_json::value::RawValue;

/// The metadata of one object. A field that is missing or null is empty.
#[derive(Clone, Debug, Default)]
pub struct Metadata<'a> {
    /// `name`.
    pub name: Cow<'a, str>,
    /// `namespace`; empty if the object is cluster-scoped.
    pub namespace: Cow<'a, str>,
    /// `uid`.
    pub uid: Cow<'a, str>,
    /// `resourceVersion` as text.
    pub resource_version: Cow<'a, str>,
    /// `generation`; `None` if the kind has none.
    pub generation: Option<i64>,
    /// `deletionTimestamp` as text; `None` if deletion has not been requested.
    pub deletion_timestamp: Option<Cow<'a, str>>,
    /// `labels`.
    pub labels: Pairs<'a>,
    /// `finalizers`, in the order of the text.
    pub finalizers: Vec<Cow<'a, str>>,
    /// `ownerReferences`, in the order of the text.
    pub owners: Vec<OwnerReference<'a>>,
    annotations: Option<&'a RawValue>,
}

/// A child's pointer to its parent.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference<'a> {
    /// `apiVersion`.
    #[serde(borrow)]
    pub api_version: Cow<'a, str>,
    /// `kind`.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// `name`.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// `uid`.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// Whether this owner controls the child. An object has at most one controlling owner.
    #[serde(deserialize_with = "or_default")]
    pub controller: bool,
}

/// Labels or annotations: string pairs in the order of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Metadata<'a> {
    /// Parses the metadata in an object's text. Fails if the text is not JSON, or if a field has
    /// another type than in Kubernetes.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        let object: Object<'a> = serde_json::from_str(text)?;
        let Some(fields) = object.metadata else {
            return Ok(Self::default());
        };
        let string = |value: Option<Text<'a>>| value.map(|text| text.0).unwrap_or_default();
        Ok(Self {
            name: string(fields.name),
            namespace: string(fields.namespace),
            uid: string(fields.uid),
            resource_version: string(fields.resource_version),
            generation: fields.generation,
            deletion_timestamp: fields.deletion_timestamp.map(|text| text.0),
            labels: fields.labels.unwrap_or_default(),
            finalizers: fields
                .finalizers
                .unwrap_or_default()
                .into_iter()
                .map(|text| text.0)
                .collect(),
            owners: fields.owner_references.unwrap_or_default(),
            annotations: fields.annotations,
        })
    }

    /// Returns whether deletion of the object has been requested.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The JSON patch operations that remove this finalizer and touch no other; `None` if the
    /// object does not have it.
    pub fn finalizer_removal(&self, finalizer: &str) -> Option<[serde_json::Value; 2]> {
        let at = self.finalizers.iter().position(|of| of == finalizer)?;
        let path = format!("/metadata/finalizers/{at}");
        Some([
            json!({ "op": "test", "path": path, "value": finalizer }),
            json!({ "op": "remove", "path": path }),
        ])
    }

    /// The controlling owner.
    pub fn controller(&self) -> Option<&OwnerReference<'a>> {
        self.owners.iter().find(|owner| owner.controller)
    }

    /// Parses the annotations. They are parsed only on request, because they may be as long as the
    /// rest of the object and full of escapes.
    pub fn annotations(&self) -> Result<Pairs<'a>, serde_json::Error> {
        self.annotations.map_or_else(
            || Ok(Pairs::default()),
            |raw| serde_json::from_str(raw.get()),
        )
    }

    /// The annotations as JSON text; empty if there are none. Equal texts are equal annotations;
    /// the API server sorts the keys, so the converse holds too.
    pub fn annotations_text(&self) -> &'a str {
        self.annotations.map(RawValue::get).unwrap_or_default()
    }
}

impl OwnerReference<'_> {
    /// Returns whether the reference points to this kind, in any version. Kinds with the same name
    /// in different groups are different kinds.
    pub fn is_of(&self, group: &str, kind: &str) -> bool {
        let of = self.api_version.split_once('/').map_or("", |(of, _)| of);
        self.kind == kind && of == group
    }
}

impl<'a> Pairs<'a> {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(of, _)| of == key);
        found.map(|(_, value)| &**value)
    }

    /// All pairs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Returns whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(serde::Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Option<Fields<'a>>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    namespace: Option<Text<'a>>,
    #[serde(borrow)]
    uid: Option<Text<'a>>,
    #[serde(borrow)]
    resource_version: Option<Text<'a>>,
    generation: Option<i64>,
    #[serde(borrow)]
    deletion_timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    labels: Option<Pairs<'a>>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    finalizers: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    owner_references: Option<Vec<OwnerReference<'a>>>,
}

/// A string, borrowed if it has no escapes: serde borrows a `Cow` only if it is a field itself.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

fn or_default<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Pairs::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                // A null value is the empty string, as in Go.
                while let Some((Text(key), value)) =
                    map.next_entry::<Text<'de>, Option<Text<'de>>>()?
                {
                    list.push((key, value.map(|text| text.0).unwrap_or_default()));
                }
                Ok(Pairs(list))
            }
        }
        deserializer.deserialize_any(PairsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"{"kind":"Pod","spec":{"metadata":{"name":"not this"}},"metadata":{
        "name":"a","namespace":"n\u002d1","uid":"u-1","resourceVersion":"7","generation":3,"deletionTimestamp":"2026-01-02T03:04:05Z",
        "labels":{"app":"web","q\"":"é\n"},"annotations":{"x":"{\"y\":1}"},"finalizers":["a.io/x","b\u002eio/y"],
        "ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u-2","controller":true,"blockOwnerDeletion":true},
                           {"apiVersion":"v1","kind":"Node","name":"m","uid":"u-3","controller":null}]}}"#;

    #[test]
    fn all_of_it_is_read_in_one_pass() {
        let read = Metadata::parse(FULL).unwrap();
        assert_eq!(
            (&*read.name, &*read.namespace, &*read.uid),
            ("a", "n-1", "u-1")
        );
        assert_eq!((&*read.resource_version, read.generation), ("7", Some(3)));
        assert!(read.is_deleting());
        assert_eq!(
            read.labels.iter().collect::<Vec<_>>(),
            [("app", "web"), ("q\"", "é\n")]
        );
        assert_eq!(
            (read.labels.get("app"), read.labels.get("no")),
            (Some("web"), None)
        );
        assert_eq!(read.finalizers, ["a.io/x", "b.io/y"]);
        assert_eq!(read.annotations().unwrap().get("x"), Some(r#"{"y":1}"#));
        assert_eq!(read.annotations_text(), r#"{"x":"{\"y\":1}"}"#);
        let owner = read.controller().unwrap();
        assert_eq!((&*owner.name, &*owner.uid), ("r", "u-2"));
        assert!(owner.is_of("apps", "ReplicaSet") && !owner.is_of("", "ReplicaSet"));
        assert!(read.owners[1].is_of("", "Node") && !read.owners[1].controller);
    }

    #[test]
    fn strings_without_escapes_are_borrowed() {
        let read = Metadata::parse(FULL).unwrap();
        assert!(matches!(read.name, Cow::Borrowed(_)) && matches!(read.namespace, Cow::Owned(_)));
        assert!(matches!(read.finalizers[0], Cow::Borrowed(_)));
        assert!(matches!(
            read.labels.0[0],
            (Cow::Borrowed(_), Cow::Borrowed(_))
        ));
        assert!(matches!(read.owners[0].uid, Cow::Borrowed(_)));
    }

    #[test]
    fn what_is_missing_or_null_is_empty() {
        for text in [
            "{}",
            r#"{"metadata":null}"#,
            r#"{"metadata":{}}"#,
            r#"{"metadata":{"labels":null,"annotations":null,"finalizers":null,"ownerReferences":null,"deletionTimestamp":null,"generation":null}}"#,
        ] {
            let read = Metadata::parse(text).unwrap();
            assert!(read.name.is_empty() && read.labels.is_empty() && read.finalizers.is_empty());
            assert!(read.owners.is_empty() && !read.is_deleting() && read.generation.is_none());
            assert!(read.annotations().unwrap().is_empty() && read.annotations_text().is_empty());
        }
        let null = Metadata::parse(r#"{"metadata":{"labels":{"a":null}}}"#).unwrap();
        assert_eq!(null.labels.get("a"), Some(""));
    }

    #[test]
    fn what_is_no_metadata_is_refused() {
        for text in [
            "",
            "[]",
            r#"{"metadata":[]}"#,
            r#"{"metadata":{"labels":{"a":1}}}"#,
            r#"{"metadata":{"labels":["a"]}}"#,
            r#"{"metadata":{"finalizers":"a"}}"#,
            r#"{"metadata":{"generation":"1"}}"#,
            r#"{"metadata":{}"#,
        ] {
            assert!(Metadata::parse(text).is_err(), "{text}");
        }
    }
}
