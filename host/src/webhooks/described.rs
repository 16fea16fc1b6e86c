//! A plugin's description as what registers its webhooks.

use anyhow::{Context, Result};
use vmhost_core::Description;
use vmhost_core::description::webhook::WebhookType;
use vmhost_webhook::{Conversion, Reach, Registration, Target, Webhook};

/// The registration of a plugin's webhooks and conversions. What happens in the host's own
/// namespace is not asked about: that of the Service, else the one that is given, if it is known.
pub(super) fn registration(
    description: &Description,
    reach: &Reach,
    own_namespace: Option<&str>,
) -> Result<Registration> {
    let own_namespace = match reach {
        Reach::Service { namespace, .. } => Some(namespace.clone()),
        Reach::Url(_) => own_namespace.map(str::to_owned),
    };
    let webhooks = description.webhooks.iter().map(|webhook| {
        // Both have the form of the description, of which a registration takes a part.
        let value = serde_json::to_value(webhook);
        let read = value.and_then(serde_json::from_value::<Webhook>);
        read.with_context(|| format!("webhook {} of {}", webhook.name, description.name))
    });
    let conversions = description.conversions.iter().map(|conversion| Conversion {
        name: conversion.name.clone(),
        group: conversion.group.clone(),
        resource: conversion.resource.clone(),
    });
    Ok(Registration {
        plugin: description.name.clone(),
        reach: reach.clone(),
        own_namespace,
        webhooks: webhooks.collect::<Result<_>>()?,
        conversions: conversions.collect(),
    })
}

/// The objects that may register a plugin's webhooks and conversions.
pub(super) fn targets(description: &Description) -> Vec<Target> {
    let plugin = &description.name;
    let mut targets = Vec::new();
    type Named = fn(&str) -> Target;
    let kinds: [(WebhookType, Named); 2] = [
        (WebhookType::Validating, Target::validating),
        (WebhookType::Mutating, Target::mutating),
    ];
    for (kind, target) in kinds {
        if description
            .webhooks
            .iter()
            .any(|webhook| webhook.kind == kind)
        {
            targets.push(target(plugin));
        }
    }
    let conversions = description.conversions.iter();
    targets.extend(conversions.map(|conversion| {
        let definition = conversion.definition();
        Target::definition(&definition, plugin, &conversion.name)
    }));
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_registered_as_it_says() {
        let description = Description::parse(
            r#"{"apiVersion":"vmhost/v1","name":"p",
                "webhooks":[
                  {"name":"v","type":"validating","timeoutSeconds":3,"failurePolicy":"Ignore","reads":[{"version":"v1","kind":"ConfigMap"}],
                   "rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"],"operations":["CREATE"],"scope":"Namespaced"}],
                   "objectSelector":{"matchExpressions":[{"key":"a","operator":"Exists"}]}},
                  {"name":"m","type":"mutating","reinvocationPolicy":"IfNeeded",
                   "rules":[{"apiGroups":["*"],"apiVersions":["*"],"resources":["*"],"operations":["*"]}]}],
                "conversions":[{"name":"c","group":"x.io","kind":"Vm","resource":"vms","versions":["v1","v2"]}]}"#,
        )
        .unwrap();
        let reach = Reach::service("system/vmhost").unwrap();
        let url = Reach::url("https://host:9443").unwrap();
        let own = |reach: &Reach, known: Option<&str>| {
            let made = registration(&description, reach, known).unwrap();
            made.own_namespace
        };
        assert_eq!(own(&url, Some("pods")).as_deref(), Some("pods"));
        assert_eq!(own(&url, None), None);
        assert_eq!(own(&reach, Some("pods")).as_deref(), Some("system"));
        let registration = registration(&description, &reach, None).unwrap();
        assert_eq!(registration.targets(), targets(&description));
        let configurations = registration.configurations(None);
        let (_, validating) = &configurations[0];
        let webhook = &validating["webhooks"][0];
        assert_eq!(webhook["name"], "v.p.vmhost.dev");
        assert_eq!(webhook["timeoutSeconds"], 3);
        assert_eq!(webhook["failurePolicy"], "Ignore");
        assert_eq!(webhook["rules"][0]["scope"], "Namespaced");
        assert_eq!(webhook["objectSelector"]["matchExpressions"][0]["key"], "a");
        assert!(webhook.get("reads").is_none());
        let (_, mutating) = &configurations[1];
        assert_eq!(mutating["webhooks"][0]["reinvocationPolicy"], "IfNeeded");
        assert_eq!(mutating["webhooks"][0]["rules"][0]["operations"][0], "*");
    }
}
