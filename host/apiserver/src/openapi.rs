//! The OpenAPI documents that clients read before they write.
//!
//! Owns `/openapi/v3` and `/openapi/v2` as functions of the served kinds: what kubectl needs to
//! know of each operation (its kind, its query parameters) and the schemas that `kubectl explain`
//! prints. Must not know HTTP, headers, storage, or the effects of operations.

mod convert;
mod definitions;
mod info;
mod operations;
mod proto;
mod published;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use prost::Message;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

pub(crate) use info::KindInfo;
use info::{Dialect, group_version_path};

/// Returns `/openapi/v3`: one relative URL, with a hash of its content, for each group and version.
pub(crate) fn v3_index(kinds: &[KindInfo]) -> Value {
    let group_versions: BTreeSet<(&str, &str)> = kinds
        .iter()
        .map(|kind| (kind.group.as_str(), kind.version.as_str()))
        .collect();
    let mut paths = Map::new();
    for (group, version) in group_versions {
        let path = group_version_path(group, version);
        let hash = hash(&path, group, version, kinds);
        let url = format!("/openapi/v3/{path}?hash={hash}");
        paths.insert(path, json!({ "serverRelativeURL": url }));
    }
    json!({ "paths": paths })
}

/// Returns the hash of a document. A program's built-in documents never change, and definitions of
/// custom kinds come and go: their hashes are computed once.
fn hash(path: &str, group: &str, version: &str, kinds: &[KindInfo]) -> String {
    static BUILT_IN: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    let mut of = kinds
        .iter()
        .filter(|kind| kind.group == group && kind.version == version);
    let fixed = of.all(|kind| kind.definition().is_some());
    if let Some(known) = BUILT_IN.lock().get(path).filter(|_| fixed) {
        return known.clone();
    }
    let document = v3_group_version(group, version, kinds).unwrap_or_default();
    let hash = hex::encode_upper(Sha256::digest(document.to_string()));
    if fixed {
        BUILT_IN.lock().insert(path.to_owned(), hash.clone());
    }
    hash
}

/// Returns `/openapi/v3/apis/<group>/<version>`; `None` if no kind has that group and version.
pub(crate) fn v3_group_version(group: &str, version: &str, kinds: &[KindInfo]) -> Option<Value> {
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

/// Returns `/openapi/v2` as gnostic's `openapi.v2.Document` in protobuf, the form that kubectl
/// reads.
pub(crate) fn v2_protobuf(kinds: &[KindInfo]) -> Vec<u8> {
    convert::document(&v2(kinds)).encode_to_vec()
}

/// Returns `/openapi/v2` as JSON.
pub(crate) fn v2(kinds: &[KindInfo]) -> Value {
    let kinds: Vec<&KindInfo> = kinds.iter().collect();
    json!({
        "swagger": "2.0",
        "info": { "title": "Kubernetes", "version": "unversioned" },
        "paths": operations::paths(&kinds, Dialect::V2),
        "definitions": definitions::definitions(&kinds, Dialect::V2),
    })
}
