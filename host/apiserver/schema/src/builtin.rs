//! Schemas of built-in kinds, from a table of the definitions that kube-apiserver publishes.
//!
//! Owns the table (`definitions.zz`, made by the suite's `table` from a real server's OpenAPI
//! documents) and what is missing in it: the defaults that kube-apiserver sets in code
//! (`defaults.json`, from k8s.io/kubernetes `pkg/apis/*/v1/defaults.go`). A definition is parsed
//! when it is first needed, because few programs touch more than some kinds. Must not know which
//! kinds are served.

pub(crate) mod expand;
mod table;

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::Schema;
use crate::node::Node;

pub use table::{definition, inflate, names};

/// The definition of object metadata.
pub const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Returns the schema of a definition, without the metadata that all kinds share; `None` if the
/// table has no definition of that name.
pub fn builtin(name: &str) -> Option<&'static Schema> {
    table::schema(name, expand::root)
}

/// Returns what is said about each definition and, by their names, its fields; a definition's own
/// text is under the empty name. Decompressed at each call: only documents for people need it.
pub fn descriptions() -> Map<String, Value> {
    // The table is embedded and a test parses it, so the result is never empty.
    serde_json::from_str(&inflate(include_bytes!("builtin/descriptions.zz"))).unwrap_or_default()
}

/// Returns ObjectMeta as a node.
pub fn object_meta() -> &'static Node {
    static NODE: LazyLock<Node> = LazyLock::new(|| {
        let mut node = crate::parse::trusted(&expand::part(OBJECT_META));
        node.embedded = false;
        node
    });
    &NODE
}
