//! Structural schemas of kinds: what an object may hold, what it gets by default, and how its lists and maps merge.
//!
//! Owns the form of OpenAPI v3 that CustomResourceDefinitions use, for custom and built-in kinds alike
//! (behaviour and texts of k8s.io/apiextensions-apiserver `pkg/apiserver/schema` and k8s.io/kube-openapi `pkg/validation`).
//! Must not know: storage, HTTP, versions of kinds, or who writes an object.

mod builtin;
mod default;
mod format;
mod node;
mod parse;
mod prune;
mod rules;
mod validate;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;

pub use builtin::builtin;
pub(crate) use builtin::{OBJECT_META, object_meta};
pub(crate) use node::{Additional, ListType, Node, Type};

/// One reason for which an object or a schema is refused, in the form of a `Status`'s `details.causes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// `FieldValueInvalid` and its sisters.
    pub reason: &'static str,
    /// Text as kube-apiserver words it, without the field's name.
    pub message: String,
    /// Path of the field, as `spec.ports[0].name`; in [`Schema::parse`] relative to the schema, as `properties[spec].type`.
    pub field: String,
}

/// A parsed structural schema; cheap to clone.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Arc<Node>,
}

impl Schema {
    /// Reads an `openAPIV3Schema`; refuses one that is not structural. An empty object is an open schema.
    pub fn parse(openapi_v3_schema: &Value) -> Result<Schema, Vec<Cause>> {
        let open =
            serde_json::json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let empty = openapi_v3_schema
            .as_object()
            .is_some_and(serde_json::Map::is_empty);
        let root = parse::structural(if empty { &open } else { openapi_v3_schema })?;
        Ok(Schema {
            root: Arc::new(root),
        })
    }

    /// Fills in the defaults of fields that `object` leaves out, or says are null where null is not allowed.
    pub fn apply_defaults(&self, object: &mut Value) {
        default::fill(object, &self.root);
    }

    /// Removes the fields that the schema does not know, and returns their paths, sorted; and drops nulls where null
    /// is not allowed and no default stands in for it. `apiVersion`, `kind` and `metadata` at the root stay.
    ///
    /// This belongs to reading a body, not to writing: a real server does not prune what an apply has merged, so that
    /// a list or map whose last item goes may stay behind as a null, and be refused.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let unknown = prune::prune(object, &self.root);
        default::drop_nulls(object, &self.root);
        unknown
    }

    /// Returns everything that is wrong with `object`, except for `metadata`, which every kind has in common.
    pub fn validate(&self, object: &Value) -> Vec<Cause> {
        validate::validate(object, &self.root)
    }

    pub(crate) fn root(&self) -> &Node {
        &self.root
    }
}
