//! What admission is asked about: one request, as webhooks and policies see it.
//!
//! Owns the form of the `request` of an AdmissionReview. Must not know which webhook is asked.

use serde_json::{Value, json};

use crate::object::Object;

/// The group of the kinds that configure admission.
pub(crate) const GROUP: &str = "admissionregistration.k8s.io";

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    pub fn name(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

/// A kind or a resource in a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub group: String,
    pub version: String,
    pub name: String,
}

impl Named {
    /// Returns it as JSON, in which its name is called `word`.
    fn value(&self, word: &str) -> Value {
        json!({ "group": self.group, "version": self.version, word: self.name })
    }
}

/// One request, as admission sees it. Its objects are in the version of the request.
#[derive(Clone, Debug)]
pub(crate) struct Review {
    pub operation: Operation,
    pub resource: Named,
    pub subresource: String,
    pub kind: Named,
    /// Empty if the server makes the name.
    pub name: String,
    /// Empty for a cluster-scoped object; of a namespace its own name.
    pub namespace: String,
    pub user: Value,
    pub dry_run: bool,
    pub options: Value,
    pub object: Option<Object>,
    pub old: Option<Object>,
}

impl Review {
    /// Returns whether the other one asks the same in the same request.
    pub fn is_same(&self, other: &Review) -> bool {
        self.operation == other.operation
            && self.resource == other.resource
            && self.subresource == other.subresource
            && self.name == other.name
            && self.namespace == other.namespace
            && self.old == other.old
            && self.object == other.object
    }

    /// Returns the request without its objects, with the resource and kind that a rule matched.
    pub fn request(&self, resource: &Named, kind: &Named) -> Value {
        let mut request = json!({
            "kind": kind.value("kind"),
            "resource": resource.value("resource"),
            "requestKind": self.kind.value("kind"),
            "requestResource": self.resource.value("resource"),
            "operation": self.operation.name(),
            "userInfo": self.user,
            "dryRun": self.dry_run,
            "options": self.options,
        });
        for (field, text) in [
            ("subResource", &self.subresource),
            ("requestSubResource", &self.subresource),
            ("name", &self.name),
            ("namespace", &self.namespace),
        ] {
            if !text.is_empty() {
                request[field] = json!(text);
            }
        }
        request
    }

    /// Returns the name that refusals show.
    pub fn shown_name(&self) -> &str {
        let object = self.object.as_deref();
        let text = |field: &str| object?.get("metadata")?.get(field)?.as_str();
        let names = [Some(self.name.as_str()), text("name"), text("generateName")];
        let mut names = names.into_iter().flatten().filter(|name| !name.is_empty());
        names.next().unwrap_or("Unknown")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_leaves_out_what_it_has_not() {
        let named = |name: &str| Named {
            group: String::new(),
            version: "v1".to_owned(),
            name: name.to_owned(),
        };
        let review = Review {
            operation: Operation::Create,
            resource: named("nodes"),
            subresource: String::new(),
            kind: named("Node"),
            name: String::new(),
            namespace: String::new(),
            user: json!({ "username": "alice" }),
            dry_run: false,
            options: json!({ "kind": "CreateOptions" }),
            object: Some(json!({ "metadata": { "generateName": "n-" } }).into()),
            old: None,
        };
        let request = review.request(&review.resource, &review.kind);
        assert_eq!(
            request["kind"],
            json!({ "group": "", "version": "v1", "kind": "Node" })
        );
        assert!(request.get("namespace").is_none() && request.get("subResource").is_none());
        assert_eq!(review.shown_name(), "n-");
        assert!(review.is_same(&review.clone()));
    }
}
