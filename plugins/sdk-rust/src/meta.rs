//! What all objects have: metadata, owner references and status conditions, under the names of `k8s.io/apimachinery`.
//!
//! It knows nothing of requests and effects: plain data, in and out of JSON.

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

/// The part of an object's `metadata` that policies look at. As a field of a policy's own type: `metadata: ObjectMeta`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectMeta {
    /// The name.
    pub name: String,
    /// The namespace; none for a cluster-scoped object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// An object that was deleted and created again has another.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// For equality only.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Counts the changes of the specification; 0 for kinds that do not count them.
    #[serde(skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Since when it is being deleted, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// Who must let go of it before it is gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Whose it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
}

/// An object's pointer to one that it belongs to: it is deleted with it.
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
    /// Whether the owner stays until the object is gone, when it is deleted in the foreground.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl OwnerReference {
    /// The reference that `controllerutil.SetControllerReference` writes: `owner`, an object of this kind, controls the object that carries it.
    pub fn controller_of(owner: &ObjectMeta, kind: &Kind) -> Self {
        Self {
            controller: Some(true),
            block_owner_deletion: Some(true),
            ..Self::of(owner, kind)
        }
    }

    /// A plain owner: the object is deleted with it, no more.
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
    /// The owner reference of the object's controller, as `metav1.GetControllerOf`.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references
            .iter()
            .find(|owner| owner.controller == Some(true))
    }

    /// Whether the object's controller is this one (by uid), as `metav1.IsControlledBy`.
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
