//! What a policy returns: effects, and what comes then. The records mirror `wit/v1/types.wit`, where their meaning is written down.

use crate::key::{Gvk, ObjectKey};
use crate::object::ObjectHead;

/// Server-side apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apply {
    /// The fields to own, as JSON.
    pub object: String,
    /// `status`, `scale`, ...; none: the object itself.
    pub subresource: Option<String>,
    /// Take over fields that others own.
    pub force: bool,
    /// May it create the object? Never the primary.
    pub create_if_absent: bool,
    /// Required `resourceVersion`.
    pub if_version: Option<String>,
}

/// How a patch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 7386.
    Merge,
    /// RFC 6902.
    Json,
}

/// A patch of an object that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The object.
    pub key: ObjectKey,
    /// `status`, `scale`, ...; none: the object itself.
    pub subresource: Option<String>,
    /// How `body` is written.
    pub kind: PatchType,
    /// The patch.
    pub body: String,
    /// Required `resourceVersion`.
    pub if_version: Option<String>,
}

/// Creates an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create {
    /// The whole object, as JSON.
    pub object: String,
}

/// What happens to dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Deleted afterwards.
    Background,
    /// Deleted before.
    Foreground,
    /// Left alone.
    Orphan,
}

impl Propagation {
    /// As `DeleteOptions.propagationPolicy` has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// Deletes an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// The object.
    pub key: ObjectKey,
    /// Required `uid`.
    pub uid: Option<String>,
    /// Required `resourceVersion`.
    pub if_version: Option<String>,
    /// What happens to dependents; none: the kind's default.
    pub propagation: Option<Propagation>,
}

/// Severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// `Normal`.
    Normal,
    /// `Warning`.
    Warning,
}

impl EventType {
    /// As the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// An Event about the turn's object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Severity.
    pub kind: EventType,
    /// Why, CamelCase.
    pub reason: String,
    /// What was done, CamelCase.
    pub action: String,
    /// For people.
    pub note: String,
    /// Another object that has to do with it.
    pub related: Option<ObjectKey>,
}

/// Something that the host is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Unknown to this host; its name.
    Other(String),
}

/// Where an effect writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its kind.
    pub kind: Gvk,
    /// Its namespace; none for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// Its name; none when the API server is to generate one.
    pub name: Option<String>,
    /// The subresource; none: the object itself.
    pub subresource: Option<String>,
}

impl Effect {
    /// Its verb, as a person calls it: `apply`, `patch`, ...
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

    /// Where it writes; none for an event. The error says what is wrong with the object that it carries.
    pub fn target(&self) -> Result<Option<Target>, String> {
        let of_key = |key: &ObjectKey, subresource: &Option<String>| Target {
            kind: key.kind.clone(),
            namespace: key.name.namespace().map(str::to_owned),
            name: Some(key.name.name())
                .filter(|name| !name.is_empty())
                .map(str::to_owned),
            subresource: subresource.clone(),
        };
        let of_object = |object: &str, subresource: &Option<String>| {
            let head = ObjectHead::parse(object)?;
            Ok::<_, String>(Target {
                kind: head.gvk(),
                namespace: head
                    .metadata
                    .namespace
                    .filter(|namespace| !namespace.is_empty()),
                name: head.metadata.name.filter(|name| !name.is_empty()),
                subresource: subresource.clone(),
            })
        };
        Ok(match self {
            Self::Apply(apply) => Some(of_object(&apply.object, &apply.subresource)?),
            Self::Create(create) => Some(of_object(&create.object, &None)?),
            Self::Patch(patch) => Some(of_key(&patch.key, &patch.subresource)),
            Self::Delete(delete) => Some(of_key(&delete.key, &None)),
            Self::Event(_) | Self::Other(_) => None,
        })
    }
}

/// What comes after the effects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Wait for a change.
    AwaitChange,
    /// Come back after so many milliseconds.
    RequeueAfterMs(u32),
    /// Come back, rate limited; no error.
    Requeue,
    /// A transient error.
    Retry(String),
    /// A terminal error.
    Fail(String),
    /// The clean-up is done.
    Finalized,
}

/// What a turn decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Carried out in order.
    pub effects: Vec<Effect>,
    /// What comes then.
    pub next: Next,
}
