//! Refusals, as the `Status` objects that clients decide by.
//!
//! Owns code, reason, message and details of every refusal. Must not know HTTP bodies or storage.

use serde_json::{Value, json};

use crate::kinds::Target;
use crate::schema::Cause;

/// A refusal on its way to the client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Value>,
}

impl ApiError {
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> ApiError {
        ApiError {
            code,
            reason,
            message: message.into(),
            details: None,
        }
    }

    fn on(mut self, target: &Target, name: &str) -> ApiError {
        let mut details = json!({ "kind": target.kind.plural });
        if !name.is_empty() {
            details["name"] = json!(name);
        }
        if !target.kind.group.is_empty() {
            details["group"] = json!(target.kind.group);
        }
        self.details = Some(details);
        self
    }

    pub fn with_causes(mut self, causes: Vec<Value>) -> ApiError {
        let details = self.details.get_or_insert_with(|| json!({}));
        details["causes"] = Value::Array(causes);
        self
    }

    pub fn bad_request(message: impl Into<String>) -> ApiError {
        ApiError::new(400, "BadRequest", message)
    }

    pub fn unauthorized() -> ApiError {
        ApiError::new(401, "Unauthorized", "Unauthorized")
    }

    /// A path that nobody serves.
    pub fn no_such_path() -> ApiError {
        let mut error = ApiError::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        );
        error.details = Some(json!({}));
        error
    }

    pub fn not_found(target: &Target, name: &str) -> ApiError {
        ApiError::new(
            404,
            "NotFound",
            format!("{} {name:?} not found", target.qualified()),
        )
        .on(target, name)
    }

    pub fn namespace_not_found(name: &str) -> ApiError {
        let mut error = ApiError::new(404, "NotFound", format!("namespaces {name:?} not found"));
        error.details = Some(json!({ "kind": "namespaces", "name": name }));
        error
    }

    pub fn already_exists(target: &Target, name: &str) -> ApiError {
        ApiError::new(
            409,
            "AlreadyExists",
            format!("{} {name:?} already exists", target.qualified()),
        )
        .on(target, name)
    }

    pub fn conflict(target: &Target, name: &str, why: impl std::fmt::Display) -> ApiError {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            target.qualified()
        );
        ApiError::new(409, "Conflict", message).on(target, name)
    }

    /// A delete whose preconditions do not hold; it names the kind and not the resource, as real servers do.
    pub fn delete_conflict(target: &Target, name: &str, why: impl std::fmt::Display) -> ApiError {
        let kind = &target.kind;
        let qualified = match kind.group.as_str() {
            "" => kind.kind.clone(),
            group => format!("{}.{group}", kind.kind),
        };
        let message = format!("Operation cannot be fulfilled on {qualified} {name:?}: {why}");
        let mut error = ApiError::new(409, "Conflict", message).on(target, name);
        if let Some(details) = &mut error.details {
            details["kind"] = json!(kind.kind);
        }
        error
    }

    /// A write that carries a resourceVersion other than the stored one.
    pub fn stale(target: &Target, name: &str) -> ApiError {
        ApiError::conflict(
            target,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub fn forbidden(target: &Target, name: &str, why: impl std::fmt::Display) -> ApiError {
        let message = format!("{} {name:?} is forbidden: {why}", target.qualified());
        ApiError::new(403, "Forbidden", message).on(target, name)
    }

    pub fn method_not_allowed() -> ApiError {
        let mut error = ApiError::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        error.details = Some(json!({}));
        error
    }

    pub fn not_acceptable(what: &str) -> ApiError {
        ApiError::new(
            406,
            "NotAcceptable",
            format!("only the following media types are accepted: {what}"),
        )
    }

    pub fn unsupported_media_type(accepted: &str) -> ApiError {
        ApiError::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {accepted}"
            ),
        )
    }

    pub fn too_large() -> ApiError {
        ApiError::new(413, "RequestEntityTooLarge", "limit is 3145728")
    }

    pub fn internal(message: impl Into<String>) -> ApiError {
        ApiError::new(500, "InternalError", message)
    }

    /// The position was forgotten, in a list or a page of it.
    pub fn expired(message: impl Into<String>) -> ApiError {
        ApiError::new(410, "Expired", message)
    }

    pub fn too_old(asked: u64, oldest: u64) -> ApiError {
        ApiError::expired(format!("too old resource version: {asked} ({oldest})"))
    }

    pub fn too_new(asked: u64, current: u64) -> ApiError {
        let message = format!("Too large resource version: {asked}, current: {current}");
        let mut error = ApiError::new(504, "Timeout", format!("Timeout: {message}"));
        error.details = Some(json!({
            "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
            "retryAfterSeconds": 1,
        }));
        error
    }

    /// An object that breaks rules of its kind.
    pub fn invalid(target: &Target, name: &str, causes: &[Cause]) -> ApiError {
        let kind = &target.kind;
        let qualified = if kind.group.is_empty() {
            kind.kind.clone()
        } else {
            format!("{}.{}", kind.kind, kind.group)
        };
        let mut error = ApiError::invalid_of(&qualified, name, causes);
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

    /// The same for things that are no object of a kind, as the options of a request.
    pub fn invalid_of(what: &str, name: &str, causes: &[Cause]) -> ApiError {
        let texts: Vec<String> = causes
            .iter()
            .map(|c| format!("{}: {}", c.field, c.message))
            .collect();
        let all = if texts.len() == 1 {
            texts.concat()
        } else {
            format!("[{}]", texts.join(", "))
        };
        let mut error = ApiError::new(422, "Invalid", format!("{what} {name:?} is invalid: {all}"));
        if let Some((kind, group)) = what.split_once('.') {
            error.details = Some(json!({ "kind": kind, "group": group }));
        }
        error.with_causes(
            causes
                .iter()
                .map(|c| json!({ "reason": c.reason, "message": c.message, "field": c.field }))
                .collect(),
        )
    }

    /// The `Status` object.
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}

/// Short hand for one cause.
pub(crate) fn cause(
    reason: &'static str,
    field: impl Into<String>,
    message: impl Into<String>,
) -> Cause {
    Cause {
        reason,
        message: message.into(),
        field: field.into(),
    }
}

pub(crate) const REQUIRED: &str = "FieldValueRequired";
pub(crate) const INVALID: &str = "FieldValueInvalid";
pub(crate) const FORBIDDEN: &str = "FieldValueForbidden";
pub(crate) const NOT_SUPPORTED: &str = "FieldValueNotSupported";
