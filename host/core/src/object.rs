//! A snapshot of an object: the API server's text and the few metadata fields that the host itself
//! needs. This module must not know the fields of a kind.

use std::sync::Arc;

use serde::Deserialize;

use crate::key::{Gvk, ObjectKey, ObjectName};
use crate::tailed::Tailed;

/// An object as the store holds it, in one allocation. `text` is the API server's JSON without
/// `metadata.managedFields`, with `apiVersion` and `kind`, pruned to the fields that the store's
/// users want. The host passes the text to a plugin without parsing it to a tree.
pub type Object = Tailed<Known>;

/// What the host knows about an object without parsing its text.
#[derive(Debug, PartialEq, Eq)]
pub struct Known {
    /// Namespace and name.
    pub name: ObjectName,
    /// `metadata.resourceVersion` as a number (KEP-5504: versions of one kind compare as integers).
    pub version: u64,
    uid: Uid,
}

/// Where an object's uid is stored.
#[derive(Debug, PartialEq, Eq)]
enum Uid {
    /// A range of the object's text.
    At { start: u32, len: u32 },
    /// Outside the text, where the uid is missing or escaped.
    Apart(Box<str>),
}

/// What a worker passes to a plugin: shared with the store, not copied.
pub type Snapshot = Arc<Object>;

impl Object {
    /// Builds an object with this text.
    pub fn with_text(name: ObjectName, uid: &str, version: u64, text: &str) -> Snapshot {
        Self::of_pieces(name, uid, version, [text])
    }

    /// Builds an object whose text is the concatenation of `pieces`. A `uid` that lies in the
    /// memory of one of the pieces takes no extra space.
    pub fn of_pieces<'p, P>(name: ObjectName, uid: &str, version: u64, pieces: P) -> Snapshot
    where
        P: IntoIterator<Item = &'p str, IntoIter: Clone>,
    {
        let pieces = pieces.into_iter();
        let (mut len, mut at) = (0, None);
        let first = uid.as_ptr() as usize;
        for piece in pieces.clone() {
            let start = piece.as_ptr() as usize;
            if start <= first && first + uid.len() <= start + piece.len() {
                at = Some(len + (first - start));
            }
            len += piece.len();
        }
        let inside =
            at.and_then(|at| Some((u32::try_from(at).ok()?, u32::try_from(uid.len()).ok()?)));
        let uid = match inside {
            Some((start, len)) => Uid::At { start, len },
            None => Uid::Apart(uid.into()),
        };
        Self::new(Known { name, version, uid }, len, pieces)
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> &str {
        match &self.uid {
            Uid::At { start, len } => {
                let start = *start as usize;
                self.text
                    .get(start..start + *len as usize)
                    .unwrap_or_default()
            }
            Uid::Apart(uid) => uid,
        }
    }
}

/// The fields that name an object, read from text that a plugin or a file provides.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectHead {
    /// `apiVersion`.
    #[serde(default)]
    pub api_version: String,
    /// `kind`.
    #[serde(default)]
    pub kind: String,
    /// The naming part of `metadata`.
    #[serde(default)]
    pub metadata: MetadataHead,
}

/// The naming part of `metadata`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetadataHead {
    /// `name`.
    pub name: Option<String>,
    /// `namespace`.
    pub namespace: Option<String>,
    /// `generateName`.
    pub generate_name: Option<String>,
    /// `uid`.
    pub uid: Option<String>,
    /// `resourceVersion`.
    pub resource_version: Option<String>,
}

impl ObjectHead {
    /// Parses the head of an object. The error says what is missing, without the effect's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let head: Self = serde_json::from_str(text)
            .map_err(|error| format!("the object is invalid: {error}"))?;
        if head.api_version.is_empty() || head.kind.is_empty() {
            return Err("the object has no apiVersion or kind".into());
        }
        Ok(head)
    }

    /// The object's kind.
    pub fn gvk(&self) -> Gvk {
        Gvk::from_api_version(&self.api_version, &self.kind)
    }

    /// The object's key; `None` without a name (`generateName`).
    pub fn key(&self) -> Option<ObjectKey> {
        let name = self
            .metadata
            .name
            .as_deref()
            .filter(|name| !name.is_empty())?;
        Some(ObjectKey {
            kind: self.gvk(),
            name: ObjectName::new(self.metadata.namespace.as_deref(), name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_found_in_the_text_or_kept_apart() {
        let name = ObjectName::new(Some("n"), "a");
        let raw = r#"{"x":1,"uid":"u-17"}"#;
        let uid = &raw[14..18];
        let object = Object::of_pieces(name.clone(), uid, 3, [&raw[..1], &raw[7..]]);
        assert_eq!((object.uid(), &object.text), ("u-17", r#"{"uid":"u-17"}"#));
        assert_eq!((object.uid.clone_at(), object.version), (Some(8), 3));
        let apart = Object::with_text(name, "u-17", 3, raw);
        assert_eq!((apart.uid(), apart.uid.clone_at()), ("u-17", None));
        assert_eq!(size_of::<Known>(), 40);
    }

    impl Uid {
        fn clone_at(&self) -> Option<u32> {
            match self {
                Self::At { start, .. } => Some(*start),
                Self::Apart(_) => None,
            }
        }
    }
}
