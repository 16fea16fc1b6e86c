//! The input of a recorder, and the observer of what happens to it.

use vmhost_core::{EventType, Gvk, ObjectName};

/// An object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectRef {
    /// The object's kind.
    pub kind: Gvk,
    /// The object's namespace and name.
    pub name: ObjectName,
    /// The object's uid, if known.
    pub uid: Option<String>,
    /// The object's resource version, if known. Ignored when events are compared.
    pub version: Option<u64>,
}

/// Who has something to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Author {
    /// The host, about the plugin.
    Host,
    /// The plugin: its Warnings are limited, too.
    Plugin,
}

/// An event to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// The object that the event is about.
    pub regarding: ObjectRef,
    /// Another object that is involved.
    pub related: Option<ObjectRef>,
    /// Who asks for the event.
    pub author: Author,
    /// Severity.
    pub kind: EventType,
    /// Why the event is recorded, in CamelCase.
    pub reason: String,
    /// What was done, in CamelCase.
    pub action: String,
    /// A message for people; cut at 1,024 bytes. Another note is another event, up to ten that
    /// differ in nothing else.
    pub note: String,
    /// `vmhost/<plugin>/<controller>`. The API allows one slash, so further ones become dots.
    pub reporting_controller: String,
}

/// Counts the outcome of events. Implementations must be quick.
pub trait EventObserver: Send + Sync {
    /// An event was dropped: there was no room, or no time at the end.
    fn dropped(&self) {}
    /// An Event was over the plugin's limit.
    fn limited(&self) {}
    /// An event was written, as a new event or as a series.
    fn recorded(&self) {}
    /// A write was given up, for this reason.
    fn failed(&self, _reason: &str) {}
}

/// An observer that counts nothing.
#[derive(Debug)]
pub struct NoEventObserver;

impl EventObserver for NoEventObserver {}
