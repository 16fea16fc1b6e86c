//! Refusals by this host, in the form of an API server's. This module must not know why a write is
//! refused.

use vmhost_cluster::{Error, Status};

/// A refusal by this host, in the form of an API server's.
pub(super) fn invalid(message: String) -> Error {
    status(400, "BadRequest", message)
}

pub(super) fn status(code: u16, reason: &str, message: String) -> Error {
    Error::Refused(Status {
        code,
        reason: reason.into(),
        message,
        ..Status::default()
    })
}
