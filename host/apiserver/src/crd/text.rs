//! Texts of refusals of definitions.
//!
//! Must not know definitions.

use serde_json::Value;

use crate::meta::check::is_label;
use crate::status::{Cause, INVALID, cause};

/// What a DNS label (RFC 1035) is.
pub(super) const DNS_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// Returns whether a text is a DNS label that begins with a letter.
pub(super) fn dns_label(text: &str) -> bool {
    is_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Returns the cause of a value that breaks a rule.
pub(super) fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Cause {
    cause(INVALID, field, format!("Invalid value: {value}: {detail}"))
}
