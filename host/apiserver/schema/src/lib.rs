//! Structural schemas of kinds: what an object may hold, its defaults, and how its lists and maps
//! merge.
//!
//! Owns the form of OpenAPI v3 that CustomResourceDefinitions use, for custom and built-in kinds
//! alike (behaviour and texts of k8s.io/apiextensions-apiserver `pkg/apiserver/schema` and
//! k8s.io/kube-openapi `pkg/validation`). Must not know storage, HTTP, versions of kinds, or the
//! writer of an object.
//!
//! ```
//! use serde_json::json;
//! use vmhost_schema::{NotStructural, Schema};
//!
//! let schema = Schema::parse(&json!({
//!     "type": "object",
//!     "properties": { "size": { "type": "integer", "default": 3, "maximum": 5 } },
//! }))?;
//! let mut object = json!({ "color": "red" });
//! assert_eq!(schema.prune(&mut object), ["color"]);
//! schema.apply_defaults(&mut object);
//! assert_eq!(object, json!({ "size": 3 }));
//! assert!(schema.validate(&object).is_empty());
//! assert_eq!(schema.validate(&json!({ "size": 7 }))[0].field, "size");
//! # Ok::<(), NotStructural>(())
//! ```

mod builtin;
mod default;
mod error;
mod format;
mod node;
mod parse;
mod prune;
mod quantity;
mod validate;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;

use default::Room;

pub use builtin::{OBJECT_META, builtin, definition, descriptions, inflate, names, object_meta};
pub use error::{Fault, NotStructural, Reason};
pub use node::{Additional, ListType, Node, Type};
pub use quantity::billionths;

/// A parsed structural schema; cheap to clone.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Arc<Node>,
}

impl Schema {
    /// Parses an `openAPIV3Schema`. An empty object is an open schema.
    pub fn parse(openapi_v3_schema: &Value) -> Result<Schema, NotStructural> {
        let empty = openapi_v3_schema
            .as_object()
            .is_some_and(serde_json::Map::is_empty);
        if empty {
            return Ok(Schema::open());
        }
        let root = parse::structural(openapi_v3_schema)?;
        Ok(Schema {
            root: Arc::new(root),
        })
    }

    pub(crate) fn of(root: Node) -> Schema {
        Schema {
            root: Arc::new(root),
        }
    }

    /// Returns the schema of an object that may hold anything.
    pub fn open() -> Schema {
        let root = Node {
            kind: Some(Type::Object),
            preserve: true,
            embedded: true,
            ..Node::default()
        };
        Schema {
            root: Arc::new(root),
        }
    }

    /// Fills in the defaults of fields that are missing in `object`, or null where null is not
    /// allowed.
    pub fn apply_defaults(&self, object: &mut Value) {
        // There is room for all of them.
        let _ = default::fill(object, &self.root, &mut Room::any());
    }

    /// Like [`Schema::apply_defaults`], but stops before the defaults take more memory than this.
    /// Returns whether all are filled in. For a schema whose author is not trusted: each item of a
    /// default list gets the defaults of items, so that a short schema can ask for gigabytes.
    #[must_use]
    pub fn apply_defaults_within(&self, object: &mut Value, bytes: usize) -> bool {
        default::fill(object, &self.root, &mut Room::of(bytes)).is_ok()
    }

    /// Removes the fields that the schema does not declare, and returns their paths, sorted. Also
    /// drops nulls of fields that are not nullable and have no default. Keeps `apiVersion`, `kind`
    /// and `metadata` at the root.
    ///
    /// Call this when reading a body, not when writing: a real server does not prune the result of
    /// an apply, so a list or map that loses its last item may remain as a null and be refused.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let unknown = prune::prune(object, &self.root);
        default::drop_nulls(object, &self.root);
        unknown
    }

    /// Writes the quantities of a built-in kind in their canonical form. Returns whether all of
    /// them are quantities.
    pub fn normalize(&self, object: &mut Value) -> bool {
        quantity::normalize(object, &self.root)
    }

    /// Returns everything that is wrong with `object`, except for `metadata`, which all kinds
    /// share.
    pub fn validate(&self, object: &Value) -> Vec<Fault> {
        validate::validate(object, &self.root)
    }

    /// Returns everything that is wrong with an object that replaces `old`, except for what was
    /// wrong and did not change.
    pub fn validate_update(&self, object: &Value, old: &Value) -> Vec<Fault> {
        validate::validate_update(object, old, &self.root)
    }

    /// Returns the root of the schema.
    pub fn root(&self) -> &Node {
        &self.root
    }
}
