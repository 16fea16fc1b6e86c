//! The API server's refusal of a request.
//!
//! This module owns the wire form of a `Status`, and builds one from a proxy's answer. It must not
//! know what the request asked for.

use std::fmt;
use std::time::Duration;

use http::{HeaderMap, header};
use serde::Deserialize;

/// Maximum number of characters of a refusal that is not a `Status` in a message.
const REFUSAL_SHOWN: usize = 200;

/// Maximum accepted `Retry-After`; longer waits are the caller's backoff.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

/// A `Status`, or a proxy's refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// HTTP status.
    pub code: u16,
    /// `Status.reason`; empty if the answer was not a `Status`.
    pub reason: String,
    /// `Status.message`, or the first line of a proxy's answer.
    pub message: String,
    /// `Status.details.causes`.
    pub causes: Vec<StatusCause>,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
}

/// One cause of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// `FieldManagerConflict`, `FieldValueInvalid`, ...
    pub reason: String,
    /// A message for people.
    pub message: String,
    /// The field's path.
    pub field: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct StatusText {
    kind: String,
    code: u16,
    reason: String,
    message: String,
    details: Option<StatusDetails>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct StatusDetails {
    causes: Vec<StatusCause>,
    retry_after_seconds: u64,
}

impl Status {
    /// Parses a refusal. Never fails: text that is not a `Status` becomes the message.
    pub(crate) fn read(code: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let header = headers
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.parse().ok());
        let mut status = match serde_json::from_slice::<StatusText>(body) {
            Ok(text) if text.kind == "Status" => Self::of(text),
            _ => Self {
                message: shown(body),
                ..Self::default()
            },
        };
        status.code = code;
        status.retry_after = header
            .map(Duration::from_secs)
            .or(status.retry_after)
            .map(|wait| wait.min(RETRY_AFTER_MAX));
        if status.message.is_empty() {
            status.message = format!("HTTP {code}");
        }
        status
    }

    /// Parses a `Status` from an `ERROR` event of a watch.
    pub(crate) fn from_event(object: &str) -> Self {
        match serde_json::from_str::<StatusText>(object) {
            Ok(text) => Self::of(text),
            Err(_) => Self {
                message: shown(object.as_bytes()),
                ..Self::default()
            },
        }
    }

    fn of(text: StatusText) -> Self {
        let details = text.details.unwrap_or_default();
        let after = details.retry_after_seconds;
        Self {
            code: text.code,
            reason: text.reason,
            message: text.message,
            causes: details.causes,
            retry_after: (after > 0).then(|| Duration::from_secs(after).min(RETRY_AFTER_MAX)),
        }
    }

    /// Returns whether the position of a list or watch is too old to continue.
    pub(crate) fn is_expired(&self) -> bool {
        self.code == 410 || matches!(self.reason.as_str(), "Expired" | "Gone")
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.message, self.code, self.reason)
    }
}

/// The first line of a text that is not a `Status`.
fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    line.chars().take(REFUSAL_SHOWN).collect()
}
