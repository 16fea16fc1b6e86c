//! Refusals that name an object of a kind.
//!
//! Owns how they name a kind: by its resource or by itself. Must not know requests.

use serde_json::json;

use crate::kinds::Target;
use crate::status::{ApiError, Cause};

fn on(mut error: ApiError, target: &Target, name: &str) -> ApiError {
    let mut details = json!({ "kind": target.kind.plural });
    if !name.is_empty() {
        details["name"] = json!(name);
    }
    if !target.kind.group.is_empty() {
        details["group"] = json!(target.kind.group);
    }
    error.details = Some(details);
    error
}

/// Returns the kind with its group: `VirtualMachine.cloud.waibizi.com`, `ConfigMap`.
fn qualified_kind(target: &Target) -> String {
    let kind = &target.kind;
    if kind.group.is_empty() {
        kind.kind.clone()
    } else {
        format!("{}.{}", kind.kind, kind.group)
    }
}

pub(crate) fn not_found(target: &Target, name: &str) -> ApiError {
    let message = format!("{} {name:?} not found", target.qualified());
    on(ApiError::new(404, "NotFound", message), target, name)
}

pub(crate) fn already_exists(target: &Target, name: &str) -> ApiError {
    let message = format!("{} {name:?} already exists", target.qualified());
    on(ApiError::new(409, "AlreadyExists", message), target, name)
}

pub(crate) fn conflict(target: &Target, name: &str, why: impl std::fmt::Display) -> ApiError {
    let message = format!(
        "Operation cannot be fulfilled on {} {name:?}: {why}",
        target.qualified()
    );
    on(ApiError::new(409, "Conflict", message), target, name)
}

/// Refuses a delete whose preconditions fail. The message names the kind instead of the resource,
/// as in real servers.
pub(crate) fn delete_conflict(
    target: &Target,
    name: &str,
    why: impl std::fmt::Display,
) -> ApiError {
    let message = format!(
        "Operation cannot be fulfilled on {} {name:?}: {why}",
        qualified_kind(target)
    );
    let mut error = on(ApiError::new(409, "Conflict", message), target, name);
    if let Some(details) = &mut error.details {
        details["kind"] = json!(target.kind.kind);
    }
    error
}

/// Refuses a write with a resourceVersion other than the stored one.
pub(crate) fn stale(target: &Target, name: &str) -> ApiError {
    conflict(
        target,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )
}

pub(crate) fn forbidden(target: &Target, name: &str, why: impl std::fmt::Display) -> ApiError {
    let message = format!("{} {name:?} is forbidden: {why}", target.qualified());
    on(ApiError::new(403, "Forbidden", message), target, name)
}

/// Refuses an object that breaks rules of its kind.
pub(crate) fn invalid(target: &Target, name: &str, causes: &[Cause]) -> ApiError {
    let kind = &target.kind;
    let mut error = ApiError::invalid_of(&qualified_kind(target), name, causes);
    if let Some(details) = &mut error.details {
        details["kind"] = json!(kind.kind);
        if !kind.group.is_empty() {
            details["group"] = json!(kind.group);
        }
        if !name.is_empty() {
            details["name"] = json!(name);
        }
    }
    error
}
