//! A review as a guest sees it: the request of a turn whose key is no object of the cluster.

use serde::Serialize;
use serde_json::value::RawValue;
use vmhost_core::description::{admission_kind, conversion_kind};
use vmhost_core::{Gvk, Object, ObjectName, Request, Snapshot};

/// A review for one webhook or conversion of a plugin.
pub struct Question {
    /// The name of the webhook or conversion.
    pub(super) name: String,
    /// `Admission.v1.vmhost` or `Conversion.v1.vmhost`.
    pub(super) kind: Gvk,
    /// The review's uid, in the namespace that the request is for.
    pub(super) key: ObjectName,
    object: Snapshot,
}

/// What a conversion is given.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Batch<'a> {
    #[serde(rename = "desiredAPIVersion")]
    desired: &'a str,
    objects: &'a [Box<RawValue>],
}

impl Question {
    /// Whether a request may be carried out. The text of the request stays as it came.
    pub fn admission(
        webhook: &str,
        uid: &str,
        namespace: Option<&str>,
        request: &RawValue,
    ) -> Self {
        let key = ObjectName::new(namespace, uid);
        Self::new(webhook, admission_kind(), key, request.get())
    }

    /// What objects are in another version.
    pub fn conversion(
        conversion: &str,
        uid: &str,
        desired: &str,
        objects: &[Box<RawValue>],
    ) -> Self {
        let batch = Batch { desired, objects };
        // Texts always serialise.
        let text = serde_json::to_string(&batch).unwrap_or_default();
        let key = ObjectName::new(None, uid);
        Self::new(conversion, conversion_kind(), key, &text)
    }

    fn new(name: &str, kind: Gvk, key: ObjectName, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            object: Object::with_text(key.clone(), "", 0, text),
            key,
        }
    }

    /// The request of an admission review, as it came; or what a conversion is given.
    pub(super) fn text(&self) -> &str {
        &self.object.text
    }

    /// Returns whether this is an admission review.
    pub(super) fn is_admission(&self) -> bool {
        self.kind == admission_kind()
    }

    /// The request of the call.
    pub fn request(&self) -> Request<'_> {
        Request {
            controller: &self.name,
            kind: &self.kind,
            name: &self.key,
            object: Some(self.object.clone()),
            previous: None,
            deleting: false,
            attempt: 0,
            last: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_review_is_a_turn_of_a_key_that_is_no_object() {
        let text = r#"{"uid":"u", "object":{"a":1.0}}"#;
        let question = Question::admission("w", "u", Some("ns"), &raw(text));
        let request = question.request();
        assert_eq!(
            (
                request.controller,
                request.kind.to_string(),
                request.name.as_str()
            ),
            ("w", "Admission.v1.vmhost".to_owned(), "ns/u")
        );
        assert_eq!(&request.object.unwrap().text, text, "not printed again");
        assert!(question.is_admission());
        let objects = [raw(r#"{"x":1.0}"#), raw("{}")];
        let question = Question::conversion("c", "u", "g/v2", &objects);
        let request = question.request();
        assert_eq!(request.name.namespace(), None);
        assert_eq!(
            &request.object.unwrap().text,
            r#"{"desiredAPIVersion":"g/v2","objects":[{"x":1.0},{}]}"#
        );
        assert!(!question.is_admission());
    }
}
