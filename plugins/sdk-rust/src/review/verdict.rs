//! The answer to a review. It must not know the object.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// Whether a request may go on, and how.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    patch: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    audit_annotations: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Status {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    code: u16,
}

impl Verdict {
    /// Allows the request.
    pub fn allow() -> Self {
        Self {
            allowed: true,
            status: None,
            patch: Vec::new(),
            warnings: Vec::new(),
            audit_annotations: Map::new(),
        }
    }

    /// Refuses the request: 403 Forbidden with this text, which the user sees.
    pub fn deny(message: impl Into<String>) -> Self {
        let status = Status {
            message: message.into(),
            reason: Some("Forbidden".into()),
            code: 403,
        };
        Self {
            allowed: false,
            status: Some(status),
            ..Self::allow()
        }
    }

    /// Refuses the request with another HTTP status (400 to 599) and its reason, such as 409 and
    /// `Conflict`.
    pub fn deny_as(code: u16, reason: &str, message: impl Into<String>) -> Self {
        let status = Status {
            message: message.into(),
            reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()),
            code,
        };
        Self {
            allowed: false,
            status: Some(status),
            ..Self::allow()
        }
    }

    /// Adds a warning for the user, whatever the verdict is. At most 120 characters are shown by
    /// all clients.
    pub fn warning(mut self, text: impl Into<String>) -> Self {
        self.warnings.push(text.into());
        self
    }

    /// Adds an annotation to the request's audit event. The API server puts the webhook's name
    /// before the key.
    pub fn audit_annotation(mut self, key: &str, value: impl Into<String>) -> Self {
        self.audit_annotations
            .insert(key.into(), Value::String(value.into()));
        self
    }

    /// Changes the object: sets `path` (a JSON pointer), whether or not it exists. For a mutating
    /// webhook.
    pub fn add(self, path: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        self.operations([json!({ "op": "add", "path": path, "value": value })])
    }

    /// Like [`Verdict::add`], for a path that must exist.
    pub fn replace(self, path: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        self.operations([json!({ "op": "replace", "path": path, "value": value })])
    }

    /// Changes the object: removes `path`, which must exist.
    pub fn remove(self, path: &str) -> Self {
        self.operations([json!({ "op": "remove", "path": path })])
    }

    /// Returns whether the request may go on.
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// Returns the text of a refusal.
    pub fn message(&self) -> Option<&str> {
        self.status.as_ref().map(|status| status.message.as_str())
    }

    /// Returns the JSON of the contract: an `AdmissionResponse` without uid, with the patch as a
    /// list.
    pub fn to_json(&self) -> String {
        // Only a map with keys other than strings could fail, and there is none.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn operations(mut self, operations: impl IntoIterator<Item = Value>) -> Self {
        self.patch.extend(operations);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_an_admission_response() {
        assert_eq!(Verdict::allow().to_json(), r#"{"allowed":true}"#);
        assert_eq!(
            Verdict::deny("no").to_json(),
            r#"{"allowed":false,"status":{"message":"no","reason":"Forbidden","code":403}}"#
        );
        assert_eq!(
            Verdict::deny_as(409, "Conflict", "taken")
                .warning("w")
                .to_json(),
            r#"{"allowed":false,"status":{"message":"taken","reason":"Conflict","code":409},"warnings":["w"]}"#
        );
        assert_eq!(
            Verdict::deny_as(422, "", "odd").to_json(),
            r#"{"allowed":false,"status":{"message":"odd","code":422}}"#
        );
    }

    #[test]
    fn operations_are_in_order() {
        let verdict = Verdict::allow()
            .add("/a", 1)
            .replace("/b", "x")
            .remove("/c")
            .audit_annotation("k", "v");
        assert_eq!(
            verdict.to_json(),
            r#"{"allowed":true,"patch":[{"op":"add","path":"/a","value":1},{"op":"replace","path":"/b","value":"x"},{"op":"remove","path":"/c"}],"auditAnnotations":{"k":"v"}}"#
        );
        assert!(verdict.is_allowed() && verdict.message().is_none());
    }
}
