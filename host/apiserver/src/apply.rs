//! Server-side apply and field ownership: `metadata.managedFields` as kube-apiserver keeps them.
//!
//! Owns the merge of an applied object into the live one and the ownership of every field after any kind of write.
//! Must not know: storage, HTTP, validation, clocks.

use serde_json::Value;

use crate::schema::Schema;

/// Who writes, and through which door.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manager<'a> {
    /// The `fieldManager` of the request.
    pub name: &'a str,
    /// The `apiVersion` that the request speaks, as `apps/v1`.
    pub api_version: &'a str,
    /// `""` or `"status"`.
    pub subresource: &'a str,
    /// Fields that this door cannot write, as dotted paths (`"status"`): the caller puts them back to their
    /// live values, and nobody gains ownership of them through this write. See [`RESET_MAIN`], [`RESET_STATUS`].
    pub reset: &'a [&'a str],
}

/// What a write to the main resource resets when the kind has a status subresource.
pub const RESET_MAIN: &[&str] = &["status"];

/// What a write to the status subresource of a custom resource resets.
pub const RESET_STATUS: &[&str] = &["spec", "metadata"];

/// Why an apply was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields with other values (409); `force` would take them.
    #[error("{}", conflict_text(.0))]
    Conflict(Vec<Conflict>),
    /// A field that the schema does not declare (500).
    #[error("{0}")]
    Undeclared(String),
    /// The applied object itself is no good (400).
    #[error("{0}")]
    Invalid(String),
}

/// One field of another manager that an apply would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Name of the manager that owns the field.
    pub manager: String,
    /// `conflict with "one" using v1`: the text of the `Status` cause.
    pub message: String,
    /// `.spec.size`
    pub field: String,
}

fn conflict_text(conflicts: &[Conflict]) -> String {
    format!("apply failed with {} conflicts", conflicts.len())
}

/// Merges `applied` into `live` on behalf of `manager` and returns the new object with its new `metadata.managedFields`.
pub fn apply(
    _schema: Option<&Schema>,
    _live: Option<&Value>,
    _applied: &Value,
    _manager: &Manager<'_>,
    _force: bool,
    _now: &str,
) -> Result<Value, ApplyError> {
    Err(ApplyError::Invalid("server-side apply is not there yet".to_owned()))
}

/// Sets the ownership of `new` after a write that is not an apply: POST, PUT and patches.
pub fn track_update(
    _schema: Option<&Schema>,
    _live: Option<&Value>,
    _new: &mut Value,
    _manager: &Manager<'_>,
    _now: &str,
) {
}
