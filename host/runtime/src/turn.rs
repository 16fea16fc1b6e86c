//! Runs the turn of a key: get, call, settle, done.
//!
//! ```text
//! worker        get a key from the workqueue
//!   |
//! Turn::new     read the object's snapshot from the store
//!   |
//! finalizer     decide: add our finalizer first, call the plugin, or leave the object alone
//!   |
//! worker        call the plugin (`reconcile`) -> outcome: effects and what comes next
//!   |
//! effects       check the grants, send the writes, wait until the stores show them
//!   |             `- verdict: classify a refused write (conflict, forbidden, retry, ...)
//! conclude      update the key's memory, metrics, log and Events
//!   |             `- decide: forget the key, requeue it, or retry it with back-off
//! worker        done: hand the key and the decision back to the workqueue
//! ```
//! `map` runs beside the turns: it calls the plugin's `map-changes`, which maps changes of watched
//! objects to keys. All decisions ([`finalizer`], [`verdict`], [`decide`]) are pure functions. This
//! module must not know how a plugin is loaded or swapped.

use std::sync::Arc;
use std::time::Duration;

use vmhost_cluster::{Author, ObjectRef, RecordedEvent};
use vmhost_core::{
    Event, EventType, Gvk, HttpAnswer, HttpCall, HttpError, HttpTurn, ListQuery, LiveRead,
    ObjectName, ObjectReader, Page, ReadError, Snapshot,
};
use vmhost_engine::Plugin;
use vmhost_otlp::Tracer;

use crate::canary::Canary;
use crate::canary::part::Part;
use crate::controller::Controller;
use crate::deploy::branch::Branch;
use crate::deploy::breaker::Breaker;
use crate::deploy::slot::Generation;
use crate::journal::record::Origin;
use crate::journal::record::withheld::Configured;
use crate::observe::log::reconcile::Reconcile;
use crate::observe::trace::TurnTrace;
use crate::outgoing::Fence;
use crate::shadow::job::Live;
use crate::wake::sources::Sources;

pub mod conclude;
pub mod decide;
pub(crate) mod desks;
pub(crate) mod draft;
pub mod effects;
pub mod finalizer;
pub(crate) mod map;
mod spans;
pub mod verdict;
pub(crate) mod worker;

/// One turn of one key: the snapshots that it saw, and the desk that it works at.
pub struct Turn {
    /// The generation, controller and stores of this turn.
    pub(crate) desk: Arc<Desk>,
    /// The key.
    pub(crate) key: ObjectName,
    /// The fields of the turn's log lines.
    pub(crate) reconcile: Arc<Reconcile>,
    /// The snapshot of the object. `None` if it is deleted.
    pub(crate) object: Option<Snapshot>,
    /// The snapshot of the last successful turn, if the controller asks for it.
    pub(crate) previous: Option<Snapshot>,
    /// The object is being deleted and waits for the plugin's clean-up.
    pub(crate) deleting: bool,
    /// Another object has taken over the name. This turn shows that the old object is gone; the
    /// next turn shows the new one.
    pub(crate) replaced: bool,
}

/// The parts that a worker's turns share: the generation, the controller and its stores.
///
/// Each worker has its own desk, and takes a new one when the generation changes. A turn clones a
/// handful of references to these parts; with reference counts shared by all workers, this would
/// cost two cores more than the turn itself. The alignment is two cache lines, since processors
/// fetch them in pairs.
#[repr(align(128))]
pub struct Desk {
    /// The generation.
    pub(crate) generation: Arc<Generation>,
    /// The controller.
    pub(crate) controller: Arc<Controller>,
    /// The generation's stores.
    pub sources: Arc<Sources>,
    /// The controller's label in log lines.
    pub(crate) label: Arc<str>,
    /// What the records of all turns of this desk share.
    pub(crate) origin: Arc<Origin>,
    /// The desk's side of a canary, while one runs.
    pub(crate) part: Option<Part>,
    /// What they share in a member cluster. `None` at home.
    pub(crate) branch: Option<Arc<Branch>>,
    /// The generation that has the plugin's controllers in member clusters: this one, or the live
    /// one if this is a candidate, which has none there.
    pub(crate) seated: Arc<Generation>,
}

/// The longest sleep of a worker whose plugin's circuit breaker is open.
pub(crate) const PAUSE_STEP: Duration = Duration::from_millis(100);

/// During a canary, a key of a version that its circuit breaker has paused is put off for at most
/// this long.
pub(crate) const PUT_OFF: Duration = Duration::from_secs(1);

/// How often a standby's tasks check that their controller is still current.
pub(crate) const STANDBY_STEP: Duration = Duration::from_secs(10);

impl Turn {
    /// Begins a turn of the key, with the current snapshot from the stores. The event that woke the
    /// key is never used.
    pub fn new(desk: Arc<Desk>, key: ObjectName) -> Self {
        let object = desk.sources.snapshot(&key);
        Self::with(desk, key, object)
    }

    /// Like [`Turn::new`], with a snapshot that was read after the key was taken.
    pub(crate) fn with(desk: Arc<Desk>, key: ObjectName, object: Option<Snapshot>) -> Self {
        let previous = desk
            .sources
            .description()
            .previous
            .then(|| desk.previous(&key))
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

    /// Lets the tracer decide whether this turn, which has not begun to run, is exported.
    pub(crate) fn trace(&mut self, tracer: &Tracer) {
        if let Some(reconcile) = Arc::get_mut(&mut self.reconcile) {
            reconcile.trace = TurnTrace::begin(tracer);
        }
    }

    /// Records a warning Event about the turn's object.
    pub(crate) fn warn(&self, reason: &str, note: String) {
        let event = Event {
            kind: EventType::Warning,
            reason: reason.into(),
            action: "Reconcile".into(),
            note,
            related: None,
        };
        self.record(&event, Author::Host);
    }

    /// Hands an Event about the turn's object to the recorder. This never fails the turn.
    pub(crate) fn record(&self, event: &Event, author: Author) {
        let controller = &self.desk.controller;
        let Some(about) = self.desk.generation.terms.about(&self.key) else {
            return;
        };
        let cut = |text: &str| text.chars().take(128).collect::<String>();
        // Texts are cut, since a guest may return megabytes and the recorder's queue is long.
        let related = event
            .related
            .as_ref()
            .filter(|key| key.kind.kind.len() < 256 && key.name.as_str().len() < 512);
        let recorder = match &self.desk.branch {
            None => &self.desk.generation.share.recorder,
            Some(branch) => &branch.recorder,
        };
        recorder.record(RecordedEvent {
            regarding: ObjectRef {
                kind: controller.kind.clone(),
                name: about,
                uid: self.object.as_ref().map(|object| object.uid().to_owned()),
                version: self.object.as_ref().map(|object| object.version),
            },
            related: related.map(|key| ObjectRef {
                kind: key.kind.clone(),
                name: key.name.clone(),
                uid: None,
                version: None,
            }),
            author,
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
    /// Returns `None` if this generation has no such controller.
    pub fn new(generation: Arc<Generation>, controller: &Arc<Controller>) -> Option<Arc<Self>> {
        let seated = generation.clone();
        Self::with(generation, controller, None, seated)
    }

    /// Like [`Desk::new`], for one side of a canary. `seated` is the live generation.
    pub(crate) fn with(
        generation: Arc<Generation>,
        controller: &Arc<Controller>,
        part: Option<Part>,
        seated: Arc<Generation>,
    ) -> Option<Arc<Self>> {
        let sources = generation.sources(controller)?;
        let branch = generation.branch(controller);
        if branch.is_none() && controller.member.is_some() {
            // The cluster was left just now. A desk without a branch is one at home.
            return None;
        }
        let label: Arc<str> = Arc::from(&*controller.label);
        Some(Arc::new(Self {
            origin: Arc::new(Origin {
                controller: label.clone(),
                kind: controller.kind.clone(),
                field_manager: controller.field_manager.clone(),
                finalizer: sources.description().finalizer.clone(),
                generation: generation.number,
                digest: generation.plugin.digest().to_owned(),
                cluster: branch
                    .as_ref()
                    .map(|branch| branch.member.settings())
                    .unwrap_or_default(),
                settings: Configured(generation.plugin.settings()),
            }),
            generation,
            controller: controller.clone(),
            sources,
            label,
            part,
            branch,
            seated,
        }))
    }

    /// The circuit breaker that pauses the turns of this desk.
    pub(crate) fn breaker(&self) -> &Breaker {
        match &self.branch {
            None => &self.generation.breaker,
            Some(branch) => &branch.breaker,
        }
    }

    /// Records a call that returned an outcome.
    pub(crate) fn call_succeeded(&self) {
        self.breaker().success();
        if self.counts_for_all() {
            self.generation.breaker.success();
        }
    }

    /// Records a call that did not return. Returns the pause if this opened the circuit breaker.
    pub(crate) fn call_failed(&self) -> Option<Duration> {
        if self.counts_for_all() {
            // It tells whether the version works at all, and pauses nothing.
            self.generation.breaker.failure();
        }
        self.breaker().failure()
    }

    /// Returns whether the calls of this desk also count for the generation: without controllers at
    /// home, its breaker counts the calls for all members together.
    fn counts_for_all(&self) -> bool {
        self.branch.is_some() && self.generation.controllers.is_empty()
    }

    /// Returns whether this is the candidate's desk and its canary was aborted: then the outcome of
    /// its turns is ignored, and the live version has to run their keys.
    pub(crate) fn is_taken_back(&self) -> bool {
        self.part.as_ref().is_some_and(Part::is_taken_back)
    }

    /// Tells why turns of this desk may not change anything outside of the cluster any more.
    fn outside_fence(&self) -> Fence {
        let (part, branch) = (self.part.clone(), self.branch.clone());
        Box::new(move || {
            if part.as_ref().is_some_and(Part::is_taken_back) {
                return Some("the canary is aborted: the live version runs the key");
            }
            let member = &branch.as_ref()?.member;
            let is_fenced = member.fence().is_err();
            is_fenced.then_some(
                "the cluster of the key was removed from this host, or may be another one by now",
            )
        })
    }

    /// Returns the canary if this is the candidate's desk.
    pub(crate) fn candidate(&self) -> Option<&Canary> {
        self.part.as_ref()?.candidate()
    }

    /// The snapshot that the key's last successful turn saw.
    fn previous(&self, key: &ObjectName) -> Option<Snapshot> {
        let memory = &self.controller.memory;
        match &self.part {
            None => memory.previous(key),
            Some(part) => part.previous(memory, key),
        }
    }

    /// Keeps the snapshot that a successful turn saw; `None` if the object was deleted.
    pub(crate) fn saw(&self, key: &ObjectName, object: Option<&Snapshot>) {
        let memory = &self.controller.memory;
        match &self.part {
            None => memory.saw(key, object),
            Some(part) => part.saw(memory, key, object),
        }
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

    fn reserved(&self, name: &str) -> Option<String> {
        self.sources.reserved(name)
    }

    fn begins(&self, turn: &HttpTurn) {
        let requests = &self.generation.share.http;
        match &self.branch {
            None => requests.begins(turn),
            Some(branch) => requests.elsewhere(&branch.cut_off).begins(turn),
        }
    }

    fn http(&self, call: HttpCall) -> HttpAnswer {
        let fence = self.outside_fence();
        if !call.request.is_safe()
            && let Some(why) = fence()
        {
            return HttpAnswer::answered(Err(HttpError::not_here(why)));
        }
        let (requests, granted) = (&self.generation.share.http, self.generation.granted());
        match &self.branch {
            None => requests.send_while(granted, call, fence),
            Some(branch) => {
                let requests = requests.elsewhere(&branch.cut_off);
                requests.send_while(granted, call, fence)
            }
        }
    }
}

/// The shadow needs this to compare a candidate with the version that ran the turn.
impl Live for Desk {
    fn plugin(&self) -> &Plugin {
        &self.generation.plugin
    }

    fn generation(&self) -> u64 {
        self.generation.number
    }

    fn controller(&self) -> &str {
        &self.controller.name
    }

    fn label(&self) -> &Arc<str> {
        &self.label
    }

    fn kind(&self) -> &Gvk {
        &self.controller.kind
    }
}
