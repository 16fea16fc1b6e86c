//! `Plugin` objects, as people write them. Plain data: it must not know what is done with them.

use serde::Deserialize;
use serde_json::{Map, Value};
use vmhost_core::grants::ceiling::Ceiling;

use crate::selector::Selector;
use crate::status::Status;

/// The fields of `spec` that make up a revision: where its component is, and its terms.
const TEMPLATE: [&str; 10] = [
    "image",
    "configMapRef",
    "path",
    "pullSecrets",
    "settings",
    "settingsFrom",
    "grants",
    "serviceAccountName",
    "limits",
    "clusters",
];

/// A `Plugin`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Plugin {
    pub(crate) metadata: Metadata,
    pub(crate) spec: Spec,
    pub(crate) status: Status,
    /// What of `spec` makes up a revision, as it was written.
    #[serde(skip)]
    pub(crate) template: Map<String, Value>,
}

/// The metadata of a `Plugin`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) generation: i64,
    pub(crate) creation_timestamp: Option<String>,
    pub(crate) deletion_timestamp: Option<String>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) annotations: Map<String, Value>,
}

/// What is wanted. The definition describes the fields.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    pub(crate) image: Option<String>,
    pub(crate) image_policy: ImagePolicy,
    pub(crate) image_interval: Option<String>,
    pub(crate) config_map_ref: Option<KeyRef>,
    pub(crate) path: Option<String>,
    pub(crate) settings: Map<String, Value>,
    pub(crate) settings_from: Vec<SettingsFrom>,
    pub(crate) grants: Ceiling,
    pub(crate) service_account_name: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) clusters: Clusters,
    pub(crate) pull_secrets: Vec<NameRef>,
    pub(crate) suspend: bool,
    pub(crate) revision_history_limit: Option<usize>,
    pub(crate) rollout: Rollout,
}

/// Whether a tag that moves is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum ImagePolicy {
    #[default]
    Once,
    Follow,
}

/// A key of a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct KeyRef {
    pub(crate) name: String,
    #[serde(default = "component_key")]
    pub(crate) key: String,
}

fn component_key() -> String {
    "plugin.wasm".to_owned()
}

/// An object of the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct NameRef {
    pub(crate) name: String,
}

/// Where settings come from, besides the object itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SettingsFrom {
    pub(crate) secret_ref: Option<NameRef>,
    pub(crate) config_map_ref: Option<NameRef>,
}

/// The limits of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Limits {
    pub(crate) memory: Option<String>,
    pub(crate) call_timeout: Option<String>,
}

/// The member clusters that the plugin works in, of those that its description selects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Clusters {
    pub(crate) names: Vec<String>,
    #[serde(flatten)]
    pub(crate) selector: Selector,
}

/// How a new version replaces the old one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rollout {
    pub(crate) strategy: Strategy,
    pub(crate) steps: Vec<Step>,
    pub(crate) every: Option<String>,
    pub(crate) abort_on: AbortOn,
    pub(crate) min_ready_seconds: u64,
}

/// The way of a rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Strategy {
    #[default]
    Swap,
    Canary,
}

/// A step of a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Step {
    pub(crate) weight: u16,
}

/// When a canary is aborted by itself. What is left out is as for any canary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AbortOn {
    pub(crate) broken_keys: Option<usize>,
    pub(crate) failing_percent: Option<u8>,
    pub(crate) min_keys: Option<usize>,
    pub(crate) hot_keys: Option<bool>,
    pub(crate) warnings: Option<bool>,
}

impl Plugin {
    /// Parses an object's text.
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let value: Value = serde_json::from_str(text)?;
        let spec = value.get("spec").and_then(Value::as_object);
        let spec = spec.cloned().unwrap_or_default();
        let plugin: Self = serde_json::from_value(value)?;
        Ok(plugin.under(spec))
    }

    /// This object, with what of this text of a `spec` makes up a revision as its template.
    fn under(mut self, mut spec: Map<String, Value>) -> Self {
        spec.retain(|field, _| TEMPLATE.contains(&field.as_str()));
        self.template = spec;
        self
    }

    /// This object, as it would be with an earlier template.
    pub(crate) fn with_template(
        &self,
        template: Map<String, Value>,
    ) -> Result<Self, serde_json::Error> {
        let spec = serde_json::from_value(Value::Object(template.clone()))?;
        let earlier = Self {
            spec,
            ..self.clone()
        };
        Ok(earlier.under(template))
    }

    /// Returns whether its keeper has to look at the object because of what differs from the state
    /// before. Conditions, which its keeper writes, are not looked at.
    pub(crate) fn concerns(&self, before: &Self) -> bool {
        let metadata = |plugin: &Self| Metadata {
            resource_version: String::new(),
            ..plugin.metadata.clone()
        };
        let followed = |plugin: &Self| {
            let status = &plugin.status;
            [
                status.plugin.clone(),
                status.current_revision.clone(),
                status.refused_revision.clone(),
                status.image.clone(),
                status.digest.clone(),
            ]
        };
        self.spec != before.spec
            || metadata(self) != metadata(before)
            || followed(self) != followed(before)
    }

    /// `NAMESPACE/NAME`.
    pub(crate) fn key(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }

    /// Returns whether the object is being deleted.
    pub(crate) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The value of an annotation.
    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.get(name).and_then(Value::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_read() {
        let text = r#"{"apiVersion":"vmhost.dev/v1alpha1","kind":"Plugin",
            "metadata":{"name":"vm","namespace":"a","uid":"u","resourceVersion":"7","generation":2},
            "spec":{"configMapRef":{"name":"vm"},"settings":{"size":3},
                "rollout":{"strategy":"Canary","steps":[{"weight":5},{"weight":100}],"every":"1m"}}}"#;
        let plugin = Plugin::parse(text).unwrap();
        assert_eq!(plugin.key(), "a/vm");
        let from = plugin.spec.config_map_ref.unwrap();
        assert_eq!(
            (from.name.as_str(), from.key.as_str()),
            ("vm", "plugin.wasm")
        );
        assert_eq!(plugin.spec.rollout.strategy, Strategy::Canary);
        assert_eq!(plugin.spec.rollout.steps.len(), 2);
        assert!(Plugin::parse(r#"{"spec":{"rollout":{"strategy":"Never"}}}"#).is_err());
    }

    fn plugin(status: &str) -> Plugin {
        let text = format!(
            r#"{{"metadata":{{"name":"vm","resourceVersion":"1"}},"spec":{{"path":"a","suspend":false,
                "clusters":{{"names":["east"],"matchLabels":{{"env":"prod"}}}}}},"status":{status}}}"#
        );
        Plugin::parse(&text).unwrap()
    }

    #[test]
    fn a_template_is_what_makes_up_a_revision() {
        let plugin = plugin("{}");
        let mut fields: Vec<&str> = plugin.template.keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["clusters", "path"]);
        let mut template = plugin.template.clone();
        template.insert("path".to_owned(), "b".into());
        let earlier = plugin.with_template(template.clone()).unwrap();
        assert_eq!(earlier.spec.path.as_deref(), Some("b"));
        assert_eq!(earlier.spec.clusters.names, ["east"]);
        assert_eq!(earlier.spec.clusters.selector.text().unwrap(), "env=prod");
        assert_eq!(earlier.template, template);
    }

    #[test]
    fn a_keeper_does_not_wake_itself_by_its_conditions() {
        let before = plugin("{}");
        let mut after = plugin(r#"{"conditions":[{"type":"Pulled"}],"hosts":[{"name":"h"}]}"#);
        after.metadata.resource_version = "2".to_owned();
        assert!(!after.concerns(&before));
        assert!(plugin(r#"{"currentRevision":"vm-1"}"#).concerns(&before));
        after.metadata.generation = 2;
        assert!(after.concerns(&before));
    }
}
