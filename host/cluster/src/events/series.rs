//! Which event is a repetition: client-go's `tools/events`, whose series keep the first note and count the rest.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;
use vmhost_core::EventType;

use super::body::micro_time;
use super::{ObjectRef, RecordedEvent};

/// A series that was silent for so long has ended, as client-go.
const WINDOW: Duration = Duration::from_secs(6 * 60);
/// A series that goes on is written again after so long. (client-go waits 30 minutes; with 4,096 series this is 14 writes a second at worst.)
const REFRESH: Duration = Duration::from_secs(5 * 60);
/// Series that are remembered, as client-go's caches. At about 500 bytes, 2 MiB.
const SERIES: usize = 4096;

/// What makes two events the same. The note and the versions are not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    kind: EventType,
    action: String,
    reason: String,
    controller: String,
    regarding: ObjectRef,
    related: Option<ObjectRef>,
}

impl Key {
    pub(super) fn of(event: &RecordedEvent) -> Self {
        let unversioned = |object: &ObjectRef| ObjectRef {
            version: None,
            ..object.clone()
        };
        Self {
            kind: event.kind,
            action: event.action.clone(),
            reason: event.reason.clone(),
            controller: event.reporting_controller.clone(),
            regarding: unversioned(&event.regarding),
            related: event.related.as_ref().map(unversioned),
        }
    }
}

/// What to do about an event.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Write it as a new one.
    Post,
    /// Write the series' count.
    Patch { name: String, body: Value },
    /// It is counted; that is enough for now.
    Nothing,
}

#[derive(Debug)]
struct Entry {
    namespace: String,
    name: String,
    count: u32,
    written: u32,
    written_at: Instant,
    seen: Instant,
    stamp: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Series(HashMap<Key, Entry>);

impl Series {
    /// Counts an event.
    pub(super) fn observe(&mut self, key: &Key) -> Step {
        let now = Instant::now();
        let Some(entry) = self
            .0
            .get_mut(key)
            .filter(|entry| now.duration_since(entry.seen) < WINDOW)
        else {
            return Step::Post;
        };
        entry.count = entry.count.saturating_add(1);
        (entry.seen, entry.stamp) = (now, Timestamp::now());
        if entry.count > 2 && now.duration_since(entry.written_at) < REFRESH {
            return Step::Nothing;
        }
        let (_, name, body) = entry.write(now);
        Step::Patch { name, body }
    }

    /// An event was written under this name.
    pub(super) fn begin(&mut self, key: Key, namespace: String, name: String) {
        if self.0.len() >= SERIES
            && let Some(oldest) = self
                .0
                .iter()
                .min_by_key(|(_, entry)| entry.seen)
                .map(|(key, _)| key.clone())
        {
            self.0.remove(&oldest);
        }
        let now = Instant::now();
        let entry = Entry {
            namespace,
            name,
            count: 1,
            written: 1,
            written_at: now,
            seen: now,
            stamp: Timestamp::now(),
        };
        self.0.insert(key, entry);
    }

    pub(super) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// Whether none goes on.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The counts to write now. What has ended is forgotten.
    pub(super) fn due(&mut self, all: bool) -> Vec<(String, String, Value)> {
        let now = Instant::now();
        let mut due = Vec::new();
        self.0.retain(|_, entry| {
            let ended = now.duration_since(entry.seen) >= WINDOW;
            if entry.count > entry.written
                && (all || ended || now.duration_since(entry.written_at) >= REFRESH)
            {
                due.push(entry.write(now));
            }
            !ended
        });
        due
    }
}

impl Entry {
    fn write(&mut self, now: Instant) -> (String, String, Value) {
        (self.written, self.written_at) = (self.count, now);
        let body =
            json!({"series": {"count": self.count, "lastObservedTime": micro_time(self.stamp)}});
        (self.namespace.clone(), self.name.clone(), body)
    }
}
