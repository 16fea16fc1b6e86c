//! The description as a builder. Its JSON is checked by the host, which names what is wrong.

use serde::Serialize;

use crate::bindings::vmhost::plugin::types::Gvk;

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
}

/// A group, version and kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kind {
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'static str,
    version: &'static str,
    kind: &'static str,
}

/// One controller: a primary kind and how its keys are worked on.
#[derive(Clone, Debug, Serialize)]
pub struct Controller {
    name: String,
    primary: Primary,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reads: Vec<Kind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<Retry>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Primary {
    #[serde(flatten)]
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    label_selector: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field_selector: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wanted_fields: Option<Vec<String>>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Retry {
    base_ms: u32,
    cap_ms: u32,
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

    /// The document that `describe` returns.
    pub fn to_json(&self) -> String {
        // Only maps with keys that are no strings can fail, and there are none.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Controller {
    /// A controller whose keys are the objects of one kind.
    pub fn new(name: &str, primary: Kind) -> Self {
        let primary = Primary {
            kind: primary,
            label_selector: None,
            field_selector: None,
            wanted_fields: None,
        };
        Self {
            name: name.into(),
            primary,
            reads: Vec::new(),
            concurrency: None,
            retry: None,
        }
    }

    /// Only objects with these labels.
    pub fn label_selector(mut self, selector: &str) -> Self {
        self.primary.label_selector = Some(selector.into());
        self
    }

    /// Only objects with these fields, such as `metadata.name=x`.
    pub fn field_selector(mut self, selector: &str) -> Self {
        self.primary.field_selector = Some(selector.into());
        self
    }

    /// The snapshots hold only these fields (dotted paths) besides `apiVersion`, `kind` and `metadata`.
    pub fn wanted_fields(mut self, fields: &[&str]) -> Self {
        self.primary.wanted_fields = Some(fields.iter().map(|&field| field.into()).collect());
        self
    }

    /// Another kind that is read through [`crate::cluster`].
    pub fn reads(mut self, kind: Kind) -> Self {
        self.reads.push(kind);
        self
    }

    /// Keys worked on at once.
    pub fn concurrency(mut self, keys: u32) -> Self {
        self.concurrency = Some(keys);
        self
    }

    /// Back-off of a failing key, in milliseconds.
    pub fn retry_ms(mut self, base: u32, cap: u32) -> Self {
        self.retry = Some(Retry {
            base_ms: base,
            cap_ms: cap,
        });
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
