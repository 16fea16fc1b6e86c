//! A snapshot of an object: the API server's text and the little metadata that the host itself needs.

use std::sync::Arc;

use serde::Deserialize;

use crate::key::{Gvk, ObjectKey, ObjectName};

/// An object as the store holds it. The text is never parsed to a tree on its way to a policy.
#[derive(Debug, PartialEq, Eq)]
pub struct Object {
    /// Namespace and name.
    pub name: ObjectName,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.resourceVersion` as a number (KEP-5504: versions of one kind compare as integers).
    pub version: u64,
    /// The API server's JSON, less `metadata.managedFields`, with `apiVersion` and `kind`, pruned to what the store's users want.
    pub text: Box<str>,
}

/// What a worker gives to a policy: shared with the store, not copied.
pub type Snapshot = Arc<Object>;

/// The part of an object that names it: read from text that a policy or a file gave.
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
    /// Reads it; the error says what is missing, without the name of the effect.
    pub fn parse(text: &str) -> Result<Self, String> {
        let head: Self = serde_json::from_str(text)
            .map_err(|error| format!("the object is not valid: {error}"))?;
        if head.api_version.is_empty() || head.kind.is_empty() {
            return Err("the object has no apiVersion or no kind".into());
        }
        Ok(head)
    }

    /// Its kind.
    pub fn gvk(&self) -> Gvk {
        Gvk::from_api_version(&self.api_version, &self.kind)
    }

    /// Its key; none without a name (`generateName`).
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
