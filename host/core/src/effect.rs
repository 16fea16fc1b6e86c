//! What a plugin returns: effects, and what happens next. The records mirror `wit/v1/types.wit`,
//! which defines their meaning. The enums with serde derives have the format of a plugin's test
//! cases. This module must not know how an effect is carried out.

use serde::{Deserialize, Serialize};

use crate::key::{ObjectKey, ObjectName};
use crate::object::ObjectHead;

/// Server-side apply.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Apply {
    /// The fields to own, as JSON.
    pub object: String,
    /// `status`, `scale`, ...; `None` for the object itself.
    pub subresource: Option<String>,
    /// Whether to take over fields that others own.
    pub force: bool,
    /// Whether the apply may create the object. It never creates the primary.
    pub create_if_absent: bool,
    /// Required `resourceVersion`.
    pub if_version: Option<String>,
}

/// The format of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PatchType {
    /// RFC 7386.
    Merge,
    /// RFC 6902.
    Json,
}

/// A patch of an object that exists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Patch {
    /// The object.
    pub key: ObjectKey,
    /// `status`, `scale`, ...; `None` for the object itself.
    pub subresource: Option<String>,
    /// The format of `body`.
    pub kind: PatchType,
    /// The patch.
    pub body: String,
    /// Required `resourceVersion`.
    pub if_version: Option<String>,
}

/// Creates an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Create {
    /// The whole object, as JSON.
    pub object: String,
}

/// What happens to dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Propagation {
    /// Dependents are deleted after the object.
    Background,
    /// Dependents are deleted before the object.
    Foreground,
    /// Dependents stay.
    Orphan,
}

impl Propagation {
    /// The value of `DeleteOptions.propagationPolicy`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// Deletes an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Delete {
    /// The object.
    pub key: ObjectKey,
    /// Required `uid`.
    pub uid: Option<String>,
    /// Required `resourceVersion`.
    pub if_version: Option<String>,
    /// What happens to dependents; `None` for the kind's default.
    pub propagation: Option<Propagation>,
}

/// Severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventType {
    /// `Normal`.
    Normal,
    /// `Warning`.
    Warning,
}

impl EventType {
    /// The value of the Event's `type`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// An Event about the turn's object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Severity.
    pub kind: EventType,
    /// Why the Event is recorded, in CamelCase.
    pub reason: String,
    /// What was done, in CamelCase.
    pub action: String,
    /// A message for people.
    pub note: String,
    /// Another object that is involved.
    pub related: Option<ObjectKey>,
}

/// Something that the contract has no case for. A plugin answers reviews with it; as an effect of a
/// controller's turn it is `in-cluster`, or refused by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Other {
    /// What is wanted.
    pub name: String,
    /// Its arguments, as JSON.
    pub body: String,
}

impl Other {
    /// The name of an effect in the cluster that its body names.
    pub const IN_CLUSTER: &str = "in-cluster";
}

/// Something that the host does for a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Server-side apply.
    Apply(Apply),
    /// JSON merge patch or JSON patch.
    Patch(Patch),
    /// Create.
    Create(Create),
    /// Delete.
    Delete(Delete),
    /// Record an Event.
    Event(Event),
    /// Something else, by name.
    Other(Other),
}

impl Effect {
    /// The effect's verb for messages: `apply`, `patch`, ...
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Apply(_) => "apply",
            Self::Patch(_) => "patch",
            Self::Create(_) => "create",
            Self::Delete(_) => "delete",
            Self::Event(_) => "event",
            Self::Other(_) => "other",
        }
    }

    /// The object that the effect writes, with an empty name if the API server generates the name;
    /// `None` for an Event. The error says why the effect's object is invalid.
    pub fn key(&self) -> Result<Option<ObjectKey>, String> {
        let of_object = |object: &str| -> Result<Option<ObjectKey>, String> {
            let head = ObjectHead::parse(object)?;
            let metadata = &head.metadata;
            let name = metadata.name.as_deref().unwrap_or_default();
            Ok(Some(ObjectKey {
                kind: head.gvk(),
                name: ObjectName::new(metadata.namespace.as_deref(), name),
            }))
        };
        match self {
            Self::Apply(apply) => of_object(&apply.object),
            Self::Create(create) => of_object(&create.object),
            Self::Patch(patch) => Ok(Some(patch.key.clone())),
            Self::Delete(delete) => Ok(Some(delete.key.clone())),
            Self::Event(_) | Self::Other(_) => Ok(None),
        }
    }

    /// The bytes of its texts: the object, the patch, the message, and names, which a plugin may
    /// make as long as it likes.
    pub fn text_bytes(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let key = ObjectKey::text_bytes;
        let own = match self {
            Self::Apply(apply) => apply.object.len() + text(&apply.if_version),
            Self::Patch(patch) => key(&patch.key) + patch.body.len() + text(&patch.if_version),
            Self::Create(create) => create.object.len(),
            Self::Delete(delete) => key(&delete.key) + text(&delete.uid) + text(&delete.if_version),
            Self::Event(event) => {
                let related = event.related.as_ref().map_or(0, key);
                event.note.len() + event.reason.len() + event.action.len() + related
            }
            Self::Other(other) => other.name.len() + other.body.len(),
        };
        own + self.subresource().map_or(0, str::len)
    }

    /// The subresource that the effect writes; `None` for the object itself.
    pub fn subresource(&self) -> Option<&str> {
        match self {
            Self::Apply(apply) => apply.subresource.as_deref(),
            Self::Patch(patch) => patch.subresource.as_deref(),
            Self::Create(_) | Self::Delete(_) | Self::Event(_) | Self::Other(_) => None,
        }
    }
}

/// What happens after the effects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Next {
    /// Wait for a change of the object.
    AwaitChange,
    /// Run another turn after this many milliseconds.
    RequeueAfterMs(u32),
    /// Run another turn, rate limited; not a failure.
    Requeue,
    /// A transient failure: retry with backoff.
    Retry(String),
    /// A terminal failure: report it and wait for a change.
    Fail(String),
    /// The clean-up is done: the host removes the finalizer.
    Finalized,
}

/// The result of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The effects, carried out in order.
    pub effects: Vec<Effect>,
    /// What happens after the effects.
    pub next: Next,
}
