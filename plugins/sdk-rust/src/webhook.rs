//! The entries of a description for admission webhooks and conversions. The host validates their
//! JSON, and its errors name the invalid field.

use serde::Serialize;
use serde_json::Value;

use crate::review::Operation;
use crate::watch::Watch;

/// An admission webhook: which requests the API server asks about, and what it does without an
/// answer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rules: Vec<Rule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace_selector: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_selector: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    match_conditions: Vec<MatchCondition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_policy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    side_effects: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reinvocation_policy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    match_policy: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reads: Vec<Watch>,
}

/// Which requests a webhook is asked about.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    api_groups: Vec<String>,
    api_versions: Vec<String>,
    resources: Vec<String>,
    operations: Vec<Operation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
struct MatchCondition {
    name: String,
    expression: String,
}

/// A conversion: the versions of one custom resource that the policy converts.
#[derive(Clone, Debug, Serialize)]
pub struct Conversion {
    name: String,
    group: String,
    kind: String,
    resource: String,
    versions: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reads: Vec<Watch>,
}

impl Webhook {
    /// Returns a webhook that allows or refuses requests.
    pub fn validating(name: &str) -> Self {
        Self::new(name, "validating")
    }

    /// Returns a webhook that may also change objects.
    pub fn mutating(name: &str) -> Self {
        Self::new(name, "mutating")
    }

    fn new(name: &str, kind: &'static str) -> Self {
        Self {
            name: name.into(),
            kind,
            rules: Vec::new(),
            namespace_selector: None,
            object_selector: None,
            match_conditions: Vec::new(),
            failure_policy: None,
            side_effects: None,
            timeout_seconds: None,
            reinvocation_policy: None,
            match_policy: None,
            reads: Vec::new(),
        }
    }

    /// Adds requests that the webhook is asked about.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Asks only about objects of these namespaces: a label selector, as Kubernetes writes it.
    pub fn namespace_selector(mut self, selector: Value) -> Self {
        self.namespace_selector = Some(selector);
        self
    }

    /// Asks only about objects with these labels, before or after the change.
    pub fn object_selector(mut self, selector: Value) -> Self {
        self.object_selector = Some(selector);
        self
    }

    /// Asks only if this CEL expression over `object`, `oldObject` and `request` is true (and the
    /// others that are added).
    pub fn match_condition(mut self, name: &str, expression: &str) -> Self {
        self.match_conditions.push(MatchCondition {
            name: name.into(),
            expression: expression.into(),
        });
        self
    }

    /// Without an answer the API server lets the request through. Otherwise it refuses it.
    pub fn ignore_failures(mut self) -> Self {
        self.failure_policy = Some("Ignore");
        self
    }

    /// Without an answer the API server refuses the request. This is the host's default.
    pub fn fail_on_failures(mut self) -> Self {
        self.failure_policy = Some("Fail");
        self
    }

    /// The policy does more than answer, except in dry runs.
    pub fn side_effects_none_on_dry_run(mut self) -> Self {
        self.side_effects = Some("NoneOnDryRun");
        self
    }

    /// Sets how long the API server waits for the answer, 1 to 30 seconds. Default: 10.
    pub fn timeout_seconds(mut self, seconds: u32) -> Self {
        self.timeout_seconds = Some(seconds);
        self
    }

    /// Asks a mutating webhook again if a later webhook changed the object.
    pub fn reinvoke_if_needed(mut self) -> Self {
        self.reinvocation_policy = Some("IfNeeded");
        self
    }

    /// Does not ask about the same object in other versions than those of the rules.
    pub fn exact_match(mut self) -> Self {
        self.match_policy = Some("Exact");
        self
    }

    /// Adds a kind that the webhook reads through [`crate::Cluster`].
    pub fn reads(mut self, watch: impl Into<Watch>) -> Self {
        self.reads.push(watch.into());
        self
    }
}

impl Rule {
    /// Returns the creations and updates of these resources: API groups (`""` is the core group),
    /// versions, and plurals (`pods`, `pods/exec`), each also `*`.
    pub fn new(api_groups: &[&str], api_versions: &[&str], resources: &[&str]) -> Self {
        Self {
            api_groups: texts(api_groups),
            api_versions: texts(api_versions),
            resources: texts(resources),
            operations: vec![Operation::Create, Operation::Update],
            scope: None,
        }
    }

    /// Sets the operations. Default: create and update.
    pub fn operations(mut self, operations: &[Operation]) -> Self {
        self.operations = operations.to_vec();
        self
    }

    /// Only objects in namespaces.
    pub fn namespaced(mut self) -> Self {
        self.scope = Some("Namespaced");
        self
    }

    /// Only cluster-scoped objects.
    pub fn cluster_scoped(mut self) -> Self {
        self.scope = Some("Cluster");
        self
    }
}

impl Conversion {
    /// Returns the conversion of a custom resource: its group, its kind, its plural, and all
    /// versions that the policy converts, in both directions.
    pub fn new(name: &str, group: &str, kind: &str, resource: &str, versions: &[&str]) -> Self {
        Self {
            name: name.into(),
            group: group.into(),
            kind: kind.into(),
            resource: resource.into(),
            versions: texts(versions),
            reads: Vec::new(),
        }
    }

    /// Adds a kind that the conversion reads through [`crate::Cluster`]. Not its own kind: to fill
    /// that store, the API server would ask for a conversion.
    pub fn reads(mut self, watch: impl Into<Watch>) -> Self {
        self.reads.push(watch.into());
        self
    }
}

fn texts(from: &[&str]) -> Vec<String> {
    from.iter().map(|&text| text.into()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Description, Kind};

    #[test]
    fn a_plugin_may_have_no_controller() {
        let rule = Rule::new(&[""], &["v1"], &["pods"]);
        let description = Description::new("p")
            .webhook(Webhook::validating("guard").rule(rule))
            .conversion(Conversion::new("vm", "g.io", "Vm", "vms", &["v1", "v2"]));
        let described: Value = serde_json::from_str(&description.to_json()).unwrap();
        assert_eq!(
            described,
            json!({"apiVersion": "vmhost/v1", "name": "p", "controllers": [], "permissions": [],
                "webhooks": [{"name": "guard", "type": "validating", "rules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE", "UPDATE"]}]}],
                "conversions": [{"name": "vm", "group": "g.io", "kind": "Vm", "resource": "vms", "versions": ["v1", "v2"]}]})
        );
    }

    #[test]
    fn all_that_is_set_is_written() {
        let webhook = Webhook::mutating("m")
            .rule(
                Rule::new(&["*"], &["*"], &["*/*"])
                    .operations(&[Operation::All])
                    .namespaced(),
            )
            .namespace_selector(json!({"matchLabels": {"a": "b"}}))
            .object_selector(json!({"matchLabels": {"c": "d"}}))
            .match_condition("not-me", "request.userInfo.username != 'me'")
            .ignore_failures()
            .side_effects_none_on_dry_run()
            .timeout_seconds(3)
            .reinvoke_if_needed()
            .exact_match()
            .reads(Kind::core("v1", "ConfigMap"));
        assert_eq!(
            serde_json::to_value(webhook).unwrap(),
            json!({"name": "m", "type": "mutating",
                "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"], "scope": "Namespaced"}],
                "namespaceSelector": {"matchLabels": {"a": "b"}}, "objectSelector": {"matchLabels": {"c": "d"}},
                "matchConditions": [{"name": "not-me", "expression": "request.userInfo.username != 'me'"}],
                "failurePolicy": "Ignore", "sideEffects": "NoneOnDryRun", "timeoutSeconds": 3,
                "reinvocationPolicy": "IfNeeded", "matchPolicy": "Exact",
                "reads": [{"version": "v1", "kind": "ConfigMap"}]})
        );
    }
}
