//! The OpenAPI documents that clients read before they write.
//!
//! Owns `/openapi/v3` and `/openapi/v2` as functions of the kinds that are served.
//! Must not know: HTTP, hashes in headers, storage.

use serde_json::{Value, json};

/// One served kind, in one version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KindInfo {
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

/// `/openapi/v3`: one relative URL, with a hash of its content, for each group and version.
pub fn v3_index(_kinds: &[KindInfo]) -> Value {
    json!({ "paths": {} })
}

/// `/openapi/v3/apis/<group>/<version>`; `None` when no kind has that group and version.
pub fn v3_group_version(_group: &str, _version: &str, _kinds: &[KindInfo]) -> Option<Value> {
    None
}

/// `/openapi/v2` as gnostic's `openapi.v2.Document` in protobuf.
pub fn v2_protobuf(_kinds: &[KindInfo]) -> Vec<u8> {
    Vec::new()
}
