//! The queue between the recorder and its task.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::lanes::Lanes;
use super::record::{EventObserver, RecordedEvent};
use super::series::Key;

/// How long the task may still write queued events after the plugin is gone.
pub(super) const LAST: Duration = Duration::from_secs(10);

/// The state that the recorder and its task share.
pub(super) struct Shared {
    pub(super) waiting: Mutex<Waiting>,
    /// Wakes the task.
    pub(super) bell: Notify,
    /// Signals that a flush is complete.
    pub(super) flushed: Notify,
    /// Signals that the last clone of the recorder is gone.
    pub(super) ended: Notify,
    /// Cancelled when nothing may be written any more.
    pub(super) abandoned: CancellationToken,
    pub(super) observer: Arc<dyn EventObserver>,
}

#[derive(Default)]
pub(super) struct Waiting {
    pub(super) lanes: Lanes<Item>,
    pub(super) flush: bool,
    pub(super) closed: bool,
}

impl Shared {
    /// Resolves [`LAST`] after the plugin is gone.
    pub(super) async fn overdue(&self) {
        self.ended.notified().await;
        sleep(LAST).await;
    }
}

/// An item in a lane.
pub(super) struct Item {
    pub(super) what: What,
    /// Number of failed requests.
    pub(super) tries: u32,
}

pub(super) enum What {
    /// An event, possibly a repetition of an earlier one.
    Record(Box<RecordedEvent>),
    Write(Box<Write>),
}

/// One write request.
pub(super) struct Write {
    /// The event's name in the cluster.
    pub(super) name: String,
    pub(super) body: Value,
    pub(super) of: Of,
}

pub(super) enum Of {
    /// A new event; it begins a series with this key.
    New(Box<Key>),
    /// The count of a series. If the event is gone from the cluster, the series begins anew with
    /// this event.
    Series(Option<Box<RecordedEvent>>),
}

impl Item {
    /// Builds the item of a newly recorded event.
    pub(super) fn of(event: RecordedEvent) -> Self {
        Self {
            what: What::Record(Box::new(event)),
            tries: 0,
        }
    }
}
