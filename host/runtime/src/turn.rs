//! From a key to its decision: get, call, settle, done.
//!
//! ```text
//! worker: get -> Turn (what the stores show) -> call -> effects: check, write, wait until the stores show it
//!                                                         `-> conclude: decide, remember, tell -> finish
//! ```

use std::sync::Arc;
use std::time::Duration;

use vmhost_cluster::{ObjectRef, RecordedEvent};
use vmhost_core::{
    Event, EventType, Gvk, ListQuery, LiveRead, ObjectName, ObjectReader, Page, ReadError, Snapshot,
};

use crate::controller::Controller;
use crate::deploy::slot::Generation;
use crate::observe::log::reconcile::Reconcile;
use crate::wake::sources::Sources;

pub mod conclude;
pub mod decide;
pub mod effects;
pub mod finalizer;
pub mod map;
pub mod verdict;
pub mod worker;

/// One turn of one key: what it saw, and what it works with.
pub struct Turn {
    /// What it works with, from get to done.
    pub desk: Arc<Desk>,
    /// The key.
    pub key: ObjectName,
    /// What log lines say of it.
    pub reconcile: Arc<Reconcile>,
    /// The snapshot. Without one, the object is gone.
    pub object: Option<Snapshot>,
    /// What the last successful turn saw, if the controller asks for that.
    pub previous: Option<Snapshot>,
    /// It is being deleted, and waits for the policy's clean-up.
    pub deleting: bool,
    /// Another object has the name by now: this turn tells that the old one is gone, the next one
    /// shows the new one.
    pub replaced: bool,
}

/// What a worker's turns share: the generation, the controller and its stores.
///
/// It is the worker's own, and taken anew when the generation has changed. A turn takes a handful
/// of references to these three; counted where all workers count, they would cost two cores more
/// than the turn does. Two lines of memory, since processors fetch them in pairs.
#[repr(align(128))]
pub struct Desk {
    /// The generation.
    pub generation: Arc<Generation>,
    /// The controller.
    pub controller: Arc<Controller>,
    /// The generation's stores.
    pub sources: Arc<Sources>,
    /// The controller's name in log lines.
    pub label: Arc<str>,
}

/// Longest sleep of a worker whose plugin's circuit breaker is open.
pub const PAUSE_STEP: Duration = Duration::from_millis(100);

/// How often a standby's tasks look whether they are still wanted.
pub const STANDBY_STEP: Duration = Duration::from_secs(10);

impl Turn {
    /// The key's turn, with what the stores show now, never with what an event brought.
    pub fn new(desk: Arc<Desk>, key: ObjectName) -> Self {
        let object = desk.sources.snapshot(&key);
        let previous = desk
            .sources
            .description()
            .previous
            .then(|| desk.controller.memory.previous(&key))
            .flatten();
        let replaced =
            matches!((&previous, &object), (Some(old), Some(new)) if old.uid() != new.uid());
        let number = desk.generation.number;
        Self {
            reconcile: Reconcile::new(desk.label.clone(), number, key.clone()),
            desk,
            key,
            object: object.filter(|_| !replaced),
            previous,
            deleting: false,
            replaced,
        }
    }

    /// Tells people, in an Event about the turn's object.
    pub fn warn(&self, reason: &str, note: String) {
        self.record(&Event {
            kind: EventType::Warning,
            reason: reason.into(),
            action: "Reconcile".into(),
            note,
            related: None,
        });
    }

    /// Hands an Event about the turn's object to the recorder. It never fails a turn.
    pub fn record(&self, event: &Event) {
        let controller = &self.desk.controller;
        let cut = |text: &str| text.chars().take(128).collect::<String>();
        // A guest may return megabytes; a recorder's queue is long.
        let related = event
            .related
            .as_ref()
            .filter(|key| key.kind.kind.len() < 256 && key.name.as_str().len() < 512);
        let recorder = &self.desk.generation.share.recorder;
        recorder.record(RecordedEvent {
            regarding: ObjectRef {
                kind: controller.kind.clone(),
                name: self.key.clone(),
                uid: self.object.as_ref().map(|object| object.uid().to_owned()),
                version: self.object.as_ref().map(|object| object.version),
            },
            related: related.map(|key| ObjectRef {
                kind: key.kind.clone(),
                name: key.name.clone(),
                uid: None,
                version: None,
            }),
            kind: event.kind,
            reason: cut(&event.reason),
            action: cut(if event.action.is_empty() {
                &event.reason
            } else {
                &event.action
            }),
            note: vmhost_core::cut(&event.note, 1024).to_owned(),
            reporting_controller: self
                .desk
                .sources
                .description()
                .event_source
                .clone()
                .unwrap_or_else(|| controller.field_manager.clone()),
        });
    }
}

impl Desk {
    /// Returns nothing if this generation has no such controller.
    pub fn new(generation: Arc<Generation>, controller: &Arc<Controller>) -> Option<Arc<Self>> {
        let sources = generation.sources(controller)?.clone();
        Some(Arc::new(Self {
            generation,
            controller: controller.clone(),
            sources,
            label: Arc::from(&*controller.label),
        }))
    }
}

impl ObjectReader for Desk {
    fn get(&self, kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError> {
        self.sources.get(kind, name)
    }

    fn list(&self, query: &ListQuery) -> Result<Page, ReadError> {
        self.sources.list(query)
    }

    fn get_live(&self, kind: Gvk, name: ObjectName) -> LiveRead<Option<Snapshot>> {
        self.sources.get_live(kind, name)
    }

    fn list_live(&self, query: ListQuery) -> LiveRead<Page> {
        self.sources.list_live(query)
    }
}
