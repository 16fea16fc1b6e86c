//! A stream of the turns that end from now on, as server-sent events. It looks for new turns again
//! and again, so that a worker that records a turn does not have to wake any task. This module must
//! not know where records come from.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use vmhost_core::ObjectName;

use super::room::Room;
use super::wanted::Record;
use crate::journal::story::Turn;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// A turn is recorded a moment after it has ended, because its thread may have to wait for a core.
/// So each look reaches back this far before the last one. The last look may be long ago: while a
/// client reads slowly there are no looks, so that no events pile up.
const LATE: Duration = Duration::from_secs(2);

/// The source of the turns to follow.
pub(crate) trait Source: Send + 'static {
    /// Returns the records of turns that ended after a time. `None` if the host shuts down.
    fn recent(&self, ended_after: Instant) -> Option<Vec<Record>>;

    /// Returns records as documents. `None` if the host shuts down.
    fn tell(&self, records: &[&Record]) -> Option<Vec<Turn>>;
}

/// Which turn a record is about: the controller, the key, and when the turn began.
type Identity = (Arc<str>, ObjectName, Instant);

/// The turns that end from now on.
struct Follow<S> {
    source: S,
    /// The threads on which the documents are made.
    room: Room,
    /// The most turns of one look that are sent.
    most: usize,
    /// When the last look began.
    looked: Instant,
    /// The turns that the last look saw.
    seen: HashSet<Identity>,
    /// The events that are not sent yet.
    ready: VecDeque<Ready>,
}

/// An event that is ready.
enum Ready {
    /// A turn that ended.
    Turn(Box<Turn>),
    /// The number of turns that were left out.
    Skipped(usize),
}

/// Answers with an event for each turn that ends from now on, until the host shuts down. With
/// `most`, a look sends only that many of the newest turns, and the number of the others.
pub(crate) fn follow(source: impl Source, most: Option<usize>, room: Room) -> Response {
    let looked = Instant::now();
    let records = source.recent(before(looked)).unwrap_or_default();
    let follow = Follow {
        source,
        room,
        most: most.unwrap_or(usize::MAX),
        looked,
        seen: records.iter().map(identity).collect(),
        ready: VecDeque::new(),
    };
    let events = stream::unfold(follow, |mut follow| async move {
        loop {
            if let Some(ready) = follow.ready.pop_front() {
                return Some((ready.event(), follow));
            }
            tokio::time::sleep(PAUSE).await;
            let room = follow.room.clone();
            follow = room.make(move || follow.look()).await??;
        }
    });
    Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response()
}

impl Ready {
    fn event(self) -> Result<Event, axum::Error> {
        match self {
            Self::Turn(turn) => Event::default().json_data(turn),
            Self::Skipped(count) => Ok(Event::default().event("skipped").data(count.to_string())),
        }
    }
}

impl<S: Source> Follow<S> {
    /// Looks for new turns. Returns `None` if the host shuts down.
    fn look(mut self) -> Option<Self> {
        let now = Instant::now();
        let records = self.source.recent(before(self.looked))?;
        self.looked = now;
        let is_new = |record: &&Record| !self.seen.contains(&identity(record));
        let mut new: Vec<&Record> = records.iter().filter(is_new).collect();
        let skipped = new.len().saturating_sub(self.most);
        if skipped > 0 {
            new.drain(..skipped);
            self.ready.push_back(Ready::Skipped(skipped));
        }
        if !new.is_empty() {
            let told = self.source.tell(&new)?.into_iter().map(Box::new);
            self.ready.extend(told.map(Ready::Turn));
        }
        self.seen = records.iter().map(identity).collect();
        Some(self)
    }
}

/// Returns the time at which the next look begins to search.
fn before(looked: Instant) -> Instant {
    looked.checked_sub(LATE).unwrap_or(looked)
}

fn identity(record: &Record) -> Identity {
    let controller = record.origin().controller.clone();
    (controller, record.key().clone(), record.began())
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    /// Notes how far back each look reaches.
    struct Empty(Arc<Mutex<Vec<Instant>>>);

    impl Source for Empty {
        fn recent(&self, ended_after: Instant) -> Option<Vec<Record>> {
            self.0.lock().push(ended_after);
            Some(Vec::new())
        }

        fn tell(&self, _: &[&Record]) -> Option<Vec<Turn>> {
            Some(Vec::new())
        }
    }

    #[test]
    fn a_look_goes_back_behind_the_look_before_however_long_ago_that_was() {
        let noted = Arc::new(Mutex::new(Vec::new()));
        let looked = Instant::now() + Duration::from_secs(60);
        let follow = Follow {
            source: Empty(noted.clone()),
            room: Room::default(),
            most: 1,
            looked,
            seen: HashSet::new(),
            ready: VecDeque::new(),
        };
        let follow = follow.look().unwrap();
        assert_eq!(*noted.lock(), [looked - LATE]);
        assert!(follow.looked < looked, "the next one goes back to this one");
    }
}
