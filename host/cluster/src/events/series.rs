//! Detects repeated events, as client-go's `tools/events`: a series keeps the first note and counts
//! the rest. This module must not know how an event is sent.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;
use vmhost_core::EventType;

use super::body::micro_time;
use super::record::{ObjectRef, RecordedEvent};

/// A series ends after this time without an event, as in client-go.
const WINDOW: Duration = Duration::from_secs(6 * 60);
/// A series that continues is written again after this time. (client-go waits 30 minutes; with
/// 4,096 series this is at most 14 writes per second.)
const REFRESH: Duration = Duration::from_secs(5 * 60);
/// Maximum number of series, as in client-go's caches. At about 500 bytes, 2 MiB.
const SERIES: usize = 4096;

/// Events with the same key belong to one series. The note and the versions are not part of the
/// key.
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

/// How to handle an event.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Write a new event.
    Post,
    /// Write the count of the series.
    Patch { name: String, body: Value },
    /// Nothing to write yet: the event is only counted.
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
    /// Counts an event. Returns how to handle it.
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

    /// Starts a series: its first event was written under this name.
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

    /// Returns whether there are no series.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the counts to write now, and forgets series that have ended.
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
