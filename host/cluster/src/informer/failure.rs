//! Why a list or a watch did not come to its natural end. What to do about it is `task`'s.

use std::time::Duration;

use super::lines::{LINE_MAX, TooLong};
use crate::api::{CallError, Refused};

/// Why a list or watch did not come to its natural end.
pub(super) enum Failure {
    /// 404: the kind is no longer served.
    NotServed,
    /// The server has no streaming list.
    NoStreaming(String),
    /// 410: the version is too old.
    Expired(String),
    /// The list has a lower version than the store: the server's versions went back.
    Older(u64),
    /// The watch brought nothing from its beginning on, for so long: its connection is dead, the
    /// server sends no bookmarks, or it has not reached the version.
    Silent(Duration),
    Call(CallError),
    /// The server's words make no sense.
    Nonsense(String),
}

impl From<TooLong> for Failure {
    fn from(TooLong: TooLong) -> Self {
        Self::Nonsense(format!("a line is longer than {LINE_MAX} bytes"))
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(refused) => Self::from(refused),
            other => Self::Call(other),
        }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let names = |word: &str| {
            refused.message.contains(word)
                || refused
                    .causes
                    .iter()
                    .any(|cause| cause.field.contains(word))
        };
        match refused.code {
            404 => Self::NotServed,
            // Servers before 1.27 name the second, those without the feature gate the first.
            400 | 422 if names("sendInitialEvents") || names("resourceVersionMatch") => {
                Self::NoStreaming(refused.message)
            }
            _ if refused.is_expired() => Self::Expired(refused.message),
            _ => Self::Call(CallError::Refused(refused)),
        }
    }
}
