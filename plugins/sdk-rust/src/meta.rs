//! The common fields of objects: metadata, owner references and status conditions, under the names
//! of `k8s.io/apimachinery`.
//!
//! This module knows no requests and effects: the types are plain data with a JSON form.

mod conditions;
mod time;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::description::Kind;

pub use conditions::{
    Condition, ConditionStatus, find_status_condition, is_status_condition_false,
    is_status_condition_true, remove_status_condition, set_status_condition,
    set_status_condition_at,
};
pub use time::rfc3339;

/// The part of an object's `metadata` that policies use. As a field of a policy's own type:
/// `metadata: ObjectMeta`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectMeta {
    /// The name.
    pub name: String,
    /// The namespace; `None` for a cluster-scoped object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The uid, which differs between an object and one that was later created with the same name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The resource version, for equality only.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Counts changes of the spec; 0 for kinds that do not count them.
    #[serde(skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// When its deletion was requested, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// The finalizers, which must all be removed before the object is deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// The owner references.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
}

/// An object's reference to an owner: it is deleted with the owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerReference {
    /// The owner's `apiVersion`.
    pub api_version: String,
    /// The owner's `kind`.
    pub kind: String,
    /// The owner's name, in the same namespace or cluster-scoped.
    pub name: String,
    /// The owner's uid.
    pub uid: String,
    /// Whether this owner is the one that controls the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether a foreground deletion of the owner waits for the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl OwnerReference {
    /// Returns the reference that `controllerutil.SetControllerReference` writes: `owner`, an
    /// object of this kind, controls the object with this reference.
    pub fn controller_of(owner: &ObjectMeta, kind: &Kind) -> Self {
        Self {
            controller: Some(true),
            block_owner_deletion: Some(true),
            ..Self::of(owner, kind)
        }
    }

    /// Returns a plain owner reference: the object is deleted with its owner.
    pub fn of(owner: &ObjectMeta, kind: &Kind) -> Self {
        Self {
            api_version: kind.api_version(),
            kind: kind.name().into(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
            controller: None,
            block_owner_deletion: None,
        }
    }
}

impl ObjectMeta {
    /// Returns the owner reference of the object's controller, like `metav1.GetControllerOf`.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references
            .iter()
            .find(|owner| owner.controller == Some(true))
    }

    /// Returns whether the object's controller is `owner` (by uid), like `metav1.IsControlledBy`.
    pub fn is_controlled_by(&self, owner: &ObjectMeta) -> bool {
        self.controller()
            .is_some_and(|controller| controller.uid == owner.uid)
    }
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(uid: &str) -> ObjectMeta {
        ObjectMeta {
            name: "web".into(),
            namespace: Some("default".into()),
            uid: uid.into(),
            ..ObjectMeta::default()
        }
    }

    const DEPLOYMENT: Kind = Kind::new("apps", "v1", "Deployment");

    #[test]
    fn a_controller_reference_has_all_that_set_controller_reference_writes() {
        let reference = OwnerReference::controller_of(&meta("u-1"), &DEPLOYMENT);
        assert_eq!(
            serde_json::to_string(&reference).unwrap(),
            r#"{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"u-1","controller":true,"blockOwnerDeletion":true}"#
        );
        let core = OwnerReference::of(&meta("u-1"), &Kind::core("v1", "ConfigMap"));
        assert_eq!(
            serde_json::to_string(&core).unwrap(),
            r#"{"apiVersion":"v1","kind":"ConfigMap","name":"web","uid":"u-1"}"#
        );
    }

    #[test]
    fn an_object_is_controlled_by_the_owner_of_that_uid_only() {
        let mut child = meta("u-2");
        assert!(!child.is_controlled_by(&meta("u-1")));
        child.owner_references = vec![OwnerReference::of(&meta("u-1"), &DEPLOYMENT)];
        assert!(
            !child.is_controlled_by(&meta("u-1")),
            "an owner that is no controller"
        );
        child.owner_references = vec![OwnerReference::controller_of(&meta("u-1"), &DEPLOYMENT)];
        assert!(child.is_controlled_by(&meta("u-1")));
        assert!(
            !child.is_controlled_by(&meta("u-3")),
            "another object of the same name"
        );
    }

    #[test]
    fn metadata_of_an_api_server_is_read() {
        let text = r#"{"name":"web","namespace":"default","uid":"u-1","resourceVersion":"7","generation":3,
            "creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"web"},"deletionTimestamp":null}"#;
        let meta: ObjectMeta = serde_json::from_str(text).unwrap();
        assert_eq!((meta.generation, meta.labels["app"].as_str()), (3, "web"));
        assert_eq!(meta.deletion_timestamp, None);
    }
}
