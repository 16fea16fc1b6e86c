//! Whether a swap would break a webhook that the API server already asks: one that is registered
//! must not vanish, since with the failure policy `Fail` every write that it covers would be
//! refused, nor change its rules unless the host registers it anew.
//!
//! What is registered is read from the API server, and only if the swap drops or changes something.
//! This module writes nothing, and must not know how webhooks are served.

use serde_json::Value;
use vmhost_cluster::{Error, ObjectPath, Reader};
use vmhost_core::description::webhook::{ConversionDescription, WebhookDescription, WebhookType};
use vmhost_core::{Description, Gvk};

/// What the names of a plugin's configurations begin with, and those of its webhooks end with.
const OWNER: (&str, &str) = ("vmhost-", ".vmhost.dev");

/// Why a swap would break what is registered.
#[derive(Debug, thiserror::Error)]
pub enum Registered {
    /// The new version lacks a webhook or conversion.
    #[error(
        "the new version drops the {what} {name:?}, and {object} still registers it: remove it there first"
    )]
    Dropped {
        /// `webhook` or `conversion`.
        what: &'static str,
        /// Its name.
        name: String,
        /// The object that registers it.
        object: String,
    },
    /// The new version describes a webhook differently.
    #[error(
        "the new version changes the {what} {name:?}, and {object} registers it as it was: run vmhost with --register-webhooks, or remove it there first, swap, and register it again"
    )]
    Changed {
        /// `webhook` or `conversion`.
        what: &'static str,
        /// Its name.
        name: String,
        /// The object that registers it.
        object: String,
    },
    /// It is not known what is registered.
    #[error(
        "cannot read whether {object} registers a webhook that the new version drops or changes"
    )]
    Unknown {
        /// The object that was asked for.
        object: String,
        /// The cause.
        source: Box<Error>,
    },
}

/// A webhook or conversion that the new version drops or changes.
struct Loss {
    what: &'static str,
    name: String,
    is_dropped: bool,
    at: Place,
}

/// Where a webhook or conversion is registered.
enum Place {
    /// In the plugin's configuration of this type.
    Configuration(WebhookType),
    /// In a CustomResourceDefinition.
    Definition(String),
}

/// Returns an error if the description drops a webhook or conversion of the present one that is
/// registered, or changes it although nobody registers it anew.
pub(crate) async fn check(
    reader: &Reader,
    present: &Description,
    description: &Description,
    registers: bool,
) -> Result<(), Registered> {
    let plugin = &present.name;
    for loss in losses(present, description, registers) {
        let found = match &loss.at {
            Place::Configuration(of) => in_configuration(reader, plugin, &loss.name, *of).await?,
            Place::Definition(definition) => {
                in_definition(reader, plugin, &loss.name, definition).await?
            }
        };
        let Some(object) = found else {
            continue;
        };
        let Loss { what, name, .. } = loss;
        return Err(match loss.is_dropped {
            true => Registered::Dropped { what, name, object },
            false => Registered::Changed { what, name, object },
        });
    }
    Ok(())
}

/// What the new description drops, and what it changes if nobody registers it anew.
fn losses(present: &Description, new: &Description, registers: bool) -> Vec<Loss> {
    let mut losses = Vec::new();
    for webhook in &present.webhooks {
        // One of the other type is registered elsewhere, and the old one stays where it is.
        let now = new.webhook(&webhook.name);
        let now = now.filter(|now| now.kind == webhook.kind);
        if now.is_none_or(|now| !registers && registration(now) != registration(webhook)) {
            losses.push(Loss {
                what: "webhook",
                name: webhook.name.clone(),
                is_dropped: now.is_none(),
                at: Place::Configuration(webhook.kind),
            });
        }
    }
    for conversion in &present.conversions {
        let now = new.conversion(&conversion.name);
        let is_dropped = now.is_none_or(|now| !still_converts(conversion, now));
        if is_dropped {
            losses.push(Loss {
                what: "conversion",
                name: conversion.name.clone(),
                is_dropped,
                at: Place::Definition(conversion.definition()),
            });
        }
    }
    losses
}

/// The part of a webhook that the API server is told.
fn registration(webhook: &WebhookDescription) -> WebhookDescription {
    WebhookDescription {
        reads: Vec::new(),
        ..webhook.clone()
    }
}

/// Returns whether a conversion converts all that another one did. More versions are no loss.
fn still_converts(before: &ConversionDescription, now: &ConversionDescription) -> bool {
    let mut versions = before.versions.iter();
    before.definition() == now.definition()
        && before.kind == now.kind
        && versions.all(|version| now.versions.contains(version))
}

/// Returns the configuration, if it registers this webhook.
async fn in_configuration(
    reader: &Reader,
    plugin: &str,
    webhook: &str,
    of: WebhookType,
) -> Result<Option<String>, Registered> {
    let (before, behind) = OWNER;
    let kind = match of {
        WebhookType::Validating => "ValidatingWebhookConfiguration",
        WebhookType::Mutating => "MutatingWebhookConfiguration",
    };
    let kind = Gvk::new("admissionregistration.k8s.io", "v1", kind);
    let (name, wanted) = (
        format!("{before}{plugin}"),
        format!("{webhook}.{plugin}{behind}"),
    );
    let found = read(reader, &kind, &name).await?;
    let webhooks = found
        .as_ref()
        .and_then(|found| found["webhooks"].as_array());
    let mut names = webhooks.into_iter().flatten().map(|of| of["name"].as_str());
    let is_there = names.any(|name| name == Some(wanted.as_str()));
    Ok(is_there.then(|| format!("{} {name}", kind.kind)))
}

/// Returns the definition, if it asks this plugin's conversion.
async fn in_definition(
    reader: &Reader,
    plugin: &str,
    conversion: &str,
    definition: &str,
) -> Result<Option<String>, Registered> {
    let kind = Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let found = read(reader, &kind, definition).await?;
    let path = format!("/convert/{plugin}/{conversion}");
    let asks = found.is_some_and(|found| {
        let client = &found["spec"]["conversion"]["webhook"]["clientConfig"];
        let of_service = client["service"]["path"].as_str() == Some(path.as_str());
        let url = client["url"].as_str();
        of_service || url.is_some_and(|url| url.ends_with(&path))
    });
    Ok(asks.then(|| format!("{} {definition}", kind.kind)))
}

/// Reads an object. `None` if it does not exist, or the cluster does not serve its kind.
async fn read(reader: &Reader, kind: &Gvk, name: &str) -> Result<Option<Value>, Registered> {
    let unknown = |source: Error| Registered::Unknown {
        object: format!("{} {name}", kind.kind),
        source: Box::new(source),
    };
    let Some(resource) = reader.resolve(kind).await.map_err(unknown)? else {
        return Ok(None);
    };
    let path = ObjectPath {
        resource: &resource,
        namespace: None,
        name: Some(name),
        subresource: None,
    };
    let found = reader.get(&path).await.map_err(unknown)?;
    let parse = |text: &str| {
        let parsed = serde_json::from_str(text);
        parsed.map_err(|error| unknown(Error::Unreadable(error.to_string())))
    };
    found.map(|found| parse(&found.text)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(webhook: &str, versions: &str) -> Description {
        Description::parse(&format!(
            r#"{{"apiVersion":"vmhost/v1","name":"p",
                "webhooks":[{{"name":"w","type":"validating","rules":[{{"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"],"operations":["CREATE"]}}]{webhook}}}],
                "conversions":[{{"name":"c","group":"x.io","kind":"Vm","resource":"vms","versions":[{versions}]}}]}}"#
        ))
        .unwrap()
    }

    fn lost(present: &Description, new: &Description, registers: bool) -> Vec<(String, bool)> {
        let losses = losses(present, new, registers);
        let of = |loss: Loss| (loss.name, loss.is_dropped);
        losses.into_iter().map(of).collect()
    }

    #[test]
    fn only_what_the_api_server_would_miss_is_a_loss() {
        let present = plugin("", r#""v1","v2""#);
        let none = Vec::<(String, bool)>::new();
        assert_eq!(lost(&present, &present, false), none);
        let more = plugin("", r#""v1","v2","v3""#);
        assert_eq!(lost(&present, &more, false), none);
        let reads = plugin(
            r#","reads":[{"version":"v1","kind":"ConfigMap"}]"#,
            r#""v1","v2""#,
        );
        assert_eq!(
            lost(&present, &reads, false),
            none,
            "the API server never knows"
        );
        let ignores = plugin(r#","failurePolicy":"Ignore""#, r#""v1","v2""#);
        assert_eq!(lost(&present, &ignores, false), [("w".to_owned(), false)]);
        assert_eq!(
            lost(&present, &ignores, true),
            none,
            "it is registered anew"
        );
        let mut dropped = present.clone();
        dropped.webhooks.clear();
        assert_eq!(lost(&present, &dropped, true), [("w".to_owned(), true)]);
        assert_eq!(
            lost(&more, &present, true),
            [("c".to_owned(), true)],
            "objects of v3 could not be read any more"
        );
    }
}
