//! The description as a builder. Its JSON is checked by the host, which names what is wrong.

use serde::Serialize;

use crate::bindings::vmhost::plugin::types::Gvk;
use crate::watch::{Map, Watch};

/// What a plugin says about itself.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    api_version: &'static str,
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    version: String,
    controllers: Vec<Controller>,
    permissions: Vec<Permission>,
    #[serde(skip_serializing_if = "Option::is_none")]
    setup: Option<Setup>,
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

/// One controller: what its keys are, what wakes them, and how they are worked on.
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

/// Something that the plugin's effects may do.
#[derive(Clone, Debug, Serialize)]
pub struct Permission {
    #[serde(flatten)]
    kind: Kind,
    verbs: Vec<Verb>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    namespaces: Vec<String>,
}

/// What an effect does to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Make a new object.
    Create,
    /// Change one: apply, JSON patch, JSON merge patch.
    Patch,
    /// Delete one.
    Delete,
}

impl Kind {
    /// A kind of an API group.
    pub const fn new(group: &'static str, version: &'static str, kind: &'static str) -> Self {
        Self {
            group,
            version,
            kind,
        }
    }

    /// A kind of the core group.
    pub const fn core(version: &'static str, kind: &'static str) -> Self {
        Self::new("", version, kind)
    }

    /// As objects and owner references say it: `apps/v1`, and `v1` for the core group.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.into(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The kind alone: `Deployment`.
    pub const fn name(&self) -> &'static str {
        self.kind
    }

    /// As the contract's record.
    pub fn gvk(&self) -> Gvk {
        Gvk {
            group: self.group.into(),
            version: self.version.into(),
            kind: self.kind.into(),
        }
    }
}

impl Description {
    /// A description of a plugin of this name. The name owns fields: do not change it.
    pub fn new(name: &str) -> Self {
        Self {
            api_version: "vmhost/v1",
            name: name.into(),
            version: String::new(),
            controllers: Vec::new(),
            permissions: Vec::new(),
            setup: None,
        }
    }

    /// The plugin's own version, for people.
    pub fn version(mut self, version: &str) -> Self {
        self.version = version.into();
        self
    }

    /// Adds a controller.
    pub fn controller(mut self, controller: Controller) -> Self {
        self.controllers.push(controller);
        self
    }

    /// Adds a permission: effects outside the permissions are refused before anything is written.
    pub fn permission(mut self, permission: Permission) -> Self {
        self.permissions.push(permission);
        self
    }

    /// Adds a CustomResourceDefinition that the host installs before the controllers start, if the operator allows it (`--install-crds`).
    pub fn install(mut self, definition: serde_json::Value) -> Self {
        self.setup
            .get_or_insert_default()
            .custom_resource_definitions
            .push(definition);
        self
    }

    /// The document that `describe` returns.
    pub fn to_json(&self) -> String {
        // Only maps with keys that are no strings can fail, and there are none.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Controller {
    /// A controller whose keys are the objects of one kind (controller-runtime's `For`).
    pub fn new(name: &str, primary: impl Into<Watch>) -> Self {
        Self {
            name: name.into(),
            primary: Some(primary.into()),
            ..Self::default()
        }
    }

    /// A controller without a kind of its own: one turn at the start, and then one every so many milliseconds.
    pub fn every_ms(name: &str, ms: u32) -> Self {
        Self {
            name: name.into(),
            timer: Some(Timer::EveryMs(ms)),
            ..Self::default()
        }
    }

    /// A controller without a kind of its own: one turn at the start, and one after each swap.
    pub fn once(name: &str) -> Self {
        Self {
            name: name.into(),
            timer: Some(Timer::Once(true)),
            ..Self::default()
        }
    }

    /// A kind whose objects it makes, with a controller reference to the primary (controller-runtime's `Owns`).
    pub fn owns(mut self, watch: impl Into<Watch>) -> Self {
        self.owns.push(watch.into());
        self
    }

    /// Another kind that wakes keys (controller-runtime's `Watches`).
    pub fn watches(mut self, watch: impl Into<Watch>, map: Map) -> Self {
        let mut watch = watch.into();
        watch.map = Some(map);
        self.watches.push(watch);
        self
    }

    /// Another kind that is read through [`crate::cluster`]. It wakes nobody.
    pub fn reads(mut self, watch: impl Into<Watch>) -> Self {
        self.reads.push(watch.into());
        self
    }

    /// Put on each object before the policy first sees it; the policy is called with `deleting`, and the finalizer is taken off when it says
    /// [`Outcome::finalized`](crate::Outcome::finalized). `domain/name`.
    pub fn finalizer(mut self, finalizer: &str) -> Self {
        self.finalizer = Some(finalizer.into());
        self
    }

    /// `request.previous` holds the object as of the last turn that succeeded.
    pub fn previous(mut self) -> Self {
        self.previous = true;
        self
    }

    /// Who the Events are from (`reportingController`). Default: made of the names of plugin and controller.
    pub fn event_source(mut self, source: &str) -> Self {
        self.event_source = Some(source.into());
        self
    }

    /// Keys worked on at once.
    pub fn concurrency(mut self, keys: u32) -> Self {
        self.concurrency = Some(keys);
        self
    }

    /// Back-off of a failing key, in milliseconds: the first delay, which doubles, and the longest.
    pub fn retry_ms(mut self, base: u32, cap: u32) -> Self {
        (self.retry.base_ms, self.retry.cap_ms) = (Some(base), Some(cap));
        self
    }

    /// After so many retries of a failure the key is dropped and reported, until the object or the plugin changes.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.retry.max_retries = Some(retries);
        self
    }

    /// A rate limit over the retries of all keys together.
    pub fn retry_bucket(mut self, per_second: u32, burst: u32) -> Self {
        self.retry.bucket = Some(Bucket { per_second, burst });
        self
    }
}

impl Permission {
    /// These verbs on objects of this kind.
    pub fn new(kind: Kind, verbs: &[Verb]) -> Self {
        Self {
            kind,
            verbs: verbs.to_vec(),
            subresources: Vec::new(),
            namespaces: Vec::new(),
        }
    }

    /// On this subresource instead of the object itself.
    pub fn subresource(mut self, name: &str) -> Self {
        self.subresources.push(name.into());
        self
    }

    /// Only in this namespace (and others that are added).
    pub fn namespace(mut self, name: &str) -> Self {
        self.namespaces.push(name.into());
        self
    }
}
