//! The OpenAPI documents that clients read before they write.
//!
//! Owns `/openapi/v3` and `/openapi/v2` as functions of the kinds that are served: what kubectl needs to know of each
//! operation (its kind, its query parameters) and the schemas that `kubectl explain` prints.
//! Must not know: HTTP, headers, storage, what the operations do.

mod convert;
mod definitions;
mod operations;
mod proto;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use prost::Message;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

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

/// The two forms in which the same is said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    V2,
    V3,
}

impl Dialect {
    /// A reference to a definition.
    fn reference(self, name: &str) -> Value {
        match self {
            Dialect::V2 => json!({ "$ref": format!("#/definitions/{name}") }),
            Dialect::V3 => json!({ "$ref": format!("#/components/schemas/{name}") }),
        }
    }
}

/// `api/v1` or `apis/<group>/<version>`
fn group_version_path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// `/openapi/v3`: one relative URL, with a hash of its content, for each group and version.
pub fn v3_index(kinds: &[KindInfo]) -> Value {
    let group_versions: BTreeSet<(&str, &str)> = kinds
        .iter()
        .map(|kind| (kind.group.as_str(), kind.version.as_str()))
        .collect();
    let mut paths = Map::new();
    for (group, version) in group_versions {
        let Some(document) = v3_group_version(group, version, kinds) else {
            continue;
        };
        let path = group_version_path(group, version);
        let hash = hex::encode_upper(Sha256::digest(document.to_string()));
        let url = format!("/openapi/v3/{path}?hash={hash}");
        paths.insert(path, json!({ "serverRelativeURL": url }));
    }
    json!({ "paths": paths })
}

/// `/openapi/v3/apis/<group>/<version>`; `None` when no kind has that group and version.
pub fn v3_group_version(group: &str, version: &str, kinds: &[KindInfo]) -> Option<Value> {
    let kinds: Vec<&KindInfo> = kinds
        .iter()
        .filter(|kind| kind.group == group && kind.version == version)
        .collect();
    if kinds.is_empty() {
        return None;
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": "unversioned" },
        "paths": operations::paths(&kinds, Dialect::V3),
        "components": { "schemas": definitions::definitions(&kinds, Dialect::V3) },
    }))
}

/// `/openapi/v2` as gnostic's `openapi.v2.Document` in protobuf, which is the only form in which kubectl reads it.
pub fn v2_protobuf(kinds: &[KindInfo]) -> Vec<u8> {
    convert::document(&v2(kinds)).encode_to_vec()
}

/// `/openapi/v2` as JSON.
fn v2(kinds: &[KindInfo]) -> Value {
    let kinds: Vec<&KindInfo> = kinds.iter().collect();
    json!({
        "swagger": "2.0",
        "info": { "title": "Kubernetes", "version": "unversioned" },
        "paths": operations::paths(&kinds, Dialect::V2),
        "definitions": definitions::definitions(&kinds, Dialect::V2),
    })
}
