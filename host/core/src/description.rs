//! What a plugin says about itself: what wakes its controllers, what they read, what it may do.
//!
//! One JSON document (`wit/v1/description.schema.json` publishes its schema). Unknown fields are refused by name, so that a plugin that asks for something
//! which this host cannot do is told so instead of being half obeyed. What contradicts itself is found in `check`.

use serde::{Deserialize, Serialize};

use crate::key::Gvk;

mod check;
mod check_watched;
mod watched;

pub use watched::{Role, Watched};

/// The `apiVersion` that descriptions of this contract carry.
pub const API_VERSION: &str = "vmhost/v1";

/// A plugin's description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Description {
    /// `vmhost/v1`.
    pub api_version: String,
    /// The plugin's name: a DNS label of at most 50 characters. It is part of the field manager, and so owns fields: do not change it.
    pub name: String,
    /// The plugin's own version, for people, and for what must not go back (definitions that it carries).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// At least one.
    pub controllers: Vec<ControllerDescription>,
    /// What its effects may write. Reading and watching the kinds that its controllers name is implied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<Permission>,
    /// What has to be there before its controllers start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
}

/// One controller: what its keys are, what wakes them, and how they are worked on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControllerDescription {
    /// Its name: a DNS label of at most 50 characters, unique in the plugin. Metrics and logs carry it.
    pub name: String,
    /// The kind whose objects are its keys. This or `timer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<Watched>,
    /// It has one key, which comes up by the clock. This or `primary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<Timer>,
    /// Kinds whose objects it makes: a change wakes the primary in the controller reference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owns: Vec<Watched>,
    /// Other kinds that wake keys, each with a `map`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watches: Vec<Watched>,
    /// Other kinds that it reads. They wake nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Watched>,
    /// Put on each object before the policy first sees it, taken off when it says `finalized`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizer: Option<String>,
    /// Hand out the object as of the last turn that succeeded, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub previous: bool,
    /// `reportingController` of its Events. Default: made of the names of plugin and controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_source: Option<String>,
    /// Keys worked on at once; `--workers` overrides it. Default 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Back-off of failing keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
}

/// When the one key of a controller without a primary kind comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Timer {
    /// At the start, and then once in so many milliseconds.
    EveryMs(u32),
    /// At the start and after each swap. Always true.
    Once(bool),
}

impl ControllerDescription {
    /// The kind of its keys. That of a timer is `Timer.v1.vmhost`, which no cluster serves.
    pub fn kind(&self) -> Gvk {
        self.primary
            .as_ref()
            .map_or_else(|| Gvk::new("vmhost", "v1", "Timer"), Watched::gvk)
    }

    /// Every kind that it watches or reads, the primary first, with its place.
    pub fn kinds(&self) -> impl Iterator<Item = (Role, &Watched)> {
        self.primary
            .iter()
            .map(|watched| (Role::Primary, watched))
            .chain(self.owns.iter().map(|watched| (Role::Owned, watched)))
            .chain(self.watches.iter().map(|watched| (Role::Watched, watched)))
            .chain(self.reads.iter().map(|watched| (Role::Read, watched)))
    }
}

/// What a plugin needs to be there before its controllers start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Setup {
    /// Definitions that are installed, if the operator allows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom_resource_definitions: Vec<serde_json::Value>,
}

/// How a failing key comes back: after `base * 2^failures`, at most `cap`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Retry {
    /// First delay in milliseconds. Default 5, as client-go.
    #[serde(default = "Retry::default_base_ms")]
    pub base_ms: u32,
    /// Longest delay in milliseconds. Default 1,000,000, as client-go.
    #[serde(default = "Retry::default_cap_ms")]
    pub cap_ms: u32,
    /// After so many retries the key is dropped and reported, until the object or the plugin changes. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// A rate limit over the retries of all keys. Default: none, as controller-runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<RetryBucket>,
}

/// `perSecond` retries in the long run, `burst` at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryBucket {
    /// Retries a second.
    pub per_second: u32,
    /// Retries that may come at once.
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

/// Something that a plugin's effects may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Permission {
    /// API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// API version that the effects name.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// `create`, `patch` (apply and patch), `delete`.
    pub verbs: Vec<Verb>,
    /// Only these subresources (`status`). Empty: the object itself and no subresource. To write both, give two permissions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subresources: Vec<String>,
    /// Only in these namespaces. Empty: in all, and cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
}

impl Permission {
    /// Its group, version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }
}

/// What an effect does to an object, in RBAC's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Make a new object.
    Create,
    /// Change one: apply, JSON patch, JSON merge patch.
    Patch,
    /// Delete one.
    Delete,
}

impl Verb {
    /// As RBAC writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

/// What is wrong with a description: the author of the plugin has to act.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// Not JSON, a wrong type, an unknown or a doubled field.
    #[error("describe did not return a valid description")]
    Json(#[from] serde_json::Error),
    /// Another contract.
    #[error("the description's apiVersion is {0:?}, and this host knows {API_VERSION:?}")]
    ApiVersion(String),
    /// A field whose value makes no sense.
    #[error("{field}: {reason}")]
    Field {
        /// Path of the field.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Description {
    /// Reads and checks a description.
    pub fn parse(json: &str) -> Result<Self, DescriptionError> {
        let description: Self = serde_json::from_str(json)?;
        description.check()?;
        Ok(description)
    }

    /// The description of one controller.
    pub fn controller(&self, name: &str) -> Option<&ControllerDescription> {
        self.controllers
            .iter()
            .find(|controller| controller.name == name)
    }

    /// The name under which a controller owns fields: from the description, never from a file name.
    pub fn field_manager(&self, controller: &str) -> String {
        format!("vmhost/{}/{controller}", self.name)
    }

    /// Definitions that it carries.
    pub fn definitions(&self) -> &[serde_json::Value] {
        self.setup
            .as_ref()
            .map_or(&[], |setup| &setup.custom_resource_definitions)
    }
}

#[cfg(test)]
mod tests;
