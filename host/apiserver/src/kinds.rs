//! The data of a served kind: names, versions, columns, subresources.
//!
//! Owns the form of that data, and the conversion of a stored object to the versions and groups
//! that share its storage (`autoscaler` has the one between versions that differ in more than
//! names). Must not know which kinds there are, requests, or how a CustomResourceDefinition is
//! checked.

mod behaviour;
mod column;

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use vmhost_rules::Rules;
use vmhost_schema::Schema;

pub(crate) use behaviour::{Deletion, Dependents, Fill, Fixed, Subresource};
pub(crate) use column::{Column, Show};

use crate::autoscaler;
use crate::jsonpath::JsonPath;
use crate::meta::check::Names;
use crate::object::{Object, Shown, Stored};
use crate::reach::Reach;

/// A served kind.
#[derive(Debug)]
pub(crate) struct Kind {
    pub group: String,
    pub kind: String,
    pub list_kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    pub verbs: Vec<String>,
    /// The storage of its objects. Two groups that serve the same objects share one.
    pub storage: Arc<str>,
    /// The apiVersion of stored objects.
    pub stored_as: String,
    /// Where a real server keeps the objects in etcd, which a refusal names: `services/specs`.
    pub registry: String,
    /// Top-level fields that have another name in this group than in the storage: (here, there).
    pub renames: Vec<(String, String)>,
    /// Whether a CustomResourceDefinition registered the kind.
    pub custom: bool,
    /// The uid of that definition.
    pub definition: String,
    /// Whether the definition is being deleted.
    pub terminating: bool,
    pub create_on_update: bool,
    pub has_generation: bool,
    /// If set, objects are not stored: the answer to a create is the object with these fields
    /// merged in.
    pub answer: Option<Value>,
    /// Defaults of missing fields, including nested ones.
    pub defaults: Value,
    /// The defaults that only code can fill in.
    pub fill: Fill,
    /// Fields of the metadata whose changes also advance the generation.
    pub content: Vec<String>,
    pub deletion: Deletion,
    /// The refusal of a field selector with an unknown field; `{}` stands for the field.
    pub unknown_field: String,
    /// Maps of texts that are converted into maps of bytes: (texts, bytes).
    pub encoded: Vec<(String, String)>,
    /// Names of objects that cannot be deleted.
    pub protected: Vec<String>,
    pub fixed: Vec<Fixed>,
    /// Tables of the kind do not begin with the name.
    pub unnamed_rows: bool,
    pub names: Names,
    /// Whether an object without a name gets its uid as a name.
    pub named_by_uid: bool,
    /// The webhook that converts its objects; `None`: versions differ in their names only.
    pub conversion: Option<Conversion>,
    pub versions: Vec<Version>,
}

impl Kind {
    /// Returns the group of the stored objects. Two groups may serve the same objects.
    pub fn stored_group(&self) -> &str {
        let parts = self.stored_as.split_once('/');
        parts.map_or("", |(group, _)| group)
    }
}

/// A conversion webhook.
#[derive(Debug)]
pub(crate) struct Conversion {
    pub reach: Reach,
    /// The version of ConversionReview that it is sent; `None`: it knows none of this server's.
    pub version: Option<&'static str>,
}

/// One version of a kind.
#[derive(Debug)]
pub(crate) struct Version {
    pub name: String,
    pub served: bool,
    /// `openAPIV3Schema`; `{}` when open. Of a built-in kind, a `$ref` to its definition.
    pub raw_schema: Value,
    /// Unset for a built-in kind: its definition is parsed when it is first needed.
    pub schema: Option<Schema>,
    /// The fields that an object of a built-in kind has before any is set, as Go encodes them.
    pub empty: Option<Value>,
    /// The rules of a custom kind, besides its schema.
    pub rules: Rules,
    pub columns: Vec<Column>,
    pub status: bool,
    pub scale: Option<Scale>,
    /// The other subresources.
    pub others: Vec<Subresource>,
    pub selectable: Vec<(String, Vec<JsonPath>)>,
    /// The text of the `Warning` header, for a deprecated version.
    pub warning: Option<String>,
}

impl Version {
    /// Returns the name of a built-in kind's definition.
    pub fn definition(&self) -> Option<&str> {
        self.raw_schema.get("$ref")?.as_str()
    }
}

/// The paths of the scale subresource.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    pub spec: JsonPath,
    pub status: JsonPath,
    pub selector: Option<JsonPath>,
}

/// A kind in one of its versions: what a path names.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub kind: Arc<Kind>,
    pub version: usize,
}

impl Target {
    pub fn version(&self) -> &Version {
        &self.kind.versions[self.version]
    }

    /// Returns the apiVersion: `apps/v1`, `v1`.
    pub fn api_version(&self) -> String {
        join_version(&self.kind.group, &self.version().name)
    }

    /// Returns the qualified resource name: `virtualmachines.cloud.waibizi.com`, `configmaps`.
    pub fn qualified(&self) -> String {
        if self.kind.group.is_empty() {
            self.kind.plural.clone()
        } else {
            format!("{}.{}", self.kind.plural, self.kind.group)
        }
    }

    pub fn schema(&self) -> Option<&Schema> {
        let version = self.version();
        let parsed = version.schema.as_ref();
        parsed.or_else(|| vmhost_schema::builtin(version.definition()?))
    }

    /// Returns all subresources, in the order of a real server.
    pub fn subresources(&self) -> Vec<Subresource> {
        const VERBS: [&str; 3] = ["get", "patch", "update"];
        let (kind, version) = (&self.kind, self.version());
        let of = |name: &str, group: &str, version: &str, kind: &str| Subresource {
            name: name.to_owned(),
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            verbs: VERBS.map(str::to_owned).into(),
        };
        let mut all = version.others.clone();
        if version.status {
            all.push(of("status", &kind.group, &version.name, &kind.kind));
        }
        if version.scale.is_some() {
            all.push(of("scale", "autoscaling", "v1", "Scale"));
        }
        if !kind.custom {
            all.sort_by(|a, b| a.name.cmp(&b.name));
        }
        all
    }

    pub fn allows(&self, verb: &str) -> bool {
        self.kind.verbs.iter().any(|v| v == verb)
    }

    /// Returns the paths of a field in a field selector; `None` if the kind does not support it.
    pub fn selectable(&self, field: &str) -> Option<Vec<JsonPath>> {
        if field == "metadata.name" || (field == "metadata.namespace" && self.kind.namespaced) {
            return JsonPath::parse(field).map(|path| vec![path]);
        }
        self.version()
            .selectable
            .iter()
            .find(|(name, _)| name == field)
            .map(|(_, paths)| paths.clone())
    }

    /// Returns whether only a webhook can convert an object to this version.
    pub fn is_foreign(&self, object: &Value) -> bool {
        let version = object.get("apiVersion").and_then(Value::as_str);
        self.kind.conversion.is_some()
            && version.is_none_or(|version| version != self.api_version())
    }

    /// Returns the kind in the version in which its objects are stored.
    pub fn stored(&self) -> Target {
        let mut versions = self.kind.versions.iter();
        let is_stored = |version: &Version| {
            join_version(&self.kind.group, &version.name) == self.kind.stored_as
        };
        Target {
            kind: self.kind.clone(),
            version: versions.position(is_stored).unwrap_or(self.version),
        }
    }

    /// Returns whether an object is in this version as it is stored.
    pub fn is_as_stored(&self, stored: &Stored) -> bool {
        self.kind.renames.is_empty() && stored.is_in(&self.api_version())
    }

    /// Returns a stored object in this version, if no webhook is needed for that. One that needs no
    /// change is not read.
    pub fn show(&self, stored: Stored) -> Shown {
        match self.is_as_stored(&stored) {
            true => Shown::Stored(stored),
            false => Shown::Made(self.view(&stored.object())),
        }
    }

    /// Returns a stored object in this version, if no webhook is needed for that.
    pub fn view(&self, stored: &Object) -> Object {
        let api_version = self.api_version();
        if self.kind.renames.is_empty()
            && stored.get("apiVersion").and_then(Value::as_str) == Some(&api_version)
        {
            return stored.clone();
        }
        let mut shown = Value::clone(stored);
        self.rename(&mut shown, |(here, there)| (there, here));
        if self.is_old_autoscaler() {
            autoscaler::to_v1(&mut shown);
        }
        shown["apiVersion"] = Value::String(api_version);
        // Defaults are those of the stored version, as in kube-apiserver.
        if let Some(schema) = self.schema().filter(|_| self.kind.custom) {
            schema.prune(&mut shown);
        }
        Arc::new(shown)
    }

    /// Converts an object of this version to the stored form. Fields that the stored version does
    /// not have are lost.
    pub fn store(&self, mut shown: Value) -> Value {
        self.rename(&mut shown, |(here, there)| (here, there));
        if self.is_old_autoscaler() {
            autoscaler::from_v1(&mut shown);
        }
        let stored_as = &self.kind.stored_as;
        shown["apiVersion"] = Value::String(stored_as.clone());
        if self.kind.custom && self.api_version() != *stored_as {
            let mut versions = self.kind.versions.iter();
            let stored = versions.find(|v| join_version(&self.kind.group, &v.name) == *stored_as);
            if let Some(schema) = stored.and_then(|version| version.schema.as_ref()) {
                schema.prune(&mut shown);
            }
        }
        shown
    }

    /// Fills in what the code of a built-in kind fills in.
    pub fn complete(&self, object: &mut Value) {
        let Some(map) = object.as_object_mut() else {
            return;
        };
        for (from, to) in &self.kind.encoded {
            let Some(Value::Object(texts)) = map.remove(from) else {
                continue;
            };
            let bytes = map.entry(to.clone()).or_insert(Value::Null);
            if bytes.is_null() {
                *bytes = Value::Object(Map::new());
            }
            // What is no map is refused by the check of the schema.
            let Some(bytes) = bytes.as_object_mut() else {
                continue;
            };
            for (key, text) in texts {
                let text = STANDARD.encode(text.as_str().unwrap_or_default());
                bytes.insert(key, Value::String(text));
            }
        }
        default_within(object, &self.kind.defaults);
    }

    fn is_old_autoscaler(&self) -> bool {
        self.kind.fill == Fill::Autoscaler && self.api_version() != self.kind.stored_as
    }

    fn rename<'a>(
        &'a self,
        object: &mut Value,
        way: impl Fn((&'a str, &'a str)) -> (&'a str, &'a str),
    ) {
        let Some(map) = object.as_object_mut() else {
            return;
        };
        for (here, there) in &self.kind.renames {
            let (from, to) = way((here, there));
            if let Some(value) = map.remove(from) {
                map.insert(to.to_owned(), value);
            }
        }
    }
}

/// Fills in missing fields, also in nested objects that both have.
fn default_within(object: &mut Value, defaults: &Value) {
    let (Value::Object(map), Value::Object(defaults)) = (object, defaults) else {
        return;
    };
    for (field, value) in defaults {
        match map.get_mut(field) {
            Some(there) => default_within(there, value),
            None => {
                map.insert(field.clone(), value.clone());
            }
        }
    }
}

/// Returns `apps/v1` from its two parts.
pub(crate) fn join_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// The verbs of a kind that supports all of them.
pub(crate) const ALL_VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];
