//! The resource name of a kind, for paths and RBAC, and whether its objects are namespaced: from
//! the plugin's own definitions, from the kinds built into Kubernetes, or by Kubernetes' own guess.
//! This module needs no cluster.

use serde_json::Value;
use vmhost_core::{Description, Gvk};

/// The resource name of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The plural, such as `virtualmachines`.
    pub plural: String,
    /// Whether the objects are namespaced.
    pub namespaced: bool,
}

/// API groups whose kinds are built into Kubernetes. The plurals of all of these follow [`guess`].
const BUILTIN_GROUPS: [&str; 23] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Built-in kinds that are cluster-scoped (`kubectl api-resources --namespaced=false`). Their names
/// are unique among the groups above.
const CLUSTER_SCOPED: [&str; 38] = [
    "APIService",
    "CertificateSigningRequest",
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterTrustBundle",
    "ComponentStatus",
    "CSIDriver",
    "CSINode",
    "CustomResourceDefinition",
    "DeviceClass",
    "DeviceTaintRule",
    "FlowSchema",
    "IngressClass",
    "IPAddress",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "PriorityLevelConfiguration",
    "ResourceSlice",
    "RuntimeClass",
    "SelfSubjectAccessReview",
    "SelfSubjectReview",
    "SelfSubjectRulesReview",
    "ServiceCIDR",
    "StorageClass",
    "StorageVersion",
    "StorageVersionMigration",
    "SubjectAccessReview",
    "TokenReview",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "VolumeAttachment",
    "VolumeAttributesClass",
];

/// Returns the best name that is known without a cluster. An unknown kind is assumed to be
/// namespaced, as most are.
pub fn offline(description: &Description, kind: &Gvk) -> Name {
    carried(description, kind)
        .or_else(|| builtin(kind))
        .unwrap_or_else(|| Name {
            plural: guess(&kind.kind),
            namespaced: true,
        })
}

/// Returns the name from a definition that the plugin carries.
pub(crate) fn carried(description: &Description, kind: &Gvk) -> Option<Name> {
    let defines = |definition: &&Value| {
        let text = |path| definition.pointer(path).and_then(Value::as_str);
        text("/spec/group") == Some(&kind.group) && text("/spec/names/kind") == Some(&kind.kind)
    };
    let definition = description.definitions().iter().find(defines)?;
    let text = |path| definition.pointer(path).and_then(Value::as_str);
    Some(Name {
        plural: text("/spec/names/plural")?.to_owned(),
        namespaced: text("/spec/scope") != Some("Cluster"),
    })
}

/// Returns the name of a kind that is built into Kubernetes.
pub(crate) fn builtin(kind: &Gvk) -> Option<Name> {
    BUILTIN_GROUPS.contains(&kind.group.as_str()).then(|| Name {
        plural: guess(&kind.kind),
        namespaced: !CLUSTER_SCOPED.contains(&kind.kind.as_str()),
    })
}

/// Guesses the plural like apimachinery's `meta.UnsafeGuessKindToResource`.
pub(crate) fn guess(kind: &str) -> String {
    let singular = kind.to_lowercase();
    if singular.ends_with("endpoints") {
        return singular;
    }
    match singular.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if singular.ends_with('s') => format!("{singular}es"),
        None => format!("{singular}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rights::needs::tests::app;

    #[test]
    fn plurals_are_guessed_as_kubernetes_does() {
        for (kind, plural) in [
            ("Pod", "pods"),
            ("Ingress", "ingresses"),
            ("NetworkPolicy", "networkpolicies"),
            ("Endpoints", "endpoints"),
            ("VirtualMachine", "virtualmachines"),
        ] {
            assert_eq!(guess(kind), plural);
        }
    }

    #[test]
    fn a_kind_is_known_by_its_definition_or_because_it_is_built_in() {
        for (kind, plural, namespaced) in [
            (Gvk::new("example.com", "v1", "App"), "apps", true),
            (Gvk::new("", "v1", "Node"), "nodes", false),
            (Gvk::new("apps", "v1", "Deployment"), "deployments", true),
            (Gvk::new("other.com", "v1", "Node"), "nodes", true),
        ] {
            let name = offline(&app(), &kind);
            assert_eq!(
                (name.plural.as_str(), name.namespaced),
                (plural, namespaced)
            );
        }
        assert_eq!(
            builtin(&Gvk::new("gateway.networking.k8s.io", "v1", "Gateway")),
            None
        );
    }
}
