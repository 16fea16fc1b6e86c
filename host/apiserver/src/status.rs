//! Refusals, as the `Status` objects that clients act on.
//!
//! Owns code, reason, message and details of refusals, and their causes, including those from
//! schemas. Must not know HTTP bodies, storage or kinds.

use std::borrow::Cow;

use serde_json::{Value, json};
use vmhost_schema::Fault;

/// A refusal of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError {
    pub code: u16,
    pub reason: Cow<'static, str>,
    pub message: String,
    pub details: Option<Value>,
}

impl ApiError {
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> ApiError {
        ApiError {
            code,
            reason: Cow::Borrowed(reason),
            message: message.into(),
            details: None,
        }
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

    /// Returns the refusal of an unknown path.
    pub fn no_such_path() -> ApiError {
        let mut error = ApiError::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        );
        error.details = Some(json!({}));
        error
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

    /// Returns the refusal of a built-in kind's path, which has no answer in the forms that a
    /// client accepts.
    pub fn unwritten_form(forms: &str) -> ApiError {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {forms}");
        let mut error = ApiError::new(406, "NotAcceptable", message);
        error.details = Some(json!({}));
        error
    }

    /// Returns the refusal of a built-in kind's path, which reads no body of this media type.
    pub fn unread_form() -> ApiError {
        let message = "415: Unsupported Media Type";
        let mut error = ApiError::new(415, "UnsupportedMediaType", message);
        error.details = Some(json!({}));
        error
    }

    /// Returns whether the refusal is about the path, the method or the media type: the request has
    /// not reached its kind.
    pub fn is_of_path(&self) -> bool {
        matches!(self.code, 404 | 405 | 406 | 415) && self.details == Some(json!({}))
    }

    pub fn too_large() -> ApiError {
        let message = "Request entity too large: limit is 3145728";
        ApiError::new(413, "RequestEntityTooLarge", message)
    }

    pub fn internal(message: impl Into<String>) -> ApiError {
        ApiError::new(500, "InternalError", message)
    }

    /// Returns the refusal of a request that a part of the server could not decide.
    pub fn undecided(why: impl Into<String>) -> ApiError {
        let why = why.into();
        let message = format!("Internal error occurred: {why}");
        ApiError::internal(message).with_causes(vec![json!({ "message": why })])
    }

    /// Returns the refusal of a request that took too long.
    pub fn timed_out() -> ApiError {
        let message = "Timeout: request did not complete within requested timeout";
        let mut error = ApiError::new(504, "Timeout", message);
        error.details = Some(json!({}));
        error
    }

    /// Returns the refusal of a list or page whose version is no longer in the history.
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

    /// Returns the refusal of something invalid that is not an object of a kind, such as the
    /// options of a request.
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

    /// Returns the `Status` object.
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

/// One reason why an object is refused, in the form of a `Status`'s `details.causes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// The machine-readable reason, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// The text, as worded by kube-apiserver, without the field's name.
    pub message: String,
    /// The path of the field, such as `spec.ports[0].name`.
    pub field: String,
}

impl From<Fault> for Cause {
    fn from(fault: Fault) -> Cause {
        cause(fault.reason.name(), fault.field, fault.message)
    }
}

/// Creates a cause.
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
pub(crate) const TYPE_INVALID: &str = "FieldValueTypeInvalid";
