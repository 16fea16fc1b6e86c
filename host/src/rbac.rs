//! `vmhost rbac`: the least-privilege RBAC of a plugin, as YAML that `kubectl apply` and `kubectl auth reconcile` take.
//!
//! What is limited to namespaces becomes a Role and a RoleBinding in each, everything else one ClusterRole and its binding. The service account itself is not
//! part of it: it belongs to whoever deploys the host.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use vmhost_cluster::{ConnectOptions, Connection, connect};
use vmhost_core::{Description, Gvk};

use crate::cli::RbacArgs;
use crate::config::check_namespaces;
use crate::manager::Loader;
use crate::permissions::names::{Name, offline};
use crate::permissions::{Access, Lease, Need, Options, Scope, needs, owner_needs};
use crate::run::print;

pub mod rules;

use rules::{Rule, rules, without};

const API_GROUP: &str = "rbac.authorization.k8s.io";

/// Where a rule holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Cluster,
    Namespace(String),
}

/// A Role, ClusterRole or binding.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
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

#[derive(Clone, Debug, Serialize)]
struct Subject {
    kind: &'static str,
    namespace: String,
    name: String,
}

/// Loads a component and prints the RBAC that it needs.
pub async fn command(loader: &Loader, args: &RbacArgs) -> Result<()> {
    check_namespaces(&args.namespaces)?;
    let (plugin, _) = loader.load_file(&args.file).await?;
    let description = plugin.description();
    let account = account(&args.service_account)?;
    let options = Options {
        namespaces: args.namespaces.clone(),
        lease: args.leader_elect.then(|| Lease {
            namespace: args
                .leader_election_namespace
                .clone()
                .unwrap_or_else(|| account.namespace.clone()),
            name: args.leader_election_id.clone(),
        }),
        install_crds: args.install_crds,
    };
    let mut needs = needs(description, &options);
    needs.extend(owner_needs(description, &options));
    let names = names(args, description, &needs).await?;
    let places = places(&needs, &names, args.role)?;
    let documents = documents(&description.name, &account, &places);
    let mut text = format!(
        "# What the plugin {} needs, bound to the service account {}/{}, which has to exist.\n",
        description.name, account.namespace, account.name
    );
    for document in documents {
        text.push_str("---\n");
        text.push_str(&serde_yaml_ng::to_string(&document)?);
    }
    print(text.trim_end());
    Ok(())
}

fn account(text: &str) -> Result<Subject> {
    match text.split_once('/') {
        Some((namespace, name))
            if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
        {
            Ok(Subject {
                kind: "ServiceAccount",
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            })
        }
        _ => bail!("--service-account {text:?} is not of the form NAMESPACE/NAME"),
    }
}

/// The name of each kind: by discovery if a cluster was named, which knows best.
async fn names(
    args: &RbacArgs,
    description: &Description,
    needs: &[Need],
) -> Result<BTreeMap<Gvk, Name>> {
    let connection: Option<Connection> = match args.kubeconfig.is_some() || args.context.is_some() {
        true => {
            let options = ConnectOptions {
                kubeconfig: args.kubeconfig.clone(),
                context: args.context.clone(),
            };
            Some(connect(&options).await?)
        }
        false => None,
    };
    let mut names = BTreeMap::new();
    for need in needs {
        if names.contains_key(&need.kind) {
            continue;
        }
        let found = match &connection {
            Some(connection) => connection
                .resolve(&need.kind)
                .await
                .with_context(|| format!("cannot look up {}", need.kind))?,
            None => None,
        };
        let name = match found {
            Some(resource) => Name {
                plural: resource.plural,
                namespaced: resource.namespaced,
            },
            None => offline(description, &need.kind),
        };
        names.insert(need.kind.clone(), name);
    }
    Ok(names)
}

/// Each access in its places. With `role` nothing may hold in the whole cluster: the field that asks for it is the error.
fn places(
    needs: &[Need],
    names: &BTreeMap<Gvk, Name>,
    role: bool,
) -> Result<BTreeMap<Place, BTreeSet<Access>>> {
    let mut places: BTreeMap<Place, BTreeSet<Access>> = BTreeMap::new();
    for need in needs {
        let Some(name) = names.get(&need.kind) else {
            continue;
        };
        let found = match (&need.scope, name.namespaced) {
            (Scope::Only(namespaces), true) => {
                namespaces.iter().cloned().map(Place::Namespace).collect()
            }
            _ if !role => vec![Place::Cluster],
            (_, namespaced) => bail!(refused(need, namespaced)),
        };
        for place in found {
            places
                .entry(place)
                .or_default()
                .insert(Access::of(need, name));
        }
    }
    Ok(places)
}

/// Why a Role does not do.
fn refused(need: &Need, namespaced: bool) -> String {
    let (verb, kind) = (need.verb, &need.kind);
    if !namespaced {
        return format!(
            "{}: it needs to {verb} {kind}, which is cluster-scoped, and only a ClusterRole can grant that: leave --role out",
            need.why
        );
    }
    let field = match need.why.starts_with("permissions") {
        true => format!("{}.namespaces", need.why),
        false => need.why.clone(),
    };
    format!(
        "{field}: it needs to {verb} {kind} in all namespaces, and a Role grants one: name them with --namespace, or leave --role out"
    )
}

fn documents(
    plugin: &str,
    account: &Subject,
    places: &BTreeMap<Place, BTreeSet<Access>>,
) -> Vec<Document> {
    let everywhere = places.get(&Place::Cluster).cloned().unwrap_or_default();
    let mut documents = Vec::new();
    for (place, accesses) in places {
        let (kind, binding, namespace, accesses) = match place {
            Place::Cluster => ("ClusterRole", "ClusterRoleBinding", None, accesses.clone()),
            Place::Namespace(namespace) => (
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
    use crate::permissions::tests::app;

    fn made(options: &Options, role: bool) -> Result<BTreeMap<Place, BTreeSet<Access>>> {
        let needs = needs(&app(), options);
        let names = needs
            .iter()
            .map(|need| (need.kind.clone(), offline(&app(), &need.kind)))
            .collect();
        places(&needs, &names, role)
    }

    #[test]
    fn what_is_limited_to_namespaces_becomes_roles() {
        let places = made(&Options::default(), false).unwrap();
        let found: Vec<&Place> = places.keys().collect();
        let namespace = |name: &str| Place::Namespace(name.into());
        assert_eq!(found, [&Place::Cluster, &namespace("a"), &namespace("b")]);
        let account = account("system/vmhost").unwrap();
        let documents = documents("app", &account, &places);
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
                "controllers[0].primary: it needs to get App.v1.example.com in all namespaces"
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
                "controllers[0].reads[0]: it needs to get Node.v1, which is cluster-scoped"
            ),
            "{error}"
        );
    }

    #[test]
    fn a_service_account_has_two_parts() {
        for bad in ["x", "/x", "x/", "a/b/c"] {
            assert!(account(bad).is_err(), "{bad}");
        }
    }
}
