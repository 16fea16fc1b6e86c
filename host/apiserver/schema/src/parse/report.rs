//! Collects what is wrong with a schema while it is parsed.
//!
//! Owns the texts of these faults, in the form of k8s.io/apimachinery `util/validation/field`, and
//! the paths of keywords. Must not know the rules.

use serde_json::Value;

use crate::error::{Fault, Reason};

#[derive(Default)]
pub(super) struct Report {
    pub(super) faults: Vec<Fault>,
    /// Whether the schema is of a built-in kind: then null may be a default.
    pub(super) is_trusted: bool,
}

impl Report {
    fn add(&mut self, reason: Reason, field: String, message: String) {
        self.faults.push(Fault {
            reason,
            message,
            field,
        });
    }

    pub(super) fn required(&mut self, field: String, detail: &str) {
        let message = format!("Required value: {detail}");
        self.add(Reason::Required, field, message);
    }

    pub(super) fn forbidden(&mut self, field: String, detail: &str) {
        self.add(Reason::Forbidden, field, format!("Forbidden: {detail}"));
    }

    pub(super) fn invalid(&mut self, field: String, value: &Value, detail: &str) {
        let message = format!("Invalid value: {value}: {detail}");
        self.add(Reason::Invalid, field, message);
    }

    pub(super) fn unsupported(&mut self, field: String, value: &Value, supported: &str) {
        let message = format!("Unsupported value: {value}: supported values: {supported}");
        self.add(Reason::NotSupported, field, message);
    }
}

/// Returns the path of a keyword or a place below another.
pub(super) fn child(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
