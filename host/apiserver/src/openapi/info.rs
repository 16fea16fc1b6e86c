//! The input of the documents: served kinds, and the two dialects of OpenAPI.
//!
//! Must not know definitions or operations.

use serde_json::{Value, json};

/// One served kind, in one version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct KindInfo {
    /// The group; `""` for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The kind, such as `ConfigMap`.
    pub kind: String,
    /// The plural, such as `configmaps`.
    pub plural: String,
    /// Whether the kind is namespaced.
    pub namespaced: bool,
    /// The subresources, such as `status` and `scale`.
    pub subresources: Vec<String>,
    /// `openAPIV3Schema`; `{}` when the kind is open. Of a built-in kind, a `$ref` to its
    /// definition.
    pub schema: Value,
}

impl KindInfo {
    /// Returns the name of a built-in kind's definition.
    pub(super) fn definition(&self) -> Option<&str> {
        self.schema.get("$ref")?.as_str()
    }
}

/// The two versions of OpenAPI.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

impl Dialect {
    /// Returns a reference to a definition.
    pub(super) fn reference(self, name: &str) -> Value {
        match self {
            Dialect::V2 => json!({ "$ref": format!("#/definitions/{name}") }),
            Dialect::V3 => json!({ "$ref": format!("#/components/schemas/{name}") }),
        }
    }
}

/// Returns `api/v1` or `apis/<group>/<version>`.
pub(super) fn group_version_path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}
