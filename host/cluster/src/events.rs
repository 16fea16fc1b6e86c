//! Events for people (`events.k8s.io/v1`) of one plugin, recorded in the background.
//!
//! This module owns the queue ([`lanes`]), the folding of repeated events into series, as in
//! client-go's `tools/events`, and their limit ([`limit`]). It must not delay or fail a turn: an
//! event that finds no room is dropped and counted. Plugins share nothing here but the connection.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

mod body;
mod fence;
mod lanes;
mod limit;
mod record;
mod series;
mod waiting;
mod worker;

pub use fence::{EventFence, Events};
pub use limit::EventLimit;
pub use record::{Author, EventObserver, NoEventObserver, ObjectRef, RecordedEvent};

use waiting::{Item, Shared};
use worker::Worker;

/// Accepts the events of one plugin and never waits. Cheap to clone. The first event starts a task,
/// which ends at most [`LAST`] after the last clone is dropped.
#[derive(Clone)]
pub struct Recorder(Arc<Opened>);

struct Opened {
    shared: Arc<Shared>,
    runtime: Handle,
    /// The task's worker; the first event takes it.
    worker: Mutex<Option<Worker>>,
}

impl Recorder {
    /// Creates a recorder whose task runs on the current tokio runtime. `limit` bounds the plugin's
    /// Events; without a limit, all are written.
    pub fn new(
        events: Events,
        plugin: &str,
        observer: Arc<dyn EventObserver>,
        limit: Option<EventLimit>,
    ) -> Self {
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            bell: Notify::new(),
            flushed: Notify::new(),
            ended: Notify::new(),
            abandoned: CancellationToken::new(),
            observer,
        });
        let worker = Worker::new(shared.clone(), events, plugin, limit);
        Self(Arc::new(Opened {
            shared,
            runtime: Handle::current(),
            worker: Mutex::new(Some(worker)),
        }))
    }

    /// Queues an event. If there is no room, the event is dropped and counted.
    pub fn record(&self, event: RecordedEvent) {
        let shared = &self.0.shared;
        if shared.abandoned.is_cancelled() {
            shared.observer.dropped();
            return;
        }
        let namespace = body::namespace(&event).to_owned();
        if !shared
            .waiting
            .lock()
            .lanes
            .push(&namespace, Item::of(event))
        {
            shared.observer.dropped();
            return;
        }
        shared.bell.notify_one();
        if let Some(worker) = self.0.worker.lock().take() {
            self.0.runtime.spawn(worker.run());
        }
    }

    /// Writes nothing any more, and ends the task at once: the cluster was left. Events that wait
    /// are dropped and counted.
    pub fn abandon(&self) {
        self.0.shared.abandoned.cancel();
    }

    /// Waits until the events recorded so far are written, at most for `deadline`. Returns whether
    /// they are.
    pub async fn flush(&self, deadline: Duration) -> bool {
        if self.0.worker.lock().is_some() {
            return true;
        }
        let shared = &self.0.shared;
        let flushed = shared.flushed.notified();
        shared.waiting.lock().flush = true;
        shared.bell.notify_one();
        timeout(deadline, flushed).await.is_ok()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.shared.waiting.lock().closed = true;
        self.shared.bell.notify_one();
        self.shared.ended.notify_one();
    }
}

#[cfg(test)]
mod tests;
