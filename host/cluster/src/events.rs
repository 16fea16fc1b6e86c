//! Events for people (`events.k8s.io/v1`) of one plugin, recorded in the background.
//!
//! It owns what waits ([`lanes`]), the folding of repeated events into series, as client-go's
//! `tools/events`, and how many Normal ones are written ([`limit`]). It must not hold up or fail a
//! turn: an event that finds no room is dropped and counted. Plugins share nothing here but the
//! connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use vmhost_core::{EventType, Gvk, ObjectName};

use crate::connect::Connection;

mod body;
mod lanes;
mod limit;
mod series;
mod worker;

pub use limit::EventLimit;

use lanes::Lanes;
use worker::{Item, Worker};

/// How long what waits may still be written when the plugin is gone.
const LAST: Duration = Duration::from_secs(10);

/// An object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectRef {
    /// Its kind.
    pub kind: Gvk,
    /// Its namespace and name.
    pub name: ObjectName,
    /// Its uid, if known.
    pub uid: Option<String>,
    /// Its version, if known. Not part of what makes two events the same.
    pub version: Option<u64>,
}

/// An event to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// What it is about.
    pub regarding: ObjectRef,
    /// What else has to do with it.
    pub related: Option<ObjectRef>,
    /// Severity.
    pub kind: EventType,
    /// Why, CamelCase.
    pub reason: String,
    /// What was done, CamelCase.
    pub action: String,
    /// For people; cut at 1,024 bytes. Of a series the first one stays.
    pub note: String,
    /// `vmhost/<plugin>/<controller>`. The API takes one slash: further ones become dots.
    pub reporting_controller: String,
}

/// Who counts what becomes of events. Must be quick.
pub trait EventObserver: Send + Sync {
    /// There was no room, or no time at the end.
    fn dropped(&self) {}
    /// More Normal Events than the plugin may write.
    fn limited(&self) {}
    /// Written, as a new event or as a series.
    fn recorded(&self) {}
    /// Given up; why.
    fn failed(&self, _reason: &str) {}
}

/// Nobody counts.
#[derive(Debug)]
pub struct NoEventObserver;

impl EventObserver for NoEventObserver {}

/// Takes the events of one plugin and never waits. Cheap to clone. The first event starts its task,
/// which ends with the last clone, [`LAST`] later at most.
#[derive(Clone)]
pub struct Recorder(Arc<Opened>);

struct Opened {
    shared: Arc<Shared>,
    runtime: Handle,
    /// Taken by the first event.
    worker: Mutex<Option<Worker>>,
}

/// What the recorder and its task share.
struct Shared {
    waiting: Mutex<Waiting>,
    /// Something is to be done.
    bell: Notify,
    /// All was written that a flush asked for.
    flushed: Notify,
    /// The last clone is gone.
    ended: Notify,
    observer: Arc<dyn EventObserver>,
}

#[derive(Default)]
struct Waiting {
    lanes: Lanes<Item>,
    flush: bool,
    closed: bool,
}

impl Recorder {
    /// Its task will run on the tokio runtime that this is called on. `limit`: how many Normal
    /// Events are written; without one, all.
    pub fn new(
        connection: Connection,
        plugin: &str,
        observer: Arc<dyn EventObserver>,
        limit: Option<EventLimit>,
    ) -> Self {
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            bell: Notify::new(),
            flushed: Notify::new(),
            ended: Notify::new(),
            observer,
        });
        let worker = Worker::new(shared.clone(), connection, plugin, limit);
        Self(Arc::new(Opened {
            shared,
            runtime: Handle::current(),
            worker: Mutex::new(Some(worker)),
        }))
    }

    /// Queues an event. Without room for it, it is dropped and counted.
    pub fn record(&self, event: RecordedEvent) {
        let shared = &self.0.shared;
        let namespace = body::namespace(&event).to_owned();
        if !shared.lock().lanes.push(&namespace, Item::of(event)) {
            shared.observer.dropped();
            return;
        }
        shared.bell.notify_one();
        if let Some(worker) = self.0.worker().take() {
            self.0.runtime.spawn(worker.run());
        }
    }

    /// Waits until what was recorded before is written, but no longer than `deadline`. Returns
    /// whether it is.
    pub async fn flush(&self, deadline: Duration) -> bool {
        if self.0.worker().is_some() {
            return true;
        }
        let shared = &self.0.shared;
        let flushed = shared.flushed.notified();
        shared.lock().flush = true;
        shared.bell.notify_one();
        timeout(deadline, flushed).await.is_ok()
    }
}

impl Opened {
    /// Absent while it runs.
    fn worker(&self) -> MutexGuard<'_, Option<Worker>> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.bell.notify_one();
        self.shared.ended.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when the plugin has been gone for as long as its last events may take.
    async fn overdue(&self) {
        self.ended.notified().await;
        sleep(LAST).await;
    }
}

#[cfg(test)]
mod tests;
