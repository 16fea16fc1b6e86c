//! An object that registers webhooks of this host, and what its `caBundle` should be.
//!
//! This module owns which parts of such an object are this host's, and the patch that changes them.
//! It must not send anything.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use vmhost_cluster::WebhookObject;

use crate::bundle::joined;

/// The annotations by which cert-manager's cainjector writes `caBundle`.
const INJECTED: [&str; 3] = [
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
];

/// An object that registers webhooks of this host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    pub(crate) kind: WebhookObject,
    pub(crate) name: String,
    /// How the names of the configuration's webhooks end, or the path of the conversion.
    mark: String,
}

/// What is to be done with an object.
#[derive(Debug, PartialEq)]
pub(crate) enum Finding {
    /// It holds the bundle.
    Holds,
    /// It holds another one; a JSON patch changes that, and nothing else.
    Lacks(Value),
    /// It is someone else's, for this reason.
    Foreign(String),
}

/// Returns the name of a plugin's configurations.
pub fn configuration_name(plugin: &str) -> String {
    format!("vmhost-{plugin}")
}

/// Returns how the names of a plugin's webhooks end in its configurations.
pub(crate) fn name_ending(plugin: &str) -> String {
    format!(".{plugin}.vmhost.dev")
}

/// Returns the path of a conversion.
pub(crate) fn conversion_path(plugin: &str, conversion: &str) -> String {
    format!("/convert/{plugin}/{conversion}")
}

/// Returns why a definition must not be made to ask a plugin, if it asks another webhook. A
/// conversion of the plugin that had another name is replaced.
pub(crate) fn converted_elsewhere(definition: &Value, plugin: &str) -> Option<String> {
    let conversion = &definition["spec"]["conversion"];
    if conversion["strategy"] != "Webhook" {
        return None;
    }
    let client = &conversion["webhook"]["clientConfig"];
    let place = client["service"]["path"].as_str();
    let place = place.or(client["url"].as_str()).unwrap_or("/");
    let is_own = place.contains(&conversion_path(plugin, ""));
    (!is_own).then(|| {
        format!(
            "another webhook converts its objects ({place:?}): set spec.conversion.strategy to None first, if this plugin is to convert them"
        )
    })
}

/// Returns why the host must not write the `caBundle` of an object, if cert-manager does.
pub(crate) fn injected(object: &Value) -> Option<String> {
    let annotations = &object["metadata"]["annotations"];
    let annotation = INJECTED
        .iter()
        .find(|name| annotations.get(name).is_some())?;
    Some(format!(
        "cert-manager's cainjector writes its caBundle (annotation {annotation}): remove the annotation, or run vmhost with --webhook-cert-dir and cert-manager's Secret"
    ))
}

impl Target {
    /// The configuration of a plugin's validating webhooks.
    #[must_use]
    pub fn validating(plugin: &str) -> Target {
        Target {
            kind: WebhookObject::Validating,
            name: configuration_name(plugin),
            mark: name_ending(plugin),
        }
    }

    /// The configuration of a plugin's mutating webhooks.
    #[must_use]
    pub fn mutating(plugin: &str) -> Target {
        Target {
            kind: WebhookObject::Mutating,
            ..Target::validating(plugin)
        }
    }

    /// The definition whose objects a plugin converts, by its name (`PLURAL.GROUP`).
    #[must_use]
    pub fn definition(name: &str, plugin: &str, conversion: &str) -> Target {
        Target {
            kind: WebhookObject::Definition,
            name: name.to_owned(),
            mark: conversion_path(plugin, conversion),
        }
    }

    /// Returns kind and name, for messages.
    pub fn describe(&self) -> String {
        format!("{} {}", self.kind.kind(), self.name)
    }

    /// Returns which webhooks or which conversion of the plugin an object asks, by the names of the
    /// plugin's description.
    pub(crate) fn registers(&self, object: &Value) -> BTreeSet<String> {
        if self.kind == WebhookObject::Definition {
            let name = self.mark.rsplit('/').next().unwrap_or_default();
            let own = self.conversion(object).map(|_| name.to_owned());
            return own.into_iter().collect();
        }
        let all = object["webhooks"].as_array().into_iter().flatten();
        let names = all.filter_map(|webhook| webhook["name"].as_str());
        names
            .filter_map(|name| name.strip_suffix(self.mark.as_str()))
            .map(str::to_owned)
            .collect()
    }

    /// Compares an object, as it was read, with the bundle that it should hold.
    pub(crate) fn compare(&self, object: &Value, bundle: &str) -> Finding {
        let bundle = STANDARD.encode(bundle);
        self.compare_by(object, |_| bundle.clone())
    }

    /// Like [`Target::compare`], for a bundle that it should hold among others.
    pub(crate) fn compare_joined(&self, object: &Value, bundle: &str) -> Finding {
        self.compare_by(object, |present| {
            let present = present.as_str().and_then(|text| STANDARD.decode(text).ok());
            let present = String::from_utf8(present.unwrap_or_default()).unwrap_or_default();
            STANDARD.encode(joined(&present, bundle))
        })
    }

    /// Compares an object with the `caBundle` that `wanted` makes of the present one.
    fn compare_by(&self, object: &Value, wanted: impl Fn(&Value) -> String) -> Finding {
        if let Some(why) = injected(object) {
            return Finding::Foreign(why);
        }
        let places = match self.kind {
            WebhookObject::Definition => match self.conversion(object) {
                Ok(place) => vec![place],
                Err(why) => return Finding::Foreign(why),
            },
            WebhookObject::Validating | WebhookObject::Mutating => self.webhooks(object),
        };
        let lacks: Vec<Value> = places
            .into_iter()
            .map(|(place, client)| (place, &client["caBundle"], wanted(&client["caBundle"])))
            .filter(|(_, present, wanted)| *present != wanted)
            .map(|(place, _, wanted)| {
                json!({"op": "add", "path": place + "/caBundle", "value": wanted})
            })
            .collect();
        if lacks.is_empty() {
            return Finding::Holds;
        }
        // A host that looked at the Secret later has patched the object since.
        let version = &object["metadata"]["resourceVersion"];
        let mut operations =
            vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})];
        operations.extend(lacks);
        Finding::Lacks(Value::Array(operations))
    }

    /// Returns the client configurations of this host's webhooks, each with its JSON pointer.
    fn webhooks<'a>(&self, object: &'a Value) -> Vec<(String, &'a Value)> {
        let all = object["webhooks"].as_array().into_iter().flatten();
        let own = all.enumerate().filter(|(_, webhook)| {
            let name = webhook["name"].as_str().unwrap_or_default();
            name.ends_with(self.mark.as_str()) && webhook["clientConfig"].is_object()
        });
        own.map(|(at, webhook)| {
            let place = format!("/webhooks/{at}/clientConfig");
            (place, &webhook["clientConfig"])
        })
        .collect()
    }

    fn conversion<'a>(&self, object: &'a Value) -> Result<(String, &'a Value), String> {
        let conversion = &object["spec"]["conversion"];
        if conversion["strategy"] != "Webhook" {
            return Err("its conversion is no webhook: apply what `vmhost webhooks` prints".into());
        }
        let client = &conversion["webhook"]["clientConfig"];
        let path = client["service"]["path"].as_str();
        let url = client["url"].as_str();
        let mark = self.mark.as_str();
        if path != Some(mark) && !url.is_some_and(|url| url.ends_with(mark)) {
            let place = path.or(url).unwrap_or_default();
            return Err(format!("another webhook converts its objects ({place:?})"));
        }
        Ok(("/spec/conversion/webhook/clientConfig".to_owned(), client))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(annotations: &Value) -> Value {
        json!({
            "metadata": {"name": "vmhost-p", "resourceVersion": "7", "annotations": annotations},
            "webhooks": [
                {"name": "other.example.com", "clientConfig": {"url": "https://a"}},
                {"name": "a.p.vmhost.dev", "clientConfig": {"service": {"path": "/admit/p/a"}}},
                {"name": "b.p.vmhost.dev", "clientConfig": {"caBundle": "b2xk"}},
            ],
        })
    }

    fn definition(conversion: &Value) -> Value {
        json!({"metadata": {"resourceVersion": "9"}, "spec": {"conversion": conversion}})
    }

    #[test]
    fn only_own_webhooks_are_patched_and_only_once() {
        let target = Target::validating("p");
        let mut object = configuration(&json!({}));
        let Finding::Lacks(operations) = target.compare(&object, "new") else {
            panic!("nothing to do");
        };
        let bundle = STANDARD.encode("new");
        assert_eq!(
            operations,
            json!([
                {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
                {"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": bundle},
                {"op": "add", "path": "/webhooks/2/clientConfig/caBundle", "value": bundle},
            ])
        );
        for at in [1, 2] {
            object["webhooks"][at]["clientConfig"]["caBundle"] = json!(bundle);
        }
        assert_eq!(target.compare(&object, "new"), Finding::Holds);
        assert_eq!(Target::mutating("p").name, "vmhost-p");
    }

    #[test]
    fn a_bundle_among_others_is_not_patched() {
        let target = Target::validating("p");
        let pem = |name: &str| {
            format!("-----BEGIN CERTIFICATE-----\n{name}\n-----END CERTIFICATE-----\n")
        };
        let mut object = configuration(&json!({}));
        let both = pem("new") + &pem("old");
        for at in [1, 2] {
            object["webhooks"][at]["clientConfig"]["caBundle"] = json!(STANDARD.encode(&both));
        }
        for own in ["old", "new"] {
            let found = target.compare_joined(&object, &pem(own));
            assert_eq!(found, Finding::Holds, "{own}");
        }
        let Finding::Lacks(operations) = target.compare_joined(&object, &pem("newer")) else {
            panic!("it is not trusted");
        };
        let all = STANDARD.encode(pem("newer") + &both);
        assert_eq!(operations[1]["value"], all);
        assert!(matches!(
            target.compare(&object, &pem("new")),
            Finding::Lacks(_)
        ));
    }

    #[test]
    fn cert_manager_is_named() {
        for annotation in INJECTED {
            let object = configuration(&json!({annotation: "ns/cert"}));
            let Finding::Foreign(why) = Target::mutating("p").compare(&object, "new") else {
                panic!("two write one field");
            };
            assert!(
                why.contains("cainjector") && why.contains(annotation),
                "{why}"
            );
        }
    }

    #[test]
    fn a_conversion_of_another_webhook_is_not_taken_over() {
        let asks = |client: Value| {
            definition(&json!({"strategy": "Webhook", "webhook": {"clientConfig": client}}))
        };
        for own in [
            definition(&Value::Null),
            definition(&json!({"strategy": "None"})),
            asks(json!({"service": {"path": "/convert/p/vm"}})),
            asks(json!({"service": {"path": "/convert/p/before"}})),
            asks(json!({"url": "https://host:9443/convert/p/vm"})),
        ] {
            assert_eq!(converted_elsewhere(&own, "p"), None, "{own}");
        }
        for other in [
            asks(json!({"service": {"path": "/convert"}})),
            asks(json!({"service": {"name": "s"}})),
            asks(json!({"url": "https://host:9443/convert/pp/vm"})),
        ] {
            let why = converted_elsewhere(&other, "p").unwrap();
            assert!(why.contains("strategy"), "{why}");
        }
    }

    #[test]
    fn a_definition_is_patched_if_it_asks_this_host() {
        let target = Target::definition("vms.g", "p", "vm");
        let by_service = json!({"strategy": "Webhook", "webhook": {"clientConfig":
            {"service": {"name": "s", "namespace": "n", "path": "/convert/p/vm"}}}});
        let by_url = json!({"strategy": "Webhook", "webhook": {"clientConfig":
            {"url": "https://host:9443/convert/p/vm"}}});
        for conversion in [by_service, by_url] {
            let found = target.compare(&definition(&conversion), "new");
            let Finding::Lacks(operations) = found else {
                panic!("{found:?}");
            };
            let path = "/spec/conversion/webhook/clientConfig/caBundle";
            assert_eq!(operations[1]["path"], path);
        }
        for conversion in [
            Value::Null,
            json!({"strategy": "None"}),
            json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"path": "/x"}}}}),
        ] {
            let found = target.compare(&definition(&conversion), "new");
            assert!(matches!(found, Finding::Foreign(_)), "{found:?}");
        }
    }
}
