//! Roles that grant accesses, and their bindings, as `kubectl apply` and `kubectl auth reconcile`
//! take them. Plain data.
//!
//! Accesses that are limited to namespaces become a Role and a RoleBinding in each; all others
//! become one ClusterRole and its binding. The service account itself is not included, since it
//! belongs to the host's deployment.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use vmhost_core::Gvk;

use crate::rights::access::Access;
use crate::rights::names::Name;
use crate::rights::needs::{Need, Scope};
use crate::rights::rules::{Rule, rules, without};

const API_GROUP: &str = "rbac.authorization.k8s.io";

/// The scope of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoleScope {
    /// The whole cluster.
    Cluster,
    /// One namespace.
    Namespace(String),
}

/// A Role, ClusterRole or binding.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<Vec<Rule>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role_ref: Option<RoleRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subjects: Option<Vec<Subject>>,
}

#[derive(Debug, Serialize)]
struct Metadata {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RoleRef {
    api_group: &'static str,
    kind: &'static str,
    name: String,
}

/// A service account, as a binding's subject.
#[derive(Clone, Debug, Serialize)]
pub struct Subject {
    kind: &'static str,
    /// The account's namespace.
    pub namespace: String,
    /// The account's name.
    pub name: String,
}

/// The accesses of each scope.
pub type ByScope = BTreeMap<RoleScope, BTreeSet<Access>>;

/// The reason why a Role cannot grant an access.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unlimited(String);

impl Subject {
    /// The service account of this name.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            kind: "ServiceAccount",
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// Groups accesses by scope. With `role`, an access to the whole cluster is an error that names the
/// field behind it.
pub fn by_scope(
    needs: &[Need],
    names: &BTreeMap<Gvk, Name>,
    role: bool,
) -> Result<ByScope, Unlimited> {
    let mut scopes = ByScope::new();
    for need in needs {
        let Some(name) = names.get(&need.kind) else {
            continue;
        };
        let found = match (&need.scope, name.namespaced) {
            (Scope::Only(namespaces), true) => namespaces
                .iter()
                .cloned()
                .map(RoleScope::Namespace)
                .collect(),
            _ if !role => vec![RoleScope::Cluster],
            (_, namespaced) => return Err(Unlimited(refused(need, namespaced))),
        };
        for scope in found {
            scopes.entry(scope).or_default().insert(need.access(name));
        }
    }
    Ok(scopes)
}

/// The error for an access that a Role cannot grant.
fn refused(need: &Need, namespaced: bool) -> String {
    let (verb, kind) = (need.verb, &need.kind);
    if !namespaced {
        return format!(
            "{}: the plugin needs to {verb} {kind}, which is cluster-scoped; only a ClusterRole can grant that, so omit --role",
            need.why
        );
    }
    let field = match need.why.starts_with("permissions") {
        true => format!("{}.namespaces", need.why),
        false => need.why.clone(),
    };
    format!(
        "{field}: the plugin needs to {verb} {kind} in all namespaces, but a Role covers one; name them with --namespace, or omit --role"
    )
}

/// The roles that grant these accesses, and their bindings to a service account.
pub fn documents(plugin: &str, account: &Subject, scopes: &ByScope) -> Vec<Document> {
    let everywhere = scopes.get(&RoleScope::Cluster).cloned().unwrap_or_default();
    let mut documents = Vec::new();
    for (scope, accesses) in scopes {
        let (kind, binding, namespace, accesses) = match scope {
            RoleScope::Cluster => ("ClusterRole", "ClusterRoleBinding", None, accesses.clone()),
            RoleScope::Namespace(namespace) => (
                "Role",
                "RoleBinding",
                Some(namespace.clone()),
                without(accesses, &everywhere),
            ),
        };
        if accesses.is_empty() {
            continue;
        }
        let name = format!("vmhost:{plugin}");
        let document = |kind, rules, role_ref, subjects| Document {
            api_version: "rbac.authorization.k8s.io/v1",
            kind,
            metadata: Metadata {
                name: name.clone(),
                namespace: namespace.clone(),
            },
            rules,
            role_ref,
            subjects,
        };
        documents.push(document(kind, Some(rules(&accesses)), None, None));
        let role_ref = RoleRef {
            api_group: API_GROUP,
            kind,
            name: name.clone(),
        };
        let subjects = vec![account.clone()];
        documents.push(document(binding, None, Some(role_ref), Some(subjects)));
    }
    documents
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rights::names::offline;
    use crate::rights::needs::tests::app;
    use crate::rights::needs::{Options, needs};

    fn made(options: &Options, role: bool) -> Result<ByScope, Unlimited> {
        let needs = needs(&app(), options);
        let names = needs
            .iter()
            .map(|need| (need.kind.clone(), offline(&app(), &need.kind)))
            .collect();
        by_scope(&needs, &names, role)
    }

    #[test]
    fn what_is_limited_to_namespaces_becomes_roles() {
        let scopes = made(&Options::default(), false).unwrap();
        let found: Vec<&RoleScope> = scopes.keys().collect();
        let namespace = |name: &str| RoleScope::Namespace(name.into());
        assert_eq!(
            found,
            [&RoleScope::Cluster, &namespace("a"), &namespace("b")]
        );
        let account = Subject::service_account("system", "vmhost");
        let documents = documents("app", &account, &scopes);
        let kinds: Vec<&str> = documents.iter().map(|document| document.kind).collect();
        assert_eq!(
            kinds,
            [
                "ClusterRole",
                "ClusterRoleBinding",
                "Role",
                "RoleBinding",
                "Role",
                "RoleBinding"
            ]
        );
        let text = serde_yaml_ng::to_string(&documents[2]).unwrap();
        assert_eq!(
            text,
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: vmhost:app\n  namespace: a\nrules:\n- apiGroups:\n  - ''\n  resources:\n  - configmaps\n  verbs:\n  - delete\n  - get\n"
        );
    }

    #[test]
    fn a_role_cannot_grant_everything() {
        let error = made(&Options::default(), true).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "controllers[0].primary: the plugin needs to get App.v1.example.com in all namespaces"
            ),
            "{error}"
        );
        let options = Options {
            namespaces: vec!["x".into()],
            ..Options::default()
        };
        let error = made(&options, true).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "controllers[0].reads[0]: the plugin needs to get Node.v1, which is cluster-scoped"
            ),
            "{error}"
        );
    }
}
