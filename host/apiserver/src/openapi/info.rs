//! What the documents are made of: served kinds, and the two dialects of OpenAPI.
//!
//! Must not know definitions or operations.

use serde_json::{Value, json};

/// One served kind, in one version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct KindInfo {
    /// `""` for the core group.
    pub group: String,
    /// `v1`
    pub version: String,
    /// `ConfigMap`
    pub kind: String,
    /// `configmaps`
    pub plural: String,
    /// Whether objects lie in namespaces.
    pub namespaced: bool,
    /// `status`, `scale`
    pub subresources: Vec<String>,
    /// `openAPIV3Schema`; `{}` when the kind is open.
    pub schema: Value,
}

/// The two forms in which the same is said.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

impl Dialect {
    /// A reference to a definition.
    pub(super) fn reference(self, name: &str) -> Value {
        match self {
            Dialect::V2 => json!({ "$ref": format!("#/definitions/{name}") }),
            Dialect::V3 => json!({ "$ref": format!("#/components/schemas/{name}") }),
        }
    }
}

/// `api/v1` or `apis/<group>/<version>`
pub(super) fn group_version_path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}
