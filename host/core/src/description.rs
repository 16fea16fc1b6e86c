//! A plugin's description of itself: what wakes its controllers, what they read, and what they may
//! do.
//!
//! A description is one JSON document (`wit/v1/description.schema.json` publishes its schema).
//! Unknown fields are rejected by name, so that a plugin that asks for something that this host
//! does not support gets an error instead of partial support. `check` finds contradictions.

use serde::{Deserialize, Serialize};

use crate::key::Gvk;

mod check;
mod check_controller;
mod check_http;
mod check_names;
mod check_watched;
mod check_webhook;
pub(crate) mod clusters;
mod http;
mod reviews;
mod watched;
pub mod webhook;

pub use check_http::HTTP_CONNECTION_HEADERS;
pub use clusters::Clusters;
pub use http::{HttpGrant, HttpHeader, HttpScheme, SecretKey};
pub use reviews::{admission_kind, conversion_kind};
pub use watched::{Role, Watched};

use webhook::{ConversionDescription, WebhookDescription};

/// The `apiVersion` of descriptions of this contract.
pub const API_VERSION: &str = "vmhost/v1";

/// A plugin's description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Description {
    /// `vmhost/v1`.
    pub api_version: String,
    /// The plugin's name: a DNS label of at most 50 characters. The name is part of the field
    /// manager, which owns fields: do not change it.
    pub name: String,
    /// The plugin's own version, for people, and to keep the CustomResourceDefinitions that the
    /// plugin carries from going back to an older version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The controllers. A plugin that answers webhooks or conversions may have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controllers: Vec<ControllerDescription>,
    /// The admission webhooks that the plugin answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<WebhookDescription>,
    /// The kinds whose versions the plugin converts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversions: Vec<ConversionDescription>,
    /// What the plugin's effects may write. Reading and watching the kinds that its controllers
    /// name is implied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<Permission>,
    /// The HTTP requests that the plugin may send to services outside of the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpGrant>,
    /// What must exist before the controllers start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// The structural schema of the plugin's settings (as `openAPIV3Schema` of a
    /// CustomResourceDefinition), which settings of a `Plugin` object have to fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_schema: Option<serde_json::Value>,
}

/// One controller: its keys, what wakes them, and how they are processed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControllerDescription {
    /// The controller's name: a DNS label of at most 50 characters, unique in the plugin. Metrics
    /// and logs carry the name.
    pub name: String,
    /// The kind whose objects are the keys. Either this or `timer` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<Watched>,
    /// The controller has a single key, which a timer wakes. Either this or `primary` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<Timer>,
    /// Kinds whose objects the controller creates: a change wakes the primary in the controller
    /// reference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owns: Vec<Watched>,
    /// Other kinds that wake keys, each with a `map`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watches: Vec<Watched>,
    /// Other kinds that the controller reads. They wake no keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Watched>,
    /// The finalizer that the host adds to each object before the plugin first sees it, and removes
    /// when the plugin returns `finalized`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizer: Option<String>,
    /// Whether a request also carries the object as of its last successful turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub previous: bool,
    /// `reportingController` of the controller's Events. Default: built from the names of plugin
    /// and controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_source: Option<String>,
    /// Number of keys processed concurrently; `--workers` overrides it. Default 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Backoff of failing keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// In which clusters its keys are. Its reads and effects are in the cluster of the key.
    #[serde(default, skip_serializing_if = "Clusters::is_home")]
    pub clusters: Clusters,
}

/// When the single key of a controller without a primary kind wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Timer {
    /// At the start, and then at this interval in milliseconds.
    EveryMs(u32),
    /// At the start and after each swap. The value is always true.
    Once(bool),
}

impl ControllerDescription {
    /// The kind of the keys. The kind of a timer's key is `Timer.v1.vmhost`, which no cluster
    /// serves.
    pub fn kind(&self) -> Gvk {
        self.primary
            .as_ref()
            .map_or_else(|| Gvk::new("vmhost", "v1", "Timer"), Watched::gvk)
    }

    /// Every kind that the controller watches or reads, the primary first, with its role.
    pub fn kinds(&self) -> impl Iterator<Item = (Role, &Watched)> {
        self.primary
            .iter()
            .map(|watched| (Role::Primary, watched))
            .chain(self.owns.iter().map(|watched| (Role::Owned, watched)))
            .chain(self.watches.iter().map(|watched| (Role::Watched, watched)))
            .chain(self.reads.iter().map(|watched| (Role::Read, watched)))
    }
}

/// What a plugin requires before its controllers start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Setup {
    /// CustomResourceDefinitions that the host installs, if the operator allows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom_resource_definitions: Vec<serde_json::Value>,
}

/// The backoff of failing keys: `base * 2^failures`, at most `cap`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Retry {
    /// First delay in milliseconds. Default 5, as in client-go.
    #[serde(default = "Retry::default_base_ms")]
    pub base_ms: u32,
    /// Maximum delay in milliseconds. Default 1,000,000, as in client-go.
    #[serde(default = "Retry::default_cap_ms")]
    pub cap_ms: u32,
    /// Number of retries after which the key is dropped and reported, until the object or the
    /// plugin changes. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// A rate limit over the retries of all keys. Default: unlimited, as in controller-runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<RetryBucket>,
}

/// A token bucket: `perSecond` retries on average, `burst` at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryBucket {
    /// Retries per second.
    pub per_second: u32,
    /// Maximum number of retries at once.
    pub burst: u32,
}

impl Retry {
    fn default_base_ms() -> u32 {
        5
    }
    fn default_cap_ms() -> u32 {
        1_000_000
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            base_ms: Self::default_base_ms(),
            cap_ms: Self::default_cap_ms(),
            max_retries: None,
            bucket: None,
        }
    }
}

/// A permission for a plugin's effects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Permission {
    /// API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// API version that the effects use.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// `create`, `patch` (for apply and patch), `delete`.
    pub verbs: Vec<Verb>,
    /// The subresources (such as `status`) that the permission covers. Empty for the object itself
    /// without subresources. To write both, give two permissions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subresources: Vec<String>,
    /// The namespaces that the permission covers. Empty for all namespaces and for cluster-scoped
    /// objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Whether the plugin also works without it: a `Plugin` object that is not granted it runs
    /// without it, instead of not at all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

impl Permission {
    /// The permission's group, version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }
}

/// What an effect does to an object, as an RBAC verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Create a new object.
    Create,
    /// Change an existing object: apply, JSON patch, JSON merge patch.
    Patch,
    /// Delete an object.
    Delete,
}

impl Verb {
    /// The verb as RBAC writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

/// Why a description is invalid. The author of the plugin must fix it.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// Not JSON, a value of the wrong type, an unknown or a duplicate field.
    #[error("describe did not return a valid description")]
    Json(#[from] serde_json::Error),
    /// The description is for another version of the contract.
    #[error("the description's apiVersion is {0:?}; this host supports {API_VERSION:?}")]
    ApiVersion(String),
    /// A field has an invalid value.
    #[error("{field}: {reason}")]
    Field {
        /// Path of the field.
        field: String,
        /// Why the value is invalid.
        reason: String,
    },
}

impl Description {
    /// Parses and validates a description.
    pub fn parse(json: &str) -> Result<Self, DescriptionError> {
        let description: Self = serde_json::from_str(json).map_err(DescriptionError::of_json)?;
        description.check()?;
        Ok(description)
    }

    /// The description of one controller.
    pub fn controller(&self, name: &str) -> Option<&ControllerDescription> {
        self.controllers
            .iter()
            .find(|controller| controller.name == name)
    }

    /// The field manager of a controller. It derives from the description, never from a file name.
    pub fn field_manager(&self, controller: &str) -> String {
        format!("vmhost/{}/{controller}", self.name)
    }

    /// The operator's settings that only the host sees: values of headers.
    pub fn hidden_settings(&self) -> impl Iterator<Item = &str> {
        let headers = self.http.iter().flat_map(|grant| &grant.headers);
        headers.filter_map(|header| header.setting.as_deref())
    }

    /// The CustomResourceDefinitions that the plugin carries.
    pub fn definitions(&self) -> &[serde_json::Value] {
        self.setup
            .as_ref()
            .map_or(&[], |setup| &setup.custom_resource_definitions)
    }
}

#[cfg(test)]
mod tests;
