//! What a kind does beyond storing objects: its subresources, its immutable fields, how its objects
//! are deleted, its code. Must not know how a request is answered.

use serde::Deserialize;

/// A subresource, with the kind of its objects.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subresource {
    pub name: String,
    pub group: String,
    pub version: String,
    pub kind: String,
    pub verbs: Vec<String>,
}

/// The rules of a kind that its data cannot express.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Fill {
    #[default]
    Nothing,
    Autoscaler,
    /// A binding of a role.
    Binding,
    /// A claim of a persistent volume.
    Claim,
    ConfigMap,
    CronJob,
    DaemonSet,
    Deployment,
    Ingress,
    Job,
    LimitRange,
    /// A binding of a mutating admission policy.
    MutatingBinding,
    /// A mutating admission policy.
    MutatingPolicy,
    NetworkPolicy,
    Node,
    Pod,
    PodTemplate,
    /// A validating admission policy.
    Policy,
    /// A binding of a validating admission policy.
    PolicyBinding,
    /// A priority of pods.
    PriorityClass,
    ReplicationController,
    ResourceClaim,
    ResourceClaimTemplate,
    /// A role, of a namespace or of the cluster.
    Role,
    Secret,
    Service,
    SigningRequest,
    StatefulSet,
    /// A kind with a pod template.
    Template,
    /// A persistent volume.
    Volume,
    WebhookConfiguration,
}

/// A field that no update may change.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fixed {
    pub field: String,
    /// The name of the field in the refusal, if it is another one.
    #[serde(rename = "as")]
    pub shown: Option<String>,
    /// The text of the refusal; `{}` stands for the new value.
    pub message: String,
    /// The parts of the field that may change.
    #[serde(default)]
    pub except: Vec<String>,
    /// The flag that makes the field immutable.
    pub when: Option<String>,
    /// Whether it is a list of texts whose order, and how often it has each, does not matter.
    #[serde(default)]
    pub unordered: bool,
}

/// How the objects of a kind are deleted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Deletion {
    /// Whether a DELETE that removes an object is answered with the object, not with a `Status`.
    pub shows_object: bool,
    /// Whether an object is marked as deleted before it is removed: a watch shows both.
    pub is_graceful: bool,
    /// Whether the code of the kind checks preconditions, and refuses them in words of its own.
    pub checks_itself: bool,
    pub dependents: Dependents,
    /// The warning for a request that does not say what happens to the dependents.
    pub warning: Option<String>,
    /// The finalizer that new objects get. In a real cluster, a controller removes it as soon as
    /// nothing uses the deleted object; here, the deletion itself does.
    pub finalizer: Option<String>,
}

/// What happens to the dependents of a deleted object if neither the request nor the object's
/// finalizers say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Dependents {
    #[default]
    Deleted,
    Orphaned,
    /// They are deleted, whatever the request says.
    Ignored,
}
