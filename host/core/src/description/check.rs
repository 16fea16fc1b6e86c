//! Validation of a description. Each error has the path of the invalid field and the reason.

use std::collections::HashSet;

use super::{
    API_VERSION, ControllerDescription, Description, DescriptionError, HttpGrant, Permission,
    Retry, Role, Timer, Watched,
};
use crate::key::Gvk;
use crate::object::ObjectHead;

/// Maximum number of controllers of a plugin, and of kinds in one list of a controller. Each is a
/// queue or a watch in the host.
const MANY: usize = 64;

/// Maximum number of permissions of a plugin, and of namespaces of one permission.
const PERMISSIONS: usize = 256;

/// Maximum number of CustomResourceDefinitions that a plugin carries.
const DEFINITIONS: usize = 32;

/// Maximum number of indexes of one kind.
pub(super) const INDEXES: usize = 16;

/// Maximum length of a name: the field manager `vmhost/<plugin>/<controller>` may have 128
/// characters.
const NAME_MAX: usize = 50;

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

impl ControllerDescription {
    fn check(&self, at: &str) -> Result<(), DescriptionError> {
        check_name(&format!("{at}.name"), &self.name)?;
        self.check_trigger(at)?;
        let mut once: HashSet<Gvk> = HashSet::new();
        let mut index = 0;
        let mut last = None;
        for (role, watched) in self.kinds() {
            index = if last == Some(role) { index + 1 } else { 0 };
            last = Some(role);
            let at = match role {
                Role::Primary => format!("{at}.primary"),
                Role::Owned => format!("{at}.owns[{index}]"),
                Role::Watched => format!("{at}.watches[{index}]"),
                Role::Read => format!("{at}.reads[{index}]"),
            };
            if index >= MANY {
                return Err(field(&at, "at most 64 kinds"));
            }
            watched.check(&at, role, self.primary.as_ref())?;
            let again = !once.insert(watched.gvk());
            self.check_twice(&at, role, watched, again)?;
        }
        self.clusters.check(at)?;
        self.check_numbers(at)?;
        self.check_names(at)
    }

    fn check_trigger(&self, at: &str) -> Result<(), DescriptionError> {
        match (&self.primary, &self.timer) {
            (None, None) => Err(field(
                at,
                "neither primary nor timer is set: nothing would wake the controller",
            )),
            (Some(_), Some(_)) => Err(field(
                &format!("{at}.timer"),
                "primary and timer exclude each other: split this into two controllers",
            )),
            (None, Some(timer)) => self.check_timer(at, *timer),
            (Some(_), None) => Ok(()),
        }
    }

    fn check_timer(&self, at: &str, timer: Timer) -> Result<(), DescriptionError> {
        if timer == Timer::EveryMs(0) {
            return Err(field(&format!("{at}.timer.everyMs"), "at least 1"));
        }
        if timer == Timer::Once(false) {
            return Err(field(
                &format!("{at}.timer.once"),
                "must be true: to have no timer, remove the field",
            ));
        }
        let pointless = [
            ("owns", !self.owns.is_empty()),
            ("watches", !self.watches.is_empty()),
            ("finalizer", self.finalizer.is_some()),
            ("previous", self.previous),
        ];
        match pointless.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((name, _)) => Err(field(
                &format!("{at}.{name}"),
                "not allowed with a timer: the controller has no primary kind",
            )),
        }
    }

    /// Rejects a kind that a controller lists twice, because the entries could contradict each
    /// other.
    fn check_twice(
        &self,
        at: &str,
        role: Role,
        watched: &Watched,
        again: bool,
    ) -> Result<(), DescriptionError> {
        if !again {
            return Ok(());
        }
        let primary = self.primary.as_ref().map(Watched::gvk) == Some(watched.gvk());
        match role {
            Role::Read => Err(field(
                at,
                "the controller already watches this kind, so it can read it: remove it from reads",
            )),
            Role::Owned if primary => Err(field(
                at,
                "this is the primary kind: if its objects own each other, list it in watches with \"map\": \"controller\"",
            )),
            Role::Owned => Err(field(at, "the kind is listed twice in owns")),
            Role::Primary | Role::Watched => Ok(()),
        }
    }

    fn check_numbers(&self, at: &str) -> Result<(), DescriptionError> {
        if self
            .concurrency
            .is_some_and(|keys| !(1..=1024).contains(&keys))
        {
            return Err(field(&format!("{at}.concurrency"), "from 1 to 1024"));
        }
        match &self.retry {
            Some(retry) => retry.check(&format!("{at}.retry")),
            None => Ok(()),
        }
    }

    fn check_names(&self, at: &str) -> Result<(), DescriptionError> {
        if let Some(finalizer) = &self.finalizer {
            check_finalizer(finalizer)
                .map_err(|reason| field(&format!("{at}.finalizer"), &reason))?;
        }
        match &self.event_source {
            Some(source) if !is_qualified(source, 63) => Err(field(
                &format!("{at}.eventSource"),
                &format!(
                    "{source:?} is not a qualified name: at most 63 letters, digits, -, _ or dots, with an optional domain and slash before them"
                ),
            )),
            _ => Ok(()),
        }
    }
}

impl Retry {
    fn check(&self, at: &str) -> Result<(), DescriptionError> {
        if self.base_ms == 0 || self.cap_ms < self.base_ms {
            return Err(field(
                at,
                "baseMs must be at least 1, and capMs at least baseMs",
            ));
        }
        if self.max_retries.is_some_and(|retries| retries > 1000) {
            return Err(field(&format!("{at}.maxRetries"), "at most 1000"));
        }
        match &self.bucket {
            Some(bucket) if bucket.per_second == 0 || bucket.burst == 0 => Err(field(
                &format!("{at}.bucket"),
                "perSecond and burst must be at least 1",
            )),
            _ => Ok(()),
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

/// Checks for the form `domain/name`: the API server rejects other forms, and a name without a
/// domain could collide.
fn check_finalizer(finalizer: &str) -> Result<(), String> {
    let domain = finalizer.split_once('/').map(|(domain, _)| domain);
    if domain.is_some_and(|domain| domain.contains('.')) && is_qualified(finalizer, 63) {
        return Ok(());
    }
    Err(format!(
        "{finalizer:?} is not of the form domain/name, such as example.com/cleanup"
    ))
}

/// Returns whether the text is a Kubernetes qualified name: an optional DNS prefix with a slash,
/// and a name.
pub(super) fn is_qualified(text: &str, name_max: usize) -> bool {
    let (prefix, name) = text
        .split_once('/')
        .map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let edge = |c: char| c.is_ascii_alphanumeric();
    let sound = |part: &str, inner: &str| {
        !part.is_empty()
            && part.starts_with(edge)
            && part.ends_with(edge)
            && part.chars().all(|c| edge(c) || inner.contains(c))
    };
    name.len() <= name_max
        && sound(name, "-_.")
        && prefix.is_none_or(|prefix| prefix.len() <= 253 && sound(prefix, "-."))
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

pub(super) fn field(field: &str, reason: &str) -> DescriptionError {
    DescriptionError::Field {
        field: field.into(),
        reason: reason.into(),
    }
}

pub(super) fn check_name(at: &str, name: &str) -> Result<(), DescriptionError> {
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

pub(super) fn check_gvk(at: &str, kind: &Gvk) -> Result<(), DescriptionError> {
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
