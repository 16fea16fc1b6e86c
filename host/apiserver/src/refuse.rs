//! Refusals that name an object of a kind.
//!
//! Owns how they name a kind: by its resource or by itself. Must not know requests.

use serde_json::json;

use crate::kinds::Target;
use crate::object::Key;
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

/// Returns the kind with the group of the stored objects: `VirtualMachine.cloud.waibizi.com`,
/// `ConfigMap`.
fn qualified_kind(target: &Target) -> String {
    let kind = &target.kind;
    match kind.stored_group() {
        "" => kind.kind.clone(),
        group => format!("{}.{group}", kind.kind),
    }
}

/// Lets a refusal name the kind itself instead of the resource.
fn on_kind(mut error: ApiError, target: &Target, name: &str) -> ApiError {
    let details = error.details.get_or_insert_with(|| json!({}));
    details["kind"] = json!(target.kind.kind);
    let group = target.kind.stored_group();
    for (field, text) in [("group", group), ("name", name)] {
        if !text.is_empty() {
            details[field] = json!(text);
        }
    }
    error
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
    on_kind(ApiError::new(409, "Conflict", message), target, name)
}

/// Refuses a replacement that names another uid than the stored object has.
pub(crate) fn other_object(target: &Target, key: &Key, asked: &str, live: &str) -> ApiError {
    let place = match key.namespace.as_str() {
        "" => key.name.clone(),
        namespace => format!("{namespace}/{}", key.name),
    };
    let registry = &target.kind.registry;
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{registry}/{place}, ResourceVersion: 0, AdditionalErrorMsg: {}",
        other_uid(asked, live)
    );
    conflict(target, &key.name, why)
}

/// Returns the words for a precondition that names another uid.
pub(crate) fn other_uid(asked: &str, live: &str) -> String {
    format!("Precondition failed: UID in precondition: {asked}, UID in object meta: {live}")
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

/// Refuses a body of which a real server could not make an object of the kind.
pub(crate) fn undecodable(target: &Target, why: impl std::fmt::Display) -> ApiError {
    let (kind, version) = (&target.kind.kind, &target.version().name);
    ApiError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
    ))
}

/// Refuses a built-in kind's body that says to be of a kind which no group has.
pub(crate) fn unregistered(target: &Target, api_version: &str, kind: &str) -> ApiError {
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let expected = &target.kind.kind;
    ApiError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {expected}: no kind {kind:?} is registered for version {api_version:?}"
    ))
}

/// Refuses an object that breaks rules of its kind.
pub(crate) fn invalid(target: &Target, name: &str, causes: &[Cause]) -> ApiError {
    let error = ApiError::invalid_of(&qualified_kind(target), name, causes);
    on_kind(error, target, name)
}
