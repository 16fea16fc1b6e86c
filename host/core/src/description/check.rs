//! Validation of a description. Each error has the path of the invalid field and the reason.
//!
//! This module owns what concerns a plugin as a whole, and its permissions and definitions. Its
//! siblings check one controller, watched kind, webhook or HTTP grant each. No check asks a
//! cluster.

use super::check_names::{REASON_MAX, check_gvk, check_name, field};
use super::{
    API_VERSION, ControllerDescription, Description, DescriptionError, HttpGrant, Permission,
};
use crate::key::Gvk;
use crate::object::ObjectHead;
use crate::text::cut;

/// Maximum number of controllers of a plugin, and of kinds in one list of a controller. Each is a
/// queue or a watch in the host.
pub(super) const MANY: usize = 64;

/// Maximum number of permissions of a plugin, and of namespaces of one permission.
const PERMISSIONS: usize = 256;

/// Maximum number of accesses of all permissions together: each verb on each subresource in each
/// namespace. The host asks the cluster about each of them.
const ACCESSES: usize = 4096;

/// Maximum number of kinds of all controllers, webhooks and conversions together. Each controller
/// looks at each change of each of its kinds.
const KINDS: usize = 256;

/// Maximum number of keys that all controllers together work on at once. Each has a task of the
/// host's, whether there is something to do or not.
const KEYS: u32 = 2048;

/// Maximum number of CEL predicates of a plugin: each may cost the host milliseconds per change.
const EXPRESSIONS: usize = 64;

/// Maximum number of wanted fields of all kinds together: plugins share the stores, so that the
/// lists of all are joined and compared.
const FIELDS: usize = 2048;

/// Maximum length of the schema of the settings as JSON, and number of its patterns: the host
/// compiles each.
const SCHEMA_MAX: usize = 64 << 10;
const PATTERNS: usize = 32;

/// Maximum length of the plugin's own version.
const VERSION_MAX: usize = 128;

/// Maximum number of CustomResourceDefinitions that a plugin carries.
const DEFINITIONS: usize = 32;

/// Maximum number of indexes of one kind.
pub(super) const INDEXES: usize = 16;

impl Description {
    pub(super) fn check(&self) -> Result<(), DescriptionError> {
        if self.api_version != API_VERSION {
            let found = cut(&self.api_version, REASON_MAX);
            return Err(DescriptionError::ApiVersion(found.to_owned()));
        }
        check_name("name", &self.name)?;
        if self.version.len() > VERSION_MAX || self.version.contains(char::is_control) {
            let reason = "at most 128 bytes without control characters";
            return Err(field("version", reason));
        }
        if self.controllers.len() > MANY {
            return Err(field("controllers", "at most 64"));
        }
        for (index, controller) in self.controllers.iter().enumerate() {
            let at = format!("controllers[{index}]");
            controller.check(&at)?;
            self.check_among(&at, controller, &self.controllers[..index])?;
        }
        self.check_reviews()?;
        self.check_kinds()?;
        let controllers = self.controllers.iter();
        let keys: u32 = controllers.filter_map(|of| of.concurrency).sum();
        if keys > KEYS {
            let reason =
                format!("{keys} keys at once (concurrency), and at most {KEYS} are allowed");
            return Err(field("controllers", &reason));
        }
        if self.permissions.len() > PERMISSIONS {
            return Err(field("permissions", "at most 256"));
        }
        if self.definitions().len() > DEFINITIONS {
            return Err(field("setup.customResourceDefinitions", "at most 32"));
        }
        for (index, permission) in self.permissions.iter().enumerate() {
            permission.check(&format!("permissions[{index}]"))?;
        }
        let accesses: usize = self.permissions.iter().map(Permission::accesses).sum();
        if accesses > ACCESSES {
            let reason = format!(
                "{accesses} accesses (each verb on each subresource in each namespace), and at most {ACCESSES} are allowed"
            );
            return Err(field("permissions", &reason));
        }
        for (index, definition) in self.definitions().iter().enumerate() {
            let at = format!("setup.customResourceDefinitions[{index}]");
            check_definition(definition).map_err(|reason| field(&at, &reason))?;
        }
        if let Some(schema) = &self.settings_schema
            && !schema.is_object()
        {
            return Err(field("settingsSchema", "it is not a schema: a JSON object"));
        }
        if let Some(schema) = &self.settings_schema
            && (schema.to_string().len() > SCHEMA_MAX || patterns(schema) > PATTERNS)
        {
            return Err(field("settingsSchema", "at most 64 KiB and 32 patterns"));
        }
        HttpGrant::check_all(&self.http)
    }

    /// Rejects a plugin that makes the host look at each change too often.
    fn check_kinds(&self) -> Result<(), DescriptionError> {
        let controllers = self.controllers.iter();
        let watched = controllers.flat_map(ControllerDescription::kinds);
        let watched = watched.map(|(_, watched)| watched);
        let reviewed = self.reviews().flat_map(|(_, _, reads)| reads);
        let (mut kinds, mut expressions, mut fields) = (0, 0, 0);
        for watched in watched.chain(reviewed) {
            let predicates = watched.predicates.as_ref();
            kinds += 1;
            expressions += usize::from(predicates.is_some_and(|given| given.cel.is_some()));
            fields += watched.wanted_fields.as_ref().map_or(0, Vec::len);
        }
        if kinds > KINDS {
            let reason = format!(
                "{kinds} kinds in all controllers, webhooks and conversions, and at most {KINDS} are allowed"
            );
            return Err(field("controllers", &reason));
        }
        if expressions > EXPRESSIONS {
            let reason =
                format!("{expressions} predicates in CEL, and at most {EXPRESSIONS} are allowed");
            return Err(field("controllers", &reason));
        }
        if fields > FIELDS {
            let reason =
                format!("{fields} wantedFields of all kinds, and at most {FIELDS} are allowed");
            return Err(field("controllers", &reason));
        }
        Ok(())
    }

    /// Rejects what two controllers of a plugin must not share.
    fn check_among(
        &self,
        at: &str,
        controller: &ControllerDescription,
        before: &[ControllerDescription],
    ) -> Result<(), DescriptionError> {
        if before.iter().any(|other| other.name == controller.name) {
            return Err(field(
                &format!("{at}.name"),
                &format!("another controller is also named {:?}", controller.name),
            ));
        }
        let same = before.iter().find(|other| {
            controller.finalizer.is_some()
                && other.finalizer == controller.finalizer
                && (other.kind().group, other.kind().kind)
                    == (controller.kind().group, controller.kind().kind)
        });
        match same {
            None => Ok(()),
            Some(other) => Err(field(
                &format!("{at}.finalizer"),
                &format!(
                    "controller {:?} uses the same finalizer on the same kind: the first of the two to finish would remove it for both",
                    other.name
                ),
            )),
        }
    }
}

impl Permission {
    fn check(&self, at: &str) -> Result<(), DescriptionError> {
        check_gvk(at, &self.gvk())?;
        if self.verbs.is_empty() {
            return Err(field(
                &format!("{at}.verbs"),
                "at least one of create, patch, delete",
            ));
        }
        if self.namespaces.len() > PERMISSIONS || self.subresources.len() > INDEXES {
            return Err(field(at, "at most 256 namespaces and 16 subresources"));
        }
        let plain = |name: &String| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        if let Some(bad) = self
            .subresources
            .iter()
            .chain(&self.namespaces)
            .find(|name| !plain(name))
        {
            return Err(field(
                at,
                &format!("{bad:?} is not the name of a subresource or namespace"),
            ));
        }
        Ok(())
    }

    /// The number of accesses that the permission stands for.
    fn accesses(&self) -> usize {
        self.verbs.len() * self.subresources.len().max(1) * self.namespaces.len().max(1)
    }
}

fn check_definition(definition: &serde_json::Value) -> Result<(), String> {
    let head = ObjectHead::parse(&definition.to_string())?;
    if head.gvk() != Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition") {
        return Err(format!(
            "{} is not CustomResourceDefinition.v1.apiextensions.k8s.io",
            head.gvk()
        ));
    }
    let text = |path: &str| definition.pointer(path).and_then(serde_json::Value::as_str);
    let (Some(plural), Some(group)) = (text("/spec/names/plural"), text("/spec/group")) else {
        return Err("spec.names.plural or spec.group is missing".into());
    };
    let wanted = format!("{plural}.{group}");
    if head.metadata.name.as_deref() == Some(&wanted) {
        Ok(())
    } else {
        Err(format!("metadata.name must be {wanted}"))
    }
}

/// The number of members that are called `pattern`, at any depth.
fn patterns(schema: &serde_json::Value) -> usize {
    match schema {
        serde_json::Value::Array(items) => items.iter().map(patterns).sum(),
        serde_json::Value::Object(members) => members
            .iter()
            .map(|(name, member)| usize::from(name == "pattern") + patterns(member))
            .sum(),
        _ => 0,
    }
}
