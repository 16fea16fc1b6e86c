//! One request that changes an object, and its outcome.
//!
//! Owns the parameters that these requests share, and how their author is recorded. Must not know
//! HTTP, or the order of the steps.

use std::sync::Arc;

use serde_json::Value;
use vmhost_merge::{Manager, RESET_MAIN, RESET_STATUS, track_scale, track_update};

use crate::decode::Twice;
use crate::kinds::{Fill, Target};
use crate::object::{Key, Object, Shown, Stored};
use crate::questions::Questions;
use crate::refuse;
use crate::request::Options;
use crate::state::Inner;
use crate::status::ApiError;

/// The groups whose kinds also take metadata from a write to their status.
const OPEN: [&str; 5] = ["", "apps", "autoscaling", "batch", "policy"];

/// The subresources under whose names ownership is recorded, beside status and scale.
const RECORDED: [&str; 3] = ["approval", "ephemeralcontainers", "resize"];

/// The endpoint through which an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Main,
    Status,
    Scale,
}

/// A request that changes an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub target: &'a Target,
    /// Empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// Empty if the body names the object.
    pub name: &'a str,
    pub door: Door,
    /// The subresource in the path; empty for the object itself.
    pub part: &'a str,
    pub options: &'a Options,
    /// The field manager of the request, or the client's name.
    pub manager: &'a str,
    pub now: &'a str,
    /// Whether the request is a patch, which has other texts for strict validation.
    pub is_patch: bool,
    /// The fields that the body gives twice.
    pub duplicates: &'a [Twice],
    /// The body, if it was read.
    pub body: Option<&'a [u8]>,
    /// What the request asks of webhooks.
    pub questions: &'a Questions,
}

/// The answer to a write: the object in the version of the request, or in the stored one if a
/// webhook has to convert it.
#[derive(Debug)]
pub(crate) struct Done {
    pub code: u16,
    pub object: Object,
    pub warnings: Vec<String>,
}

impl Done {
    /// Returns the answer with these warnings before its own.
    pub fn warned(mut self, mut warnings: Vec<String>) -> Self {
        warnings.append(&mut self.warnings);
        Self { warnings, ..self }
    }
}

impl Call<'_> {
    pub fn key(&self) -> Key {
        Key::new(self.namespace, self.name)
    }

    /// Returns the object of the request, as it is stored.
    pub fn live(&self, inner: &Inner) -> Result<Object, ApiError> {
        let found = inner.store.get(&self.target.kind.storage, &self.key());
        found.ok_or_else(|| refuse::not_found(self.target, self.name))
    }

    /// Returns a stored object in the version of the request.
    pub fn view(&self, stored: &Object) -> Result<Object, ApiError> {
        match self.target.is_foreign(stored) {
            true => self.questions.convert(self.target, stored, true),
            false => Ok(self.target.view(stored)),
        }
    }

    /// Returns a stored object in the version of the request. One that needs no change is not read.
    pub fn show(&self, stored: &Stored) -> Result<Shown, ApiError> {
        match self.target.is_as_stored(stored) {
            true => Ok(Shown::Stored(stored.clone())),
            false => Ok(Shown::Made(self.view(&stored.object())?)),
        }
    }

    /// Returns an object of the request's version in the version in which it is stored.
    pub fn store(&self, new: Value) -> Result<Value, ApiError> {
        let to = match self.target.kind.conversion {
            Some(_) => self.target.stored(),
            None => return Ok(self.target.store(new)),
        };
        if !to.is_foreign(&new) {
            return Ok(new);
        }
        let stored = self.questions.convert(&to, &Arc::new(new), false)?;
        Ok(Value::clone(&stored))
    }

    /// Returns an object that was just stored in the version of the request, unless a webhook has
    /// to convert it: then it is converted when it is shown.
    pub fn outcome(&self, stored: Object) -> Object {
        match self.target.is_foreign(&stored) {
            true => stored,
            false => self.target.view(&stored),
        }
    }

    /// Returns the fields that this endpoint leaves unchanged. In some groups, a write to a status
    /// also changes metadata: `strategy.go` of these kinds resets only the spec.
    pub fn reset(&self) -> &'static [&'static str] {
        let kind = &self.target.kind;
        if kind.fill == Fill::SigningRequest {
            return match (self.door, self.part) {
                (Door::Status, "approval") => &["spec", "status.certificate"],
                (Door::Status, _) => &["spec", "status.conditions"],
                (Door::Main | Door::Scale, _) => &["spec", "status"],
            };
        }
        let is_open = !kind.custom
            && (OPEN.contains(&kind.group.as_str())
                || (kind.group == "networking.k8s.io" && kind.kind == "Ingress"));
        match self.door {
            Door::Status if !is_open => RESET_STATUS,
            Door::Status => match kind.kind.as_str() {
                "Deployment" => &["spec", "metadata.labels"],
                "Pod" => &["spec", "metadata.ownerReferences"],
                _ => &["spec"],
            },
            Door::Main | Door::Scale if self.target.version().status => RESET_MAIN,
            Door::Main | Door::Scale => &[],
        }
    }

    /// Returns the name under which ownership is recorded.
    pub fn subresource(&self) -> &'static str {
        if let Some(part) = RECORDED.into_iter().find(|part| *part == self.part) {
            return part;
        }
        match self.door {
            Door::Main => "",
            Door::Status => "status",
            Door::Scale => "scale",
        }
    }

    /// Returns the author of the request. `api_version` is that of the target.
    pub fn author<'a>(&'a self, api_version: &'a str) -> Manager<'a> {
        Manager {
            name: self.manager,
            api_version,
            subresource: self.subresource(),
            reset: self.reset(),
            empty: self.target.version().empty.as_ref(),
        }
    }

    /// Records what the author of the request changed.
    pub fn track(&self, live: Option<&Value>, new: &mut Value) {
        let api_version = self.target.api_version();
        let manager = self.author(&api_version);
        let scale = self.target.version().scale.as_ref();
        let replicas = scale.and_then(|scale| scale.spec.fields());
        if let (Door::Scale, Some(live), Some(replicas)) = (self.door, live, replicas) {
            track_scale(live, new, &replicas, &manager);
            return;
        }
        track_update(self.target.schema(), live, new, &manager, self.now);
    }
}
