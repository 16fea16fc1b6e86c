//! The author of a write.
//!
//! Owns what a caller says of the author, and the entry of `managedFields` that this becomes. Must
//! not know schemas or objects.

use crate::managed::{Id, Operation};
use crate::set::Set;

/// Who writes, and through which door.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manager<'a> {
    /// The `fieldManager` of the request.
    pub name: &'a str,
    /// The `apiVersion` that the request speaks, as `apps/v1`.
    pub api_version: &'a str,
    /// `""` or `"status"`.
    pub subresource: &'a str,
    /// Fields that this door cannot write, as dotted paths (`"status"`): the caller puts them back
    /// to their live values, and nobody gains or loses ownership of them through this write.
    /// See [`RESET_MAIN`], [`RESET_STATUS`].
    pub reset: &'a [&'a str],
}

/// What a write to the main resource resets when the kind has a status subresource.
pub const RESET_MAIN: &[&str] = &["status"];

/// What a write to the status subresource resets.
pub const RESET_STATUS: &[&str] = &["spec", "metadata"];

impl Manager<'_> {
    /// The entry that the author's fields are noted under.
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

    /// The fields of [`Manager::reset`] as a set.
    pub(crate) fn reset_fields(&self) -> Set {
        Set::of_fields(self.reset.iter().copied())
    }
}
