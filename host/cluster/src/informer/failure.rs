//! Why a list or watch failed. `task` decides what to do.

use std::time::Duration;

use super::lines::{LINE_MAX, TooLong};
use crate::error::Error;
use crate::status::Status;

/// Why a list or watch failed.
pub(super) enum Failure {
    /// 404: the kind is no longer served.
    NotServed,
    /// The server does not support streaming lists.
    NoStreaming(String),
    /// 410: the version is too old.
    Expired(String),
    /// The list has a lower version than the store: the server's versions went back.
    Older(u64),
    /// The watch was silent from its start for this long: its connection is dead, the server sends
    /// no bookmarks, or the server has not reached the version.
    Silent(Duration),
    /// The request got no answer, or another refusal.
    Call(Error),
    /// The server's answer is malformed.
    Nonsense(String),
}

impl From<TooLong> for Failure {
    fn from(TooLong: TooLong) -> Self {
        Self::Nonsense(format!("a line is longer than {LINE_MAX} bytes"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(status) => Self::from(status),
            other => Self::Call(other),
        }
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let names = |word: &str| {
            status.message.contains(word)
                || status.causes.iter().any(|cause| cause.field.contains(word))
        };
        match status.code {
            404 => Self::NotServed,
            // Servers before 1.27 name the second parameter, servers without the feature gate the
            // first.
            400 | 422 if names("sendInitialEvents") || names("resourceVersionMatch") => {
                Self::NoStreaming(status.message)
            }
            _ if status.is_expired() => Self::Expired(status.message),
            _ => Self::Call(Error::Refused(status)),
        }
    }
}
