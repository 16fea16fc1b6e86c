//! The stored objects and their keys.
//!
//! Owns the form of a stored object and the key that finds it. Must not know kinds.

use std::sync::Arc;

use serde_json::Value;

/// A stored object; never changed in place.
pub(crate) type Object = Arc<Value>;

/// The key of an object within its storage. The namespace is empty for cluster-scoped kinds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(namespace: &str, name: &str) -> Key {
        Key {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}
