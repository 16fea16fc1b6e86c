//! Schemas of kinds that no CustomResourceDefinition describes, as data in the same form.
//!
//! Owns the list types and map types that server-side apply reads, taken from k8s.io/api's `+listType` marks.
//! The metadata of objects has one schema for all kinds. Must not know which kinds are served.

use std::sync::LazyLock;

use serde_json::Value;

use super::node::Node;
use super::parse;

/// The schema of a built-in kind, in the form of a CustomResourceDefinition's `openAPIV3Schema`, without metadata.
pub fn builtin(group: &str, kind: &str) -> Option<Value> {
    let text = match (group, kind) {
        ("", "ConfigMap") => include_str!("builtin/configmap.json"),
        ("", "Secret") => include_str!("builtin/secret.json"),
        ("", "Namespace") => include_str!("builtin/namespace.json"),
        ("", "ServiceAccount") => include_str!("builtin/serviceaccount.json"),
        ("", "Event") => include_str!("builtin/event.json"),
        ("events.k8s.io", "Event") => include_str!("builtin/event-events.json"),
        ("coordination.k8s.io", "Lease") => include_str!("builtin/lease.json"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            include_str!("builtin/customresourcedefinition.json")
        }
        _ => return None,
    };
    serde_json::from_str(text).ok()
}

/// The text of ObjectMeta's schema.
pub(crate) const OBJECT_META: &str = include_str!("builtin/objectmeta.json");

/// ObjectMeta as a node.
pub(crate) fn object_meta() -> &'static Node {
    static NODE: LazyLock<Node> = LazyLock::new(|| {
        let parsed = serde_json::from_str(OBJECT_META)
            .ok()
            .and_then(|value| parse::structural(&value).ok());
        let mut node = parsed.unwrap_or_default();
        node.embedded = false;
        node
    });
    &NODE
}
