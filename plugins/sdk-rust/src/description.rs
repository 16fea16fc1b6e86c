//! The description as a builder. The host validates its JSON, and its errors name the invalid
//! field.

use serde::Serialize;

use crate::bindings::vmhost::plugin::types::Gvk;
use crate::watch::{Map, Watch};
use crate::webhook::{Conversion, Webhook};

mod http;

pub use http::HttpGrant;

/// The description of a plugin.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    api_version: &'static str,
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    version: String,
    controllers: Vec<Controller>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    webhooks: Vec<Webhook>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conversions: Vec<Conversion>,
    permissions: Vec<Permission>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    http: Vec<HttpGrant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    setup: Option<Setup>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settings_schema: Option<serde_json::Value>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Setup {
    custom_resource_definitions: Vec<serde_json::Value>,
}

/// A group, version and kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kind {
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'static str,
    version: &'static str,
    kind: &'static str,
}

/// One controller: its keys, what wakes them, and how they are processed.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Controller {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary: Option<Watch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timer: Option<Timer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    owns: Vec<Watch>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    watches: Vec<Watch>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reads: Vec<Watch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finalizer: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    previous: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<u32>,
    #[serde(skip_serializing_if = "Retry::is_default")]
    retry: Retry,
    #[serde(skip_serializing_if = "Option::is_none")]
    clusters: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Timer {
    EveryMs(u32),
    Once(bool),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Retry {
    #[serde(skip_serializing_if = "Option::is_none")]
    base_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cap_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_retries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket: Option<Bucket>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Bucket {
    per_second: u32,
    burst: u32,
}

impl Retry {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What the plugin's effects may do.
#[derive(Clone, Debug, Serialize)]
pub struct Permission {
    #[serde(flatten)]
    kind: Kind,
    verbs: Vec<Verb>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    namespaces: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    optional: bool,
}

/// What an effect does to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Create a new object.
    Create,
    /// Change an object: apply, JSON patch, JSON merge patch.
    Patch,
    /// Delete an object.
    Delete,
}

impl Kind {
    /// Returns a kind of an API group.
    pub const fn new(group: &'static str, version: &'static str, kind: &'static str) -> Self {
        Self {
            group,
            version,
            kind,
        }
    }

    /// Returns a kind of the core group.
    pub const fn core(version: &'static str, kind: &'static str) -> Self {
        Self::new("", version, kind)
    }

    /// Returns the form in objects and owner references: `apps/v1`, and `v1` for the core group.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.into(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Returns the kind alone: `Deployment`.
    pub const fn name(&self) -> &'static str {
        self.kind
    }

    /// Returns the contract's record.
    pub fn gvk(&self) -> Gvk {
        Gvk {
            group: self.group.into(),
            version: self.version.into(),
            kind: self.kind.into(),
        }
    }
}

impl Description {
    /// Returns the description of a plugin of this name. The name owns fields: do not change it.
    pub fn new(name: &str) -> Self {
        Self {
            api_version: "vmhost/v1",
            name: name.into(),
            version: String::new(),
            controllers: Vec::new(),
            webhooks: Vec::new(),
            conversions: Vec::new(),
            permissions: Vec::new(),
            http: Vec::new(),
            setup: None,
            settings_schema: None,
        }
    }

    /// Sets the plugin's own version, for display.
    pub fn version(mut self, version: &str) -> Self {
        self.version = version.into();
        self
    }

    /// Adds a controller.
    pub fn controller(mut self, controller: Controller) -> Self {
        self.controllers.push(controller);
        self
    }

    /// Adds an admission webhook, which [`Policy::admit`](crate::Policy::admit) answers.
    pub fn webhook(mut self, webhook: Webhook) -> Self {
        self.webhooks.push(webhook);
        self
    }

    /// Adds a conversion, which [`Policy::convert`](crate::Policy::convert) carries out.
    pub fn conversion(mut self, conversion: Conversion) -> Self {
        self.conversions.push(conversion);
        self
    }

    /// Adds a permission. The host refuses other effects before anything is written.
    pub fn permission(mut self, permission: Permission) -> Self {
        self.permissions.push(permission);
        self
    }

    /// Adds requests that the plugin may send to a service outside of the cluster.
    pub fn http(mut self, grant: HttpGrant) -> Self {
        self.http.push(grant);
        self
    }

    /// Adds a CustomResourceDefinition that the host installs before the controllers start, if the
    /// operator allows it (`--install-crds`).
    pub fn install(mut self, definition: serde_json::Value) -> Self {
        self.setup
            .get_or_insert_default()
            .custom_resource_definitions
            .push(definition);
        self
    }

    /// Sets the structural schema (as `openAPIV3Schema` of a CustomResourceDefinition) that the
    /// settings of a `Plugin` object have to fit. The host refuses others, names their paths, and
    /// adds the schema's defaults. A setting that is not a string reaches the policy as JSON.
    pub fn settings_schema(mut self, schema: serde_json::Value) -> Self {
        self.settings_schema = Some(schema);
        self
    }

    /// Returns the document that `describe` returns.
    pub fn to_json(&self) -> String {
        // Only a map with keys other than strings could fail, and there is none.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Controller {
    /// Returns a controller whose keys are the objects of one kind (controller-runtime's `For`).
    pub fn new(name: &str, primary: impl Into<Watch>) -> Self {
        Self {
            name: name.into(),
            primary: Some(primary.into()),
            ..Self::default()
        }
    }

    /// Returns a controller without a primary kind: one turn at the start, and then one per period
    /// in milliseconds.
    pub fn every_ms(name: &str, ms: u32) -> Self {
        Self {
            name: name.into(),
            timer: Some(Timer::EveryMs(ms)),
            ..Self::default()
        }
    }

    /// Returns a controller without a primary kind: one turn at the start, and one after each swap.
    pub fn once(name: &str) -> Self {
        Self {
            name: name.into(),
            timer: Some(Timer::Once(true)),
            ..Self::default()
        }
    }

    /// Adds a kind of objects that the controller creates, with a controller reference to the
    /// primary (controller-runtime's `Owns`).
    pub fn owns(mut self, watch: impl Into<Watch>) -> Self {
        self.owns.push(watch.into());
        self
    }

    /// Adds another kind that wakes keys (controller-runtime's `Watches`).
    pub fn watches(mut self, watch: impl Into<Watch>, map: Map) -> Self {
        let mut watch = watch.into();
        watch.map = Some(map);
        self.watches.push(watch);
        self
    }

    /// Adds another kind that the controller reads through [`crate::cluster`]. It wakes no keys.
    pub fn reads(mut self, watch: impl Into<Watch>) -> Self {
        self.reads.push(watch.into());
        self
    }

    /// Sets the finalizer, `domain/name`. The host adds it to each object before the policy first
    /// sees it, and removes it after the policy, called with `deleting`, returns
    /// [`Outcome::finalized`](crate::Outcome::finalized).
    pub fn finalizer(mut self, finalizer: &str) -> Self {
        self.finalizer = Some(finalizer.into());
        self
    }

    /// Sets `request.previous` to the object as of the last turn that succeeded.
    pub fn previous(mut self) -> Self {
        self.previous = true;
        self
    }

    /// Sets the reporter of Events (`reportingController`). Default: the names of plugin and
    /// controller.
    pub fn event_source(mut self, source: &str) -> Self {
        self.event_source = Some(source.into());
        self
    }

    /// Sets in which clusters the keys are: `home` (the default), `members` (all others of the
    /// host, with a queue for each), or a label selector of members. Reads and effects are in the
    /// cluster of the key; `setting("vmhost/cluster")` is its name,
    /// `setting("vmhost/cluster-labels")` are its labels as JSON.
    pub fn clusters(mut self, clusters: &str) -> Self {
        self.clusters = Some(clusters.into());
        self
    }

    /// Sets the number of keys that are processed at once.
    pub fn concurrency(mut self, keys: u32) -> Self {
        self.concurrency = Some(keys);
        self
    }

    /// Sets the back-off of a failing key, in milliseconds: the first delay, which doubles, and the
    /// longest.
    pub fn retry_ms(mut self, base: u32, cap: u32) -> Self {
        (self.retry.base_ms, self.retry.cap_ms) = (Some(base), Some(cap));
        self
    }

    /// Sets the number of retries after which a failing key is dropped and reported, until the
    /// object or the plugin changes.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.retry.max_retries = Some(retries);
        self
    }

    /// Sets a rate limit for the retries of all keys together.
    pub fn retry_bucket(mut self, per_second: u32, burst: u32) -> Self {
        self.retry.bucket = Some(Bucket { per_second, burst });
        self
    }
}

impl Permission {
    /// Permits these verbs on objects of this kind.
    pub fn new(kind: Kind, verbs: &[Verb]) -> Self {
        Self {
            kind,
            verbs: verbs.to_vec(),
            subresources: Vec::new(),
            namespaces: Vec::new(),
            optional: false,
        }
    }

    /// Limits the permission to this subresource instead of the object itself (and others that are
    /// added).
    pub fn subresource(mut self, name: &str) -> Self {
        self.subresources.push(name.into());
        self
    }

    /// Limits the permission to this namespace (and others that are added).
    pub fn namespace(mut self, name: &str) -> Self {
        self.namespaces.push(name.into());
        self
    }

    /// Declares that the plugin also works without the permission: a `Plugin` object that is not
    /// granted it runs without it, instead of not at all.
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}

#[cfg(test)]
mod tests;
