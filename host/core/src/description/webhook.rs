//! What a plugin answers besides the turns of its controllers: admission reviews and conversions.
//!
//! The fields have the names and meanings of Kubernetes' `ValidatingWebhook` and `MutatingWebhook`.
//! Where the webhook is served, and its certificates, are the host's matter.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Watched;
use crate::key::Gvk;

/// A webhook that the plugin answers: which requests it is asked about, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebhookDescription {
    /// The name: a DNS label of at most 50 characters, unique among the plugin's controllers,
    /// webhooks and conversions.
    pub name: String,
    /// Whether it may change the object.
    #[serde(rename = "type")]
    pub kind: WebhookType,
    /// The requests that it is asked about; at least one rule.
    pub rules: Vec<WebhookRule>,
    /// Only objects in namespaces with these labels. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<SelectorObject>,
    /// Only objects with these labels. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_selector: Option<SelectorObject>,
    /// Only requests for which all of these CEL expressions hold. The API server evaluates them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_conditions: Vec<MatchCondition>,
    /// What the API server does without an answer. Default `Fail`.
    #[serde(default)]
    pub failure_policy: FailurePolicy,
    /// Whether a call has an effect besides its answer. Default `None`.
    #[serde(default)]
    pub side_effects: SideEffects,
    /// How long the API server waits for the answer, from 1 to 30 s. Default 10.
    #[serde(default = "WebhookDescription::default_timeout")]
    pub timeout_seconds: u32,
    /// Whether a mutating webhook is asked again after others have changed the object. Default
    /// `Never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reinvocation_policy: Option<ReinvocationPolicy>,
    /// Whether a rule also covers equivalent versions of its resources. Default `Equivalent`.
    #[serde(default)]
    pub match_policy: MatchPolicy,
    /// Kinds that the webhook reads from the cache.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Watched>,
}

impl WebhookDescription {
    fn default_timeout() -> u32 {
        10
    }
}

/// Whether a webhook may change the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WebhookType {
    /// It only allows or denies.
    Validating,
    /// It may change the object too.
    Mutating,
}

impl WebhookType {
    /// The type as descriptions write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Validating => "validating",
            Self::Mutating => "mutating",
        }
    }
}

/// Requests that a webhook is asked about: `RuleWithOperations`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebhookRule {
    /// API groups; `""` is the core group, `*` all.
    pub api_groups: Vec<String>,
    /// API versions; `*` is all.
    pub api_versions: Vec<String>,
    /// Plurals, with subresources as `pods/status`, `pods/*`, `*/status`; `*` is all without
    /// subresources, `*/*` all.
    pub resources: Vec<String>,
    /// The operations.
    pub operations: Vec<Operation>,
    /// Which objects. Default `*`.
    #[serde(default)]
    pub scope: RuleScope,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Operation {
    /// Create an object.
    #[serde(rename = "CREATE")]
    Create,
    /// Change an object.
    #[serde(rename = "UPDATE")]
    Update,
    /// Delete an object.
    #[serde(rename = "DELETE")]
    Delete,
    /// Connect to a subresource such as `pods/exec`.
    #[serde(rename = "CONNECT")]
    Connect,
    /// All of them.
    #[serde(rename = "*")]
    All,
}

impl Operation {
    /// The operation as Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
            Self::All => "*",
        }
    }
}

/// Which objects a rule covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RuleScope {
    /// All objects.
    #[default]
    #[serde(rename = "*")]
    All,
    /// Objects in namespaces.
    Namespaced,
    /// Cluster-scoped objects, namespaces among them.
    Cluster,
}

/// A label selector as an object, as Kubernetes' `LabelSelector`. An empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SelectorObject {
    /// Labels with these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Conditions on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<SelectorExpression>,
}

/// Formats the selector as kubectl writes it: `app=web,tier in (a,b),!legacy`. An empty one is
/// empty.
impl fmt::Display for SelectorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.match_labels.iter();
        let labels = labels.map(|(key, value)| format!("{key}={value}"));
        let expressions = self.match_expressions.iter().map(|expression| {
            let (key, values) = (&expression.key, expression.values.join(","));
            match expression.operator {
                SelectorOperator::In => format!("{key} in ({values})"),
                SelectorOperator::NotIn => format!("{key} notin ({values})"),
                SelectorOperator::Exists => key.clone(),
                SelectorOperator::DoesNotExist => format!("!{key}"),
            }
        });
        let all: Vec<String> = labels.chain(expressions).collect();
        f.write_str(&all.join(","))
    }
}

/// A condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SelectorExpression {
    /// The label's key.
    pub key: String,
    /// The condition.
    pub operator: SelectorOperator,
    /// The values of `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// The operator of a condition on a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SelectorOperator {
    /// The label has one of the values.
    In,
    /// The label has none of the values, or is missing.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is missing.
    DoesNotExist,
}

/// A CEL expression that must hold for a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatchCondition {
    /// Its name in errors.
    pub name: String,
    /// The expression.
    pub expression: String,
}

/// What the API server does if a webhook does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailurePolicy {
    /// It refuses the request.
    #[default]
    Fail,
    /// It goes on without the webhook.
    Ignore,
}

/// Whether a call has an effect besides its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SideEffects {
    /// Never.
    #[default]
    None,
    /// Not if the request is a dry run.
    NoneOnDryRun,
}

/// Whether a mutating webhook is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReinvocationPolicy {
    /// Once for each request.
    Never,
    /// Again, if others changed the object after it.
    IfNeeded,
}

/// Whether a rule covers equivalent versions of its resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MatchPolicy {
    /// Only the versions that the rule names.
    Exact,
    /// All versions of the same resource; the request is converted first.
    #[default]
    Equivalent,
}

/// A kind whose versions the plugin converts into each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConversionDescription {
    /// The name: a DNS label of at most 50 characters, unique among the plugin's controllers,
    /// webhooks and conversions.
    pub name: String,
    /// API group of the CustomResourceDefinition.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// The plural.
    pub resource: String,
    /// The versions that can be converted into each other; at least two.
    pub versions: Vec<String>,
    /// Kinds that the conversion reads from the cache.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Watched>,
}

impl ConversionDescription {
    /// Returns whether the objects of a kind may need this conversion.
    pub fn converts(&self, kind: &Gvk) -> bool {
        self.group == kind.group && self.kind == kind.kind
    }

    /// The name of the CustomResourceDefinition: `virtualmachines.cloud.waibizi.com`.
    pub fn definition(&self) -> String {
        format!("{}.{}", self.resource, self.group)
    }
}

#[cfg(test)]
mod tests;
