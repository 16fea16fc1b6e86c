//! `vmhost webhooks`: prints what registers a plugin's webhooks, as YAML for
//! `kubectl apply --server-side`, with the least rights that the host needs for them.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use vmhost_core::{Description, Gvk};
use vmhost_runtime::deploy::loader::Loader;
use vmhost_runtime::rights::names::{Name, offline};
use vmhost_runtime::rights::needs::{Webhooks, webhook_needs};
use vmhost_runtime::rights::roles::{Subject, by_scope, documents};
use vmhost_webhook::{Reach, Registration};

use super::described::registration;
use super::settings::{SECRET, reach};
use crate::cli::webhooks::WebhooksArgs;
use crate::output::print;
use crate::rbac::account;

/// How the output is applied. Only server-side apply takes the part of a CustomResourceDefinition
/// that names its conversion. With a field manager of its own it takes nothing from whoever applies
/// the rest, and the strategy `None`, which they own by default, must be overwritten.
const APPLY: &str =
    "kubectl apply --server-side --force-conflicts --field-manager=vmhost-webhooks -f -";

/// Loads a component and prints what registers its webhooks.
pub(crate) async fn command(loader: &Loader, args: &WebhooksArgs) -> Result<()> {
    let plugin = loader.load_file(&args.file).await?.plugin;
    let description = plugin.description();
    if !description.answers_reviews() {
        bail!(
            "the plugin {} has no webhooks or conversions",
            description.name
        );
    }
    let account = account("--service-account", &args.service_account)?;
    let given = reach(args.webhook_service.as_deref(), args.webhook_url.as_deref())?;
    let reach = match given {
        Some(reach) => reach,
        None => Reach::service(&format!("{}/{}", account.namespace, account.name))?,
    };
    let registration = registration(description, &reach, None)?;
    print(text(description, &registration, &account)?.trim_end());
    Ok(())
}

fn text(
    description: &Description,
    registration: &Registration,
    account: &Subject,
) -> Result<String> {
    let (plugin, namespace) = (&description.name, &account.namespace);
    let mut text = format!(
        "# Webhooks of the plugin {plugin}, while vmhost serves them, for\n# {APPLY}\n# vmhost adds caBundle. The service account {namespace}/{} must exist.\n",
        account.name
    );
    for document in rights(description, &registration.reach, account)? {
        text.push_str("---\n");
        text.push_str(&document);
    }
    let configurations = registration.configurations(None).into_iter();
    let bodies = configurations.map(|(_, body)| body);
    for body in bodies.chain(definitions(registration)) {
        text.push_str("---\n");
        text.push_str(&serde_yaml_ng::to_string(&body)?);
    }
    Ok(text)
}

/// The roles that let the host keep its authority and patch `caBundle`, as YAML.
fn rights(description: &Description, reach: &Reach, account: &Subject) -> Result<Vec<String>> {
    // Where the host looks for it.
    let namespace = match reach {
        Reach::Service { namespace, .. } => namespace,
        Reach::Url(_) => &account.namespace,
    };
    let webhooks = Webhooks {
        secret: Some((namespace.clone(), SECRET.to_owned())),
        register: false,
    };
    let needs = webhook_needs(description, &webhooks);
    let name = |kind: &Gvk| (kind.clone(), offline(description, kind));
    let names: BTreeMap<Gvk, Name> = needs.iter().map(|need| name(&need.kind)).collect();
    let scopes = by_scope(&needs, &names, false)?;
    let plugin = format!("{}:webhooks", description.name);
    let documents = documents(&plugin, account, &scopes);
    let texts = documents.iter().map(serde_yaml_ng::to_string);
    Ok(texts.collect::<Result<_, _>>()?)
}

/// The part of each CustomResourceDefinition that names its conversion.
fn definitions(registration: &Registration) -> impl Iterator<Item = Value> {
    registration.conversions.iter().map(|conversion| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": conversion.definition() },
            "spec": { "conversion": registration.conversion(conversion, None) },
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_may_only_patch_by_name() {
        let description = Description::parse(
            r#"{"apiVersion":"vmhost/v1","name":"p",
                "webhooks":[{"name":"v","type":"validating","reads":[{"version":"v1","kind":"ConfigMap"}],
                   "rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"],"operations":["CREATE"]}]}],
                "conversions":[{"name":"c","group":"x.io","kind":"Vm","resource":"vms","versions":["v1","v2"]}]}"#,
        )
        .unwrap();
        let account = Subject::service_account("system", "vmhost");
        let reach = Reach::service("system/vmhost").unwrap();
        let registration = registration(&description, &reach, None).unwrap();
        let text = text(&description, &registration, &account).unwrap();
        for words in [
            "name: vmhost:p:webhooks",
            "resourceNames:\n  - vmhost-p",
            "resourceNames:\n  - vms.x.io",
            "resourceNames:\n  - vmhost-webhook-ca",
            "kind: ValidatingWebhookConfiguration",
            "name: v.p.vmhost.dev",
            "path: /convert/p/c",
            "kubectl apply --server-side",
        ] {
            assert!(text.contains(words), "{text} does not say {words}");
        }
        assert!(
            !text.contains("caBundle:") && !text.contains("configmaps"),
            "{text}"
        );
        assert!(!text.contains("MutatingWebhookConfiguration"), "{text}");
    }
}
