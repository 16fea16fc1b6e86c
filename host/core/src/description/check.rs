//! Validation of a description. Each error has the path of the invalid field and the reason.
//!
//! This module owns what concerns a plugin as a whole, and its permissions and definitions. Its
//! siblings check one controller, watched kind, webhook or HTTP grant each. No check asks a
//! cluster.

use super::check_names::{check_gvk, check_name, field};
use super::{
    API_VERSION, ControllerDescription, Description, DescriptionError, HttpGrant, Permission,
};
use crate::key::Gvk;
use crate::object::ObjectHead;

/// Maximum number of controllers of a plugin, and of kinds in one list of a controller. Each is a
/// queue or a watch in the host.
pub(super) const MANY: usize = 64;

/// Maximum number of permissions of a plugin, and of namespaces of one permission.
const PERMISSIONS: usize = 256;

/// Maximum number of CustomResourceDefinitions that a plugin carries.
const DEFINITIONS: usize = 32;

/// Maximum number of indexes of one kind.
pub(super) const INDEXES: usize = 16;

impl Description {
    pub(super) fn check(&self) -> Result<(), DescriptionError> {
        if self.api_version != API_VERSION {
            return Err(DescriptionError::ApiVersion(self.api_version.clone()));
        }
        check_name("name", &self.name)?;
        if self.controllers.len() > MANY {
            return Err(field("controllers", "at most 64"));
        }
        for (index, controller) in self.controllers.iter().enumerate() {
            let at = format!("controllers[{index}]");
            controller.check(&at)?;
            self.check_among(&at, controller, &self.controllers[..index])?;
        }
        self.check_reviews()?;
        if self.permissions.len() > PERMISSIONS {
            return Err(field("permissions", "at most 256"));
        }
        if self.definitions().len() > DEFINITIONS {
            return Err(field("setup.customResourceDefinitions", "at most 32"));
        }
        for (index, permission) in self.permissions.iter().enumerate() {
            permission.check(&format!("permissions[{index}]"))?;
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
        HttpGrant::check_all(&self.http)
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
