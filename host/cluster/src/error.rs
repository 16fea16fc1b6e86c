//! Why a request to the API server failed.
//!
//! One enum for all requests of this crate: its variants say how far a request came. This module
//! must not know what a request asked for, nor when to retry.

use std::error::Error as StdError;
use std::time::Duration;

use vmhost_core::chain_line;

use crate::status::Status;

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a request failed. [`Error::maybe_applied`] returns whether a write may have happened
/// nevertheless.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request was not sent: no connection, no credentials, or a name that is not valid in a
    /// path.
    #[error("the request could not be sent")]
    NotSent(#[source] BoxError),
    /// The connection broke before the answer was read. The request may have arrived.
    #[error("the connection to the API server broke")]
    Network(#[source] BoxError),
    /// The answer did not arrive in time.
    #[error("no answer from the API server within {0:?}")]
    Timeout(Duration),
    /// The answer exceeds this many bytes, and was not read.
    #[error("the API server's answer is longer than {0} bytes")]
    TooLarge(usize),
    /// The request was carried out, but its answer is unreadable.
    #[error("unexpected answer from the API server: {0}")]
    Unreadable(String),
    /// The server refused the request. After 401 and 403 an operator must act.
    #[error("the API server refused: {0}")]
    Refused(Status),
}

impl Error {
    /// The HTTP status of a refusal.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused(status) => Some(status.code),
            _ => None,
        }
    }

    /// Returns whether the server may have carried out the request. If so, only a live read can
    /// tell.
    pub fn maybe_applied(&self) -> bool {
        match self {
            Self::Refused(status) => match status.code {
                // The server itself says that it takes no requests now (503), or does not know the
                // method (501). A proxy's 503 has no reason.
                501 => false,
                503 => status.reason != "ServiceUnavailable",
                code => code >= 500,
            },
            Self::Network(_) | Self::Timeout(_) | Self::TooLarge(_) | Self::Unreadable(_) => true,
            Self::NotSent(_) => false,
        }
    }

    /// How long the server asks to wait; zero if it does not ask.
    pub fn retry_after(&self) -> Duration {
        match self {
            Self::Refused(status) => status.retry_after.unwrap_or_default(),
            _ => Duration::ZERO,
        }
    }

    /// One line that says what happened, with the source if there is one, for a text that already
    /// names the API server.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::NotSent(source) | Self::Network(source) => chain_line(source.as_ref()),
            Self::Timeout(after) => format!("no answer within {after:?}"),
            Self::TooLarge(limit) => format!("the answer is longer than {limit} bytes"),
            Self::Unreadable(detail) => format!("unexpected answer: {detail}"),
            Self::Refused(status) => status.to_string(),
        }
    }
}
