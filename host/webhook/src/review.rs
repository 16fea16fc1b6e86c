//! The envelope that both kinds of review share.
//!
//! This module owns how a body becomes the `request` of a review, and why a body is refused. It
//! must not know HTTP, nor what stands in a request.

use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) mod admission;
pub(crate) mod conversion;

/// The maximum length of a review's uid and namespace. The API server sends a UUID and a label;
/// they become a key, which log lines show.
const NAME_MAX: usize = 253;

/// A kind of review that is served.
struct Form {
    group: &'static str,
    kind: &'static str,
    /// Where a registration lists the versions.
    versions_field: &'static str,
}

impl Form {
    fn api_version(&self) -> String {
        format!("{}/v1", self.group)
    }
}

/// Why a body is no review that can be answered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadReview {
    /// The body is not what the API server sends.
    #[error("the body is no {kind}: {detail}")]
    NotOne { kind: &'static str, detail: String },
    /// A review of another kind or version.
    #[error(
        "{found} is not served: this is the place of {kind} of {group}/v1 (set {versions_field}: [\"v1\"])"
    )]
    Other {
        found: String,
        group: &'static str,
        kind: &'static str,
        versions_field: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    request: Option<Box<RawValue>>,
}

/// Returns the `request` of a review: a JSON object, unchanged.
fn request_of(body: &[u8], form: &Form) -> Result<Box<RawValue>, BadReview> {
    let wrong = |detail: String| BadReview::NotOne {
        kind: form.kind,
        detail,
    };
    if body.trim_ascii_start().first() != Some(&b'{') {
        // From an array, serde would read the fields by their order.
        return Err(wrong("it is no JSON object".to_owned()));
    }
    let envelope: Envelope =
        serde_json::from_slice(body).map_err(|error| wrong(error.to_string()))?;
    if envelope.kind.is_empty() || envelope.api_version.is_empty() {
        return Err(wrong("apiVersion or kind is missing".to_owned()));
    }
    if envelope.kind != form.kind || envelope.api_version != form.api_version() {
        return Err(BadReview::Other {
            found: format!("{} of {}", envelope.kind, envelope.api_version),
            group: form.group,
            kind: form.kind,
            versions_field: form.versions_field,
        });
    }
    match envelope.request {
        Some(request) if request.get().starts_with('{') => Ok(request),
        _ => Err(wrong("request is missing".to_owned())),
    }
}

/// Checks a review's `uid` or `namespace`, which anybody may have sent.
fn checked(field: &str, name: String, form: &Form) -> Result<String, BadReview> {
    if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(BadReview::NotOne {
            kind: form.kind,
            detail: format!("request.{field} must have 1 to {NAME_MAX} printable characters"),
        });
    }
    Ok(name)
}
