//! Detects repeated events. As in client-go's `tools/events`, a series keeps its first event and
//! counts the rest; as in its `tools/record`, an event with another note is another event, up to
//! ten of them. This module must not know how an event is sent.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;
use vmhost_core::{Digest, EventType};

use super::body::micro_time;
use super::record::{ObjectRef, RecordedEvent};

/// A series ends after this time without an event, as in client-go.
const WINDOW: Duration = Duration::from_secs(6 * 60);
/// A series that continues is written again after this time. (client-go waits 30 minutes; with
/// 4,096 series this is at most 14 writes per second.)
const REFRESH: Duration = Duration::from_secs(5 * 60);
/// Maximum number of series, as in client-go's caches. At about 500 bytes, 2 MiB.
const SERIES: usize = 4096;
/// Maximum number of series that differ in nothing but their notes, as in client-go. Events with
/// further notes are counted in the newest of them: a note with a counter in it must not fill the
/// cluster.
const NOTES: usize = 10;

/// What an event says, without its note. The versions of objects are not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct About {
    kind: EventType,
    action: String,
    reason: String,
    controller: String,
    regarding: ObjectRef,
    related: Option<ObjectRef>,
}

/// Events with the same key belong to one series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    about: About,
    /// A digest, because notes may be long.
    note: Digest,
}

impl Key {
    pub(super) fn of(event: &RecordedEvent) -> Self {
        let unversioned = |object: &ObjectRef| ObjectRef {
            version: None,
            ..object.clone()
        };
        Self {
            about: About {
                kind: event.kind,
                action: event.action.clone(),
                reason: event.reason.clone(),
                controller: event.reporting_controller.clone(),
                regarding: unversioned(&event.regarding),
                related: event.related.as_ref().map(unversioned),
            },
            note: Digest::of(&event.note),
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
    note: Digest,
    namespace: String,
    name: String,
    count: u32,
    written: u32,
    written_at: Instant,
    seen: Instant,
    stamp: Timestamp,
}

/// The series by what their events say, the newest last.
#[derive(Debug, Default)]
pub(super) struct Series(HashMap<About, Vec<Entry>>);

impl Series {
    /// Counts an event. Returns how to handle it.
    pub(super) fn observe(&mut self, key: &Key) -> Step {
        let now = Instant::now();
        let alike = self.0.get_mut(&key.about);
        let Some(entry) = alike.and_then(|alike| series_of(alike, key.note, now)) else {
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
        if self.0.values().map(Vec::len).sum::<usize>() >= SERIES {
            self.forget_oldest();
        }
        let now = Instant::now();
        let entry = Entry {
            note: key.note,
            namespace,
            name,
            count: 1,
            written: 1,
            written_at: now,
            seen: now,
            stamp: Timestamp::now(),
        };
        let alike = self.0.entry(key.about).or_default();
        alike.retain(|other| other.note != key.note);
        alike.push(entry);
    }

    /// Forgets the series of this name, to which an event with this key belonged.
    pub(super) fn forget(&mut self, key: &Key, name: &str) {
        self.remove(&key.about, name);
    }

    fn forget_oldest(&mut self) {
        let mut oldest: Option<(&About, &Entry)> = None;
        for (about, alike) in &self.0 {
            for entry in alike {
                if oldest.is_none_or(|(_, other)| entry.seen < other.seen) {
                    oldest = Some((about, entry));
                }
            }
        }
        if let Some((about, name)) = oldest.map(|(about, of)| (about.clone(), of.name.clone())) {
            self.remove(&about, &name);
        }
    }

    fn remove(&mut self, about: &About, name: &str) {
        if let Some(alike) = self.0.get_mut(about) {
            alike.retain(|entry| entry.name != name);
            if alike.is_empty() {
                self.0.remove(about);
            }
        }
    }

    /// Returns whether there are no series.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the counts to write now, and forgets series that have ended.
    pub(super) fn due(&mut self, all: bool) -> Vec<(String, String, Value)> {
        let now = Instant::now();
        let mut due = Vec::new();
        self.0.retain(|_, alike| {
            alike.retain_mut(|entry| {
                let continues = entry.continues(now);
                if entry.count > entry.written
                    && (all || !continues || now.duration_since(entry.written_at) >= REFRESH)
                {
                    due.push(entry.write(now));
                }
                continues
            });
            !alike.is_empty()
        });
        due
    }
}

/// Returns the series of an event with this note, among those of events that say the same.
fn series_of(alike: &mut [Entry], note: Digest, now: Instant) -> Option<&mut Entry> {
    let own = |entry: &Entry| entry.note == note && entry.continues(now);
    let at = match alike.iter().position(own) {
        Some(at) => at,
        None if alike.iter().filter(|entry| entry.continues(now)).count() < NOTES => return None,
        None => alike.iter().rposition(|entry| entry.continues(now))?,
    };
    alike.get_mut(at)
}

impl Entry {
    fn continues(&self, now: Instant) -> bool {
        now.duration_since(self.seen) < WINDOW
    }

    fn write(&mut self, now: Instant) -> (String, String, Value) {
        (self.written, self.written_at) = (self.count, now);
        let body =
            json!({"series": {"count": self.count, "lastObservedTime": micro_time(self.stamp)}});
        (self.namespace.clone(), self.name.clone(), body)
    }
}
