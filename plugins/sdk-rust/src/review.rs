//! Admission: what an API server asks before it stores a change, and the policy's verdict.
//!
//! This module knows the contract's JSON of a review and nothing of objects' kinds.

mod diff;
mod verdict;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{Error, Result};

pub use verdict::Verdict;

/// A change that somebody asked for: the `request` of an `AdmissionReview`.
///
/// In native tests: [`Review::of`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Review {
    /// The name of the webhook in the description that this review is for.
    #[serde(skip)]
    pub webhook: String,
    /// Identifies the review.
    pub uid: String,
    /// The kind of the object, in the version that the webhook's rules name.
    pub kind: ReviewKind,
    /// The resource of the request, in the version that the webhook's rules name.
    pub resource: ReviewResource,
    /// The subresource (`status`, `scale`, `exec`); empty for the object itself.
    pub sub_resource: String,
    /// The object's name; empty for a new object with a `generateName`.
    pub name: String,
    /// The namespace; `None` for a cluster-scoped object.
    pub namespace: Option<String>,
    /// What is to be done.
    pub operation: Operation,
    /// Who asks.
    pub user_info: UserInfo,
    /// Whether nothing will be stored. The verdict must be the same.
    pub dry_run: bool,
    object: Option<Box<RawValue>>,
    old_object: Option<Box<RawValue>>,
    options: Option<Box<RawValue>>,
}

/// A group, version and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReviewKind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

/// A group, version and resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReviewResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural: `pods`.
    pub resource: String,
}

/// What somebody wants to do with an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// Create it.
    #[default]
    Create,
    /// Change it.
    Update,
    /// Delete it. There is only an old object.
    Delete,
    /// Connect to it (`exec`, `proxy`). The object holds the options of the connection.
    Connect,
    /// In rules: any of these.
    #[serde(rename = "*")]
    All,
}

/// The user who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UserInfo {
    /// The name: `system:serviceaccount:default:x`.
    pub username: String,
    /// The uid, if the authenticator gave one.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
}

impl Review {
    /// Reads the `request` of an `AdmissionReview`. Also for native tests.
    pub fn of(webhook: &str, request: &str) -> Result<Self> {
        let review: Self = serde_json::from_str(request)
            .map_err(|error| Error::new(format!("the review cannot be read: {error}")))?;
        Ok(Self {
            webhook: webhook.into(),
            ..review
        })
    }

    /// Returns the object as it would be stored, with only the fields that `T` has; `None` for a
    /// deletion.
    pub fn object<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        read("the object", self.object.as_deref())
    }

    /// Returns the object as it is stored; `None` for a new object.
    pub fn old_object<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        read("the old object", self.old_object.as_deref())
    }

    /// Returns the options of the request (`CreateOptions`, `DeleteOptions` and so on).
    pub fn options<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        read("the options", self.options.as_deref())
    }

    /// Allows the request with the object changed to `object`, which must be whole: what it lacks
    /// is removed. The patch is the smallest one that this crate finds; without a difference there
    /// is none.
    pub fn changed_to(&self, object: &Value) -> Result<Verdict> {
        let before: Value = self
            .object()?
            .ok_or_else(|| Error::new("a request without an object cannot be changed"))?;
        Ok(Verdict::allow().operations(diff::diff(&before, object)))
    }

    /// Allows the request with the changes that `change` makes to the object. A request without
    /// an object is allowed as it is.
    pub fn mutate(&self, change: impl FnOnce(&mut Value) -> Result<()>) -> Result<Verdict> {
        let Some(before) = self.object::<Value>()? else {
            return Ok(Verdict::allow());
        };
        let mut object = before.clone();
        change(&mut object)?;
        Ok(Verdict::allow().operations(diff::diff(&before, &object)))
    }
}

fn read<T: DeserializeOwned>(what: &str, text: Option<&RawValue>) -> Result<Option<T>> {
    text.map(|text| serde_json::from_str(text.get()))
        .transpose()
        .map_err(|error| Error::new(format!("{what} cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const REQUEST: &str = r#"{"uid":"u-1","kind":{"group":"apps","version":"v1","kind":"Deployment"},
        "resource":{"group":"apps","version":"v1","resource":"deployments"},"subResource":"scale","name":"a",
        "namespace":"default","operation":"UPDATE","userInfo":{"username":"jane","groups":["g"]},
        "object":{"spec":{"replicas":3}},"oldObject":{"spec":{"replicas":1}},"dryRun":true,
        "options":{"kind":"UpdateOptions"},"requestKind":{"group":"apps","version":"v1","kind":"Deployment"}}"#;

    #[test]
    fn all_fields_of_a_review_are_read() {
        let review = Review::of("guard", REQUEST).unwrap();
        assert_eq!(
            (review.webhook.as_str(), review.uid.as_str()),
            ("guard", "u-1")
        );
        assert_eq!(review.kind.kind, "Deployment");
        assert_eq!(review.resource.resource, "deployments");
        assert_eq!(review.sub_resource, "scale");
        assert_eq!(
            (review.namespace.as_deref(), review.name.as_str()),
            (Some("default"), "a")
        );
        assert_eq!(review.operation, Operation::Update);
        assert_eq!(review.user_info.username, "jane");
        assert!(review.dry_run);
        let replicas = |object: Option<Value>| object.unwrap()["spec"]["replicas"].clone();
        assert_eq!(replicas(review.object().unwrap()), 3);
        assert_eq!(replicas(review.old_object().unwrap()), 1);
        assert_eq!(
            review.options::<Value>().unwrap().unwrap()["kind"],
            "UpdateOptions"
        );
    }

    #[test]
    fn a_deletion_has_no_object_and_cannot_be_changed() {
        let text = r#"{"uid":"u","operation":"DELETE","object":null,"oldObject":{"a":1}}"#;
        let review = Review::of("guard", text).unwrap();
        assert_eq!(review.object::<Value>().unwrap(), None);
        let verdict = review
            .mutate(|_| unreachable!("there is no object"))
            .unwrap();
        assert_eq!(verdict.to_json(), r#"{"allowed":true}"#);
        assert!(review.changed_to(&json!({})).is_err());
    }

    #[test]
    fn a_mutation_becomes_a_patch() {
        let review = Review::of("defaults", REQUEST).unwrap();
        let verdict = review.mutate(|object| {
            object["spec"]["paused"] = json!(true);
            Ok(())
        });
        assert_eq!(
            verdict.unwrap().to_json(),
            r#"{"allowed":true,"patch":[{"op":"add","path":"/spec/paused","value":true}]}"#
        );
        let same = review
            .changed_to(&json!({"spec": {"replicas": 3}}))
            .unwrap();
        assert_eq!(same.to_json(), r#"{"allowed":true}"#);
    }

    #[test]
    fn text_that_is_no_review_is_refused() {
        let error = Review::of("guard", "7").unwrap_err().to_string();
        assert!(error.starts_with("the review cannot be read"), "{error}");
    }
}
