//! The objects that tell an API server of a plugin's webhooks.
//!
//! This module owns their bodies, as plain JSON. It must not know how a plugin describes itself,
//! nor send anything.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use vmhost_cluster::WebhookObject;

use crate::reach::Reach;
use crate::target::{Target, configuration_name, conversion_path, name_ending};

/// A plugin's webhooks and conversions, and how the API server reaches them.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    /// The plugin's name.
    pub plugin: String,
    /// How the API server reaches the host.
    pub reach: Reach,
    /// The host's own namespace, whose objects are never asked about: a host that is down could not
    /// come back otherwise.
    pub own_namespace: Option<String>,
    /// The webhooks.
    pub webhooks: Vec<Webhook>,
    /// The conversions.
    pub conversions: Vec<Conversion>,
}

/// One admission webhook. Its JSON is that of a plugin's description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Unique in the plugin.
    pub name: String,
    /// Whether it may change objects.
    #[serde(rename = "type")]
    pub kind: WebhookType,
    /// The requests that it is asked about.
    pub rules: Vec<Rule>,
    /// A label selector of namespaces.
    #[serde(default)]
    pub namespace_selector: Option<Value>,
    /// A label selector of objects.
    #[serde(default)]
    pub object_selector: Option<Value>,
    /// CEL expressions: `name` and `expression`.
    #[serde(default)]
    pub match_conditions: Vec<Value>,
    /// `Fail` or `Ignore`.
    #[serde(default)]
    pub failure_policy: Option<String>,
    /// `None` or `NoneOnDryRun`.
    #[serde(default)]
    pub side_effects: Option<String>,
    /// 1 to 30.
    #[serde(default)]
    pub timeout_seconds: Option<u32>,
    /// `Never` or `IfNeeded`; for mutating webhooks.
    #[serde(default)]
    pub reinvocation_policy: Option<String>,
    /// `Exact` or `Equivalent`.
    #[serde(default)]
    pub match_policy: Option<String>,
}

/// Whether a webhook may change objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WebhookType {
    /// It only allows or refuses.
    Validating,
    /// It may change the object.
    Mutating,
}

/// Requests by kind and operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// API groups; `""` is the core group, `*` all.
    pub api_groups: Vec<String>,
    /// API versions.
    pub api_versions: Vec<String>,
    /// Plurals, with subresources: `pods`, `pods/status`.
    pub resources: Vec<String>,
    /// `CREATE`, `UPDATE`, `DELETE`, `CONNECT` or `*`.
    pub operations: Vec<String>,
    /// `*`, `Namespaced` or `Cluster`.
    #[serde(default)]
    pub scope: Option<String>,
}

/// One conversion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversion {
    /// Unique in the plugin.
    pub name: String,
    /// The API group.
    pub group: String,
    /// The plural.
    pub resource: String,
}

impl Conversion {
    /// Returns the name of the CustomResourceDefinition.
    pub fn definition(&self) -> String {
        format!("{}.{}", self.resource, self.group)
    }
}

impl Registration {
    /// Returns the objects that hold the `caBundle` of this registration.
    #[must_use]
    pub fn targets(&self) -> Vec<Target> {
        let mut targets = Vec::new();
        if self.has(WebhookType::Validating) {
            targets.push(Target::validating(&self.plugin));
        }
        if self.has(WebhookType::Mutating) {
            targets.push(Target::mutating(&self.plugin));
        }
        let definitions = self.conversions.iter().map(|conversion| {
            Target::definition(&conversion.definition(), &self.plugin, &conversion.name)
        });
        targets.extend(definitions);
        targets
    }

    /// Returns the configurations of the admission webhooks, at most one of each kind. Without a
    /// bundle they have no `caBundle`, which the host adds.
    #[must_use]
    pub fn configurations(&self, bundle: Option<&str>) -> Vec<(WebhookObject, Value)> {
        [WebhookObject::Validating, WebhookObject::Mutating]
            .into_iter()
            .filter_map(|object| Some((object, self.configuration(object, bundle)?)))
            .collect()
    }

    /// Returns the configuration of one kind; `None` if there is no webhook for it.
    #[must_use]
    pub fn configuration(&self, object: WebhookObject, bundle: Option<&str>) -> Option<Value> {
        let kind = match object {
            WebhookObject::Validating => WebhookType::Validating,
            WebhookObject::Mutating => WebhookType::Mutating,
            WebhookObject::Definition => return None,
        };
        let own = self.webhooks.iter().filter(|webhook| webhook.kind == kind);
        let webhooks: Vec<Value> = own.map(|webhook| self.webhook(webhook, bundle)).collect();
        let body = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": object.kind(),
            "metadata": {
                "name": configuration_name(&self.plugin),
                "labels": self.labels(),
            },
            "webhooks": webhooks,
        });
        self.has(kind).then_some(body)
    }

    /// Returns `spec.conversion` of the definition that a conversion belongs to.
    #[must_use]
    pub fn conversion(&self, conversion: &Conversion, bundle: Option<&str>) -> Value {
        let path = conversion_path(&self.plugin, &conversion.name);
        json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": self.reach.client_config(&path, bundle),
                "conversionReviewVersions": ["v1"],
            },
        })
    }

    /// Returns the labels of a configuration. Those of the Service let an uninstall find what asks
    /// the hosts behind it, and leave the registrations of other hosts alone.
    fn labels(&self) -> Value {
        let mut labels = json!({"app.kubernetes.io/managed-by": "vmhost"});
        if let Reach::Service {
            namespace, name, ..
        } = &self.reach
        {
            labels["vmhost.dev/service-namespace"] = Value::from(namespace.as_str());
            labels["vmhost.dev/service"] = Value::from(name.as_str());
        }
        labels
    }

    fn has(&self, kind: WebhookType) -> bool {
        self.webhooks.iter().any(|webhook| webhook.kind == kind)
    }

    fn webhook(&self, webhook: &Webhook, bundle: Option<&str>) -> Value {
        let path = format!("/admit/{}/{}", self.plugin, webhook.name);
        let rules: Vec<Value> = webhook.rules.iter().map(rule).collect();
        let or = |given: &Option<String>, default: &str| {
            Value::from(given.as_deref().unwrap_or(default))
        };
        let mut body = json!({
            "name": format!("{}{}", webhook.name, name_ending(&self.plugin)),
            "clientConfig": self.reach.client_config(&path, bundle),
            "rules": rules,
            "namespaceSelector": self.namespaces(webhook.namespace_selector.as_ref()),
            "failurePolicy": or(&webhook.failure_policy, "Fail"),
            "sideEffects": or(&webhook.side_effects, "None"),
            "matchPolicy": or(&webhook.match_policy, "Equivalent"),
            "timeoutSeconds": webhook.timeout_seconds.unwrap_or(10),
            "admissionReviewVersions": ["v1"],
        });
        if let Some(selector) = &webhook.object_selector {
            body["objectSelector"] = selector.clone();
        }
        if !webhook.match_conditions.is_empty() {
            body["matchConditions"] = Value::from(webhook.match_conditions.clone());
        }
        if webhook.kind == WebhookType::Mutating {
            body["reinvocationPolicy"] = or(&webhook.reinvocation_policy, "Never");
        }
        body
    }

    /// Returns the selector with the host's own namespace left out.
    fn namespaces(&self, selector: Option<&Value>) -> Value {
        let mut selector = match selector {
            Some(Value::Object(selector)) => selector.clone(),
            _ => Map::new(),
        };
        if let Some(own) = &self.own_namespace {
            let expressions = selector
                .entry("matchExpressions")
                .or_insert_with(|| json!([]));
            let excluded = json!({
                "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [own],
            });
            match expressions {
                Value::Array(expressions) => expressions.push(excluded),
                other => *other = json!([excluded]),
            }
        }
        Value::Object(selector)
    }
}

fn rule(rule: &Rule) -> Value {
    json!({
        "apiGroups": rule.api_groups,
        "apiVersions": rule.api_versions,
        "resources": rule.resources,
        "operations": rule.operations,
        "scope": rule.scope.as_deref().unwrap_or("*"),
    })
}

#[cfg(test)]
mod tests;
