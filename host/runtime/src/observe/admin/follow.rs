//! A stream of the turns that end from now on, as server-sent events. It looks again and again, so
//! that a worker that records a turn wakes nobody. It must not know where records come from.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use vmhost_core::ObjectName;

use super::wanted::Record;
use crate::journal::story::Turn;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// A turn is recorded a moment after it ended, and its thread may have to wait for a core in
/// between. Each look goes back this far.
const LATE: Duration = Duration::from_secs(2);

/// Turns to follow.
pub(crate) trait Source: Send + 'static {
    /// The records of turns that ended after a time. `None` if the host ends.
    fn recent(&self, ended_after: Instant) -> Option<Vec<Record>>;

    /// Records as documents. `None` if the host ends.
    fn tell(&self, records: &[&Record]) -> Option<Vec<Turn>>;
}

/// Which turn a record is about: the controller, the key, and when the turn began.
type Identity = (Arc<str>, ObjectName, Instant);

/// The turns that end from now on.
struct Follow<S> {
    source: S,
    /// The turns that the last look saw.
    seen: HashSet<Identity>,
    /// New turns that were not sent yet.
    ready: VecDeque<Turn>,
}

/// Answers with an event for each turn, until the host ends. Turns that are recorded already are
/// not among them.
pub(crate) fn follow(source: impl Source) -> Response {
    let records = source.recent(late()).unwrap_or_default();
    let follow = Follow {
        source,
        seen: records.iter().map(identity).collect(),
        ready: VecDeque::new(),
    };
    let events = stream::unfold(follow, |mut follow| async move {
        loop {
            if let Some(turn) = follow.ready.pop_front() {
                return Some((Event::default().json_data(turn), follow));
            }
            tokio::time::sleep(PAUSE).await;
            // The only thread for I/O must not wait for the documents.
            follow = tokio::task::spawn_blocking(move || follow.look())
                .await
                .ok()??;
        }
    });
    Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response()
}

impl<S: Source> Follow<S> {
    /// Looks for new turns. Returns `None` if the host ends.
    fn look(mut self) -> Option<Self> {
        let records = self.source.recent(late())?;
        let is_new = |record: &&Record| !self.seen.contains(&identity(record));
        let new: Vec<&Record> = records.iter().filter(is_new).collect();
        if !new.is_empty() {
            self.ready.extend(self.source.tell(&new)?);
        }
        self.seen = records.iter().map(identity).collect();
        Some(self)
    }
}

/// The time from which a look begins.
fn late() -> Instant {
    let now = Instant::now();
    now.checked_sub(LATE).unwrap_or(now)
}

fn identity(record: &Record) -> Identity {
    let controller = record.origin().controller.clone();
    (controller, record.key().clone(), record.began())
}
