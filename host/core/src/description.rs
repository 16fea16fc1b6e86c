//! What a plugin says about itself: which kinds wake its controllers, what it may do.
//!
//! One JSON document (`wit/v1/description.schema.json` publishes its schema). Unknown fields are refused by name, so that a plugin that asks for something
//! which this host cannot do is told so instead of being half obeyed.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::key::Gvk;
use crate::selector::LabelSelector;

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
    /// The plugin's own version, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// At least one.
    pub controllers: Vec<ControllerDescription>,
    /// What its effects may write. Reading and watching the kinds that its controllers name is implied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<Permission>,
}

/// One controller: a primary kind and how its keys are worked on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControllerDescription {
    /// Its name: a DNS label of at most 50 characters, unique in the plugin. Metrics and logs carry it.
    pub name: String,
    /// The kind whose objects are its keys.
    pub primary: PrimaryKind,
    /// Other kinds that it reads through `cluster.get` and `cluster.list`. They wake nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Gvk>,
    /// Keys worked on at once; `--workers` overrides it. Default 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Back-off of failing keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
}

/// The kind whose objects are a controller's keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PrimaryKind {
    /// API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Only objects with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
    /// Only objects with these fields (`metadata.name=x`; what else the kind allows).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<String>,
    /// Keep only these fields (dotted paths: `spec.status`) besides `apiVersion`, `kind` and `metadata`. Default: all. Saves memory, and time in the policy's parser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_fields: Option<Vec<String>>,
}

impl PrimaryKind {
    /// Its group, version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }
}

/// Back-off of a failing key: `base * 2^failures`, at most `cap`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Retry {
    /// First delay in milliseconds. Default 5, as client-go.
    #[serde(default = "Retry::default_base_ms")]
    pub base_ms: u32,
    /// Longest delay in milliseconds. Default 1,000,000, as client-go.
    #[serde(default = "Retry::default_cap_ms")]
    pub cap_ms: u32,
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

/// Controllers of a plugin, and kinds that one of them reads: each is a queue or a watch of the host's.
const MANY: usize = 64;

/// Longest name: the field manager `vmhost/<plugin>/<controller>` may have 128 characters.
const NAME_MAX: usize = 50;

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

    fn check(&self) -> Result<(), DescriptionError> {
        if self.api_version != API_VERSION {
            return Err(DescriptionError::ApiVersion(self.api_version.clone()));
        }
        check_name("name", &self.name)?;
        if !(1..=MANY).contains(&self.controllers.len()) {
            return Err(field(
                "controllers",
                "a plugin has from 1 to 64 controllers",
            ));
        }
        let mut names = HashSet::new();
        for (index, controller) in self.controllers.iter().enumerate() {
            let at = format!("controllers[{index}]");
            controller.check(&at)?;
            if !names.insert(&controller.name) {
                return Err(field(
                    &format!("{at}.name"),
                    &format!(
                        "{:?} is the name of another controller too",
                        controller.name
                    ),
                ));
            }
        }
        for (index, permission) in self.permissions.iter().enumerate() {
            permission.check(&format!("permissions[{index}]"))?;
        }
        Ok(())
    }
}

impl ControllerDescription {
    fn check(&self, at: &str) -> Result<(), DescriptionError> {
        check_name(&format!("{at}.name"), &self.name)?;
        check_gvk(&format!("{at}.primary"), &self.primary.gvk())?;
        if let Some(selector) = &self.primary.label_selector {
            LabelSelector::parse(selector)
                .map_err(|reason| field(&format!("{at}.primary.labelSelector"), &reason))?;
        }
        if let Some(selector) = &self.primary.field_selector {
            check_field_selector(selector)
                .map_err(|reason| field(&format!("{at}.primary.fieldSelector"), &reason))?;
        }
        for (index, path) in self.primary.wanted_fields.iter().flatten().enumerate() {
            if path.is_empty() || path.split('.').any(str::is_empty) {
                let at = format!("{at}.primary.wantedFields[{index}]");
                return Err(field(
                    &at,
                    &format!("{path:?} is not a dotted path such as `spec.status`"),
                ));
            }
        }
        if self.reads.len() > MANY {
            return Err(field(&format!("{at}.reads"), "at most 64 kinds"));
        }
        for (index, kind) in self.reads.iter().enumerate() {
            let at = format!("{at}.reads[{index}]");
            check_gvk(&at, kind)?;
            if *kind == self.primary.gvk() {
                return Err(field(
                    &at,
                    "it is the primary kind, which can be read anyway",
                ));
            }
        }
        if self
            .concurrency
            .is_some_and(|keys| !(1..=1024).contains(&keys))
        {
            return Err(field(&format!("{at}.concurrency"), "from 1 to 1024"));
        }
        if let Some(retry) = &self.retry
            && (retry.base_ms == 0 || retry.cap_ms < retry.base_ms)
        {
            return Err(field(
                &format!("{at}.retry"),
                "baseMs is at least 1, and capMs at least baseMs",
            ));
        }
        Ok(())
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

fn field(field: &str, reason: &str) -> DescriptionError {
    DescriptionError::Field {
        field: field.into(),
        reason: reason.into(),
    }
}

fn check_name(at: &str, name: &str) -> Result<(), DescriptionError> {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let sound = !name.is_empty()
        && name.len() <= NAME_MAX
        && name.chars().all(|c| edge(c) || c == '-')
        && name.starts_with(edge)
        && name.ends_with(edge);
    if sound {
        return Ok(());
    }
    Err(field(
        at,
        &format!("{name:?} is not a DNS label (a-z, 0-9, -) of at most {NAME_MAX} characters"),
    ))
}

fn check_gvk(at: &str, kind: &Gvk) -> Result<(), DescriptionError> {
    let version = kind.version.starts_with('v')
        && kind.version[1..].starts_with(|c: char| c.is_ascii_digit());
    if !version
        || !kind
            .version
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    {
        return Err(field(
            &format!("{at}.version"),
            &format!(
                "{:?} is not an API version such as v1 or v1beta1",
                kind.version
            ),
        ));
    }
    if !kind.kind.starts_with(|c: char| c.is_ascii_uppercase())
        || !kind.kind.chars().all(|c| c.is_ascii_alphanumeric())
    {
        return Err(field(
            &format!("{at}.kind"),
            &format!(
                "{:?} is not a kind: singular CamelCase, such as VirtualMachine",
                kind.kind
            ),
        ));
    }
    if !kind
        .group
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.'))
    {
        return Err(field(
            &format!("{at}.group"),
            &format!(
                "{:?} is not an API group such as apps or cloud.waibizi.com",
                kind.group
            ),
        ));
    }
    Ok(())
}

/// `path=value`, `path==value` or `path!=value`, joined by commas. Which paths a kind allows only the API server knows.
fn check_field_selector(selector: &str) -> Result<(), String> {
    for part in selector.split(',') {
        let path = part
            .split_once("!=")
            .or_else(|| part.split_once('='))
            .map(|(path, _)| path.trim());
        if path.is_none_or(str::is_empty) {
            return Err(format!("{part:?} is not of the form `metadata.name=x`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    const VM: &str = r#"{"apiVersion":"vmhost/v1","name":"vm","controllers":[{"name":"vm","primary":{"group":"cloud.waibizi.com","version":"v1","kind":"VirtualMachine"}}]}"#;

    #[test]
    fn the_smallest_description_is_enough() {
        let description = Description::parse(VM).unwrap();
        assert_eq!(description.field_manager("vm"), "vmhost/vm/vm");
        assert_eq!(
            description.controllers[0].primary.gvk().to_string(),
            "VirtualMachine.v1.cloud.waibizi.com"
        );
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for (from, to, names) in [
            ("vmhost/v1", "vmhost/v9", "apiVersion is \"vmhost/v9\""),
            (
                "\"kind\":\"VirtualMachine\"",
                "\"kind\":\"\"",
                "controllers[0].primary.kind",
            ),
            (
                "\"kind\":\"VirtualMachine\"",
                "\"kind\":\"virtual machines\"",
                "controllers[0].primary.kind",
            ),
            (
                "\"version\":\"v1\"",
                "\"version\":\"1\"",
                "controllers[0].primary.version",
            ),
            (
                "\"version\":\"v1\"",
                "\"version\":\"v1\",\"labelSelector\":\"a in (\"",
                "controllers[0].primary.labelSelector",
            ),
            (
                "\"version\":\"v1\"",
                "\"version\":\"v1\",\"fieldSelector\":\"name\"",
                "controllers[0].primary.fieldSelector",
            ),
            (
                "\"version\":\"v1\"",
                "\"version\":\"v1\",\"wantedFields\":[\"spec..x\"]",
                "controllers[0].primary.wantedFields[0]",
            ),
            (
                "\"name\":\"vm\",\"primary\"",
                "\"primary\":{},\"primary\"",
                "missing field `version`",
            ),
            (
                "}]}",
                "},{\"name\":\"vm\",\"primary\":{\"version\":\"v1\",\"kind\":\"Pod\"}}]}",
                "controllers[1].name",
            ),
            ("}]}", ",\"owns\":[]}]}", "unknown field `owns`"),
            ("}]}", ",\"concurrency\":0}]}", "controllers[0].concurrency"),
            (
                "}]}",
                "}],\"permissions\":[{\"version\":\"v1\",\"kind\":\"Pod\",\"verbs\":[]}]}",
                "permissions[0].verbs",
            ),
            (
                "}]}",
                "}],\"permissions\":[{\"version\":\"v1\",\"kind\":\"Pod\",\"verbs\":[\"watch\"]}]}",
                "unknown variant `watch`",
            ),
            (
                "\"name\":\"vm\",\"controllers\"",
                "\"name\":\"VM 1\",\"controllers\"",
                "name: \"VM 1\"",
            ),
            ("[{", "[", "did not return"),
        ] {
            let text = VM.replacen(from, to, 1);
            let error = Description::parse(&text).unwrap_err();
            let shown = format!(
                "{error} {}",
                error.source().map(ToString::to_string).unwrap_or_default()
            );
            assert!(shown.contains(names), "{shown} does not name {names}");
        }
    }

    #[test]
    fn two_primaries_are_refused() {
        let text = VM.replacen(
            "}}]",
            "},\"primary\":{\"version\":\"v1\",\"kind\":\"Pod\"}}]",
            1,
        );
        let error = Description::parse(&text).unwrap_err();
        assert!(
            error
                .source()
                .unwrap()
                .to_string()
                .contains("duplicate field `primary`")
        );
    }

    /// The published schema and the types name the same fields.
    #[test]
    fn the_published_schema_has_every_field() {
        let schema: serde_json::Value =
            serde_json::from_str(include_str!("../../../wit/v1/description.schema.json")).unwrap();
        let retry = Retry::default();
        let full = Description {
            api_version: API_VERSION.into(),
            name: "n".into(),
            version: "1".into(),
            controllers: vec![ControllerDescription {
                name: "n".into(),
                primary: PrimaryKind {
                    group: "g".into(),
                    version: "v1".into(),
                    kind: "K".into(),
                    label_selector: Some("a".into()),
                    field_selector: Some("a=b".into()),
                    wanted_fields: Some(vec!["a".into()]),
                },
                reads: vec![Gvk::new("g", "v1", "L")],
                concurrency: Some(1),
                retry: Some(retry),
            }],
            permissions: vec![Permission {
                group: "g".into(),
                version: "v1".into(),
                kind: "K".into(),
                verbs: vec![Verb::Create],
                subresources: vec!["s".into()],
                namespaces: vec!["n".into()],
            }],
        };
        let value = serde_json::to_value(full).unwrap();
        let fields = |value: &serde_json::Value| {
            value
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        };
        let defs = &schema["$defs"];
        for (of, published) in [
            (&value, &schema["properties"]),
            (&value["controllers"][0], &defs["controller"]["properties"]),
            (
                &value["controllers"][0]["primary"],
                &defs["primary"]["properties"],
            ),
            (
                &value["controllers"][0]["reads"][0],
                &defs["gvk"]["properties"],
            ),
            (
                &value["controllers"][0]["retry"],
                &defs["retry"]["properties"],
            ),
            (&value["permissions"][0], &defs["permission"]["properties"]),
        ] {
            assert_eq!(fields(of), fields(published));
        }
    }
}
