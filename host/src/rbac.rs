//! `vmhost rbac`: prints the least-privilege RBAC of a plugin, as YAML for `kubectl apply` and
//! `kubectl auth reconcile`, or as values for the chart. This module must not know which rights a
//! plugin needs.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use vmhost_cluster::{ConnectOptions, Reader, connect};
use vmhost_core::{Description, Gvk};
use vmhost_runtime::deploy::loader::Loader;
use vmhost_runtime::rights::names::{Name, offline};
use vmhost_runtime::rights::needs::{Lease, Need, Options, Webhooks, needs, owner_needs};
use vmhost_runtime::rights::roles::{Document, Subject, by_scope, documents};

use crate::cli::RbacArgs;
use crate::cli::common::MetricsAccess;
use crate::flags::check_namespaces;
use crate::output::print;
use crate::webhooks::settings::SECRET;

mod values;

/// Loads a component and prints the RBAC that it needs.
pub(crate) async fn command(loader: &Loader, args: &RbacArgs) -> Result<()> {
    check_namespaces(&args.namespaces)?;
    let plugin = loader.load_file(&args.file).await?.plugin;
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
        webhooks: description.answers_reviews().then(|| Webhooks {
            secret: (!args.webhook_cert_dir)
                .then(|| (account.namespace.clone(), SECRET.to_owned())),
            register: args.register_webhooks,
        }),
        reviews_callers: args.metrics_access == MetricsAccess::Token,
    };
    let needs = all_needs(description, &options);
    let names = names(args, description, &needs).await?;
    let scopes = by_scope(&needs, &names, args.role)?;
    let documents = documents(&description.name, &account, &scopes);
    if args.values {
        let values = values::of_plugin(&description.name, &documents)?;
        print(serde_yaml_ng::to_string(&values)?.trim_end());
        return Ok(());
    }
    let mut text = format!(
        "# RBAC for the plugin {}, bound to the service account {}/{}, which must exist.\n",
        description.name, account.namespace, account.name
    );
    for document in documents {
        text.push_str("---\n");
        text.push_str(&serde_yaml_ng::to_string(&document)?);
    }
    print(text.trim_end());
    Ok(())
}

/// Returns the roles of a plugin and their bindings, without asking a cluster.
pub(crate) fn offline_documents(
    description: &Description,
    account: &Subject,
    options: &Options,
) -> Result<Vec<Document>> {
    let needs = all_needs(description, options);
    let name = |need: &Need| (need.kind.clone(), offline(description, &need.kind));
    let names: BTreeMap<Gvk, Name> = needs.iter().map(name).collect();
    let scopes = by_scope(&needs, &names, false)?;
    Ok(documents(&description.name, account, &scopes))
}

/// Returns the accesses that a plugin needs, with those that only some clusters require.
fn all_needs(description: &Description, options: &Options) -> Vec<Need> {
    let mut all = needs(description, options);
    // A plugin that writes nothing sets no owner references.
    if !description.permissions.is_empty() {
        all.extend(owner_needs(description, options));
    }
    all
}

/// Reads the service account of --service-account.
pub(crate) fn account(text: &str) -> Result<Subject> {
    match text.split_once('/') {
        Some((namespace, name))
            if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
        {
            Ok(Subject::service_account(namespace, name))
        }
        _ => bail!("--service-account {text:?} is not of the form NAMESPACE/NAME"),
    }
}

/// Returns the resource name of each kind. If a cluster was given, its discovery decides.
async fn names(
    args: &RbacArgs,
    description: &Description,
    needs: &[Need],
) -> Result<BTreeMap<Gvk, Name>> {
    let reader: Option<Reader> = match args.kubeconfig.is_some() || args.context.is_some() {
        true => {
            let options = ConnectOptions {
                kubeconfig: args.kubeconfig.clone(),
                context: args.context.clone(),
            };
            Some(connect(&options).await?.reader())
        }
        false => None,
    };
    let mut names = BTreeMap::new();
    for need in needs {
        if names.contains_key(&need.kind) {
            continue;
        }
        let found = match &reader {
            Some(reader) => reader
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_has_two_parts() {
        for bad in ["x", "/x", "x/", "a/b/c"] {
            assert!(account(bad).is_err(), "{bad}");
        }
    }
}
