//! What is wrong with a schema, gathered while it is read.
//!
//! Owns the words of such faults, as k8s.io/apimachinery `util/validation/field` puts them
//! together, and the paths of keywords. Must not know the rules.

use serde_json::Value;

use crate::error::{Fault, Reason};

#[derive(Default)]
pub(super) struct Report {
    pub(super) faults: Vec<Fault>,
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

/// The path of a keyword, or of a place, below another.
pub(super) fn child(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
