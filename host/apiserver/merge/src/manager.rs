//! The author of a write.
//!
//! Owns what a caller states about the author, and the resulting entry of `managedFields`. Must not
//! know schemas or objects.

use serde_json::{Value, json};

use crate::managed::{Id, Operation};
use crate::set::Set;

/// The author of a write and the endpoint in use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manager<'a> {
    /// The `fieldManager` of the request.
    pub name: &'a str,
    /// The `apiVersion` of the request, such as `apps/v1`.
    pub api_version: &'a str,
    /// The subresource, such as `"status"` or `"scale"`; empty for the object itself.
    pub subresource: &'a str,
    /// Fields that this endpoint cannot write, as dotted paths (`"status"`). The caller restores
    /// them to their live values, and this write does not change their ownership. See
    /// [`RESET_MAIN`], [`RESET_STATUS`].
    pub reset: &'a [&'a str],
    /// The fields that an object of this version has before a client sets them. No manager owns
    /// such a field while it has the value from here. `None`: an object starts without any field.
    pub empty: Option<&'a Value>,
}

/// The fields that a write to the main resource resets if the kind has a status subresource.
pub const RESET_MAIN: &[&str] = &["status"];

/// The fields that a write to the status subresource resets.
pub const RESET_STATUS: &[&str] = &["spec", "metadata"];

impl Manager<'_> {
    /// Returns the identity under which the author's fields are recorded.
    pub(crate) fn id(&self, operation: Operation) -> Id {
        let name = if self.name.is_empty() {
            "unknown"
        } else {
            self.name
        };
        let api_version = if operation == Operation::Apply {
            ""
        } else {
            self.api_version
        };
        Id {
            manager: name.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: self.subresource.to_owned(),
        }
    }

    /// Returns what a new object is compared with.
    pub(crate) fn start(&self) -> Value {
        self.empty.cloned().unwrap_or_else(|| json!({}))
    }

    /// Returns the fields of [`Manager::reset`] as a set.
    pub(crate) fn reset_fields(&self) -> Set {
        Set::of_fields(self.reset.iter().copied())
    }
}
