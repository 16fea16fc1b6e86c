//! The changes that wait for the plugin's mapping function: a bounded buffer that keeps the order
//! of each object's changes, and in which a failing object does not block the others.
//!
//! If the buffer overflows, all waiting changes are dropped and a flag says that every key must be
//! enqueued instead. A standby keeps nothing but this flag.
//!
//! This module owns what is kept, and when the next call begins; `waiting` has the rules by which
//! changes come in, leave and come back. The buffer must not know what maps the changes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use vmhost_core::{Change, ObjectName, Snapshot};

pub mod buffer;
mod waiting;

use buffer::{MapBuffer, Room};

/// Maximum number of changes per call. It is part of the plugin contract.
const BATCH: usize = 500;
/// The first pause after a failure. It doubles with each further failure.
const FIRST: Duration = Duration::from_millis(5);
/// The longest pause after a failure.
const LONGEST: Duration = Duration::from_secs(60);

/// The number of a watch, and the name of an object in it.
pub(crate) type Watched = (u16, ObjectName);

/// The buffer of waiting changes of one controller.
#[derive(Debug)]
pub(crate) struct Mapper {
    buffer: Arc<MapBuffer>,
    state: Mutex<State>,
    /// Rung when a change arrives, and when the mapping task must look again after a swap or at the
    /// end.
    bell: Notify,
}

#[derive(Debug)]
struct State {
    order: VecDeque<Watched>,
    waiting: HashMap<Watched, Waiting>,
    /// Set if every key must be enqueued because changes were dropped.
    missed: Option<Missed>,
    /// If true, only the fact that something changed is kept.
    standby: bool,
    /// How often the buffer was cleared. A batch taken before a clear cannot be put back in front
    /// of the changes that came after it.
    cleared: u64,
    /// The number of objects in the next call: as many as fit, and half as many after each failure.
    most: usize,
    failures: u32,
    closed: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            order: VecDeque::new(),
            waiting: HashMap::default(),
            missed: None,
            standby: false,
            cleared: 0,
            most: BATCH,
            failures: 0,
            closed: false,
        }
    }
}

/// Why changes are missing from the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missed {
    /// The buffer overflowed, or a change could not be mapped.
    Dropped,
    /// This host was a standby.
    StoodBy,
}

/// The waiting changes of one object.
#[derive(Debug)]
struct Waiting {
    /// The object's states, oldest first. The first is the state before the first change.
    states: Vec<Option<Snapshot>>,
    /// Failed calls with this object alone.
    tries: u32,
    room: Room,
}

/// The changes of one call.
#[derive(Debug)]
pub(crate) struct Batch {
    objects: Vec<(Watched, Waiting)>,
    /// The value of [`State::cleared`] when the batch was taken.
    cleared: u64,
}

impl Batch {
    pub(crate) fn changes(&self) -> Vec<Change> {
        let of = |(_, waiting): &(Watched, Waiting)| -> Vec<Change> {
            let pair = |pair: &[Option<Snapshot>]| Change {
                old: pair[0].clone(),
                new: pair[1].clone(),
            };
            waiting.states.windows(2).map(pair).collect()
        };
        self.objects.iter().flat_map(of).collect()
    }

    /// The number of objects, and the name of the first one.
    pub(crate) fn objects(&self) -> (usize, Option<&ObjectName>) {
        (
            self.objects.len(),
            self.objects.first().map(|((_, name), _)| name),
        )
    }

    /// The watch and the version of each change. A deletion has no known version and gets
    /// `u64::MAX`.
    pub(crate) fn versions(&self) -> Vec<(u16, u64)> {
        let of = |((source, _), waiting): &(Watched, Waiting)| -> Vec<(u16, u64)> {
            let version =
                |state: &Option<Snapshot>| state.as_ref().map_or(u64::MAX, |state| state.version);
            let states = waiting.states.iter().skip(1);
            states.map(|state| (*source, version(state))).collect()
        };
        self.objects.iter().flat_map(of).collect()
    }
}

impl Mapper {
    /// An empty buffer. All controllers of a plugin share `buffer`, the limit in bytes.
    pub(crate) fn new(buffer: Arc<MapBuffer>) -> Self {
        Self {
            buffer,
            state: Mutex::default(),
            bell: Notify::new(),
        }
    }

    /// Adds a change and wakes the mapping task.
    pub(crate) fn push(&self, object: Watched, change: Change) {
        self.state.lock().push(&self.buffer, object, change);
        self.bell.notify_one();
    }

    /// Enters standby: only the fact that something changed is kept, since the leader maps the
    /// change.
    pub(crate) fn stand_by(&self) {
        let mut state = self.state.lock();
        if !state.standby {
            if !state.waiting.is_empty() {
                state.missed = Some(Missed::StoodBy);
            }
            state.clear();
        }
        state.standby = true;
    }

    /// Leaves standby: changes are kept again.
    pub(crate) fn lead(&self) {
        self.state.lock().standby = false;
    }

    /// The number of objects with waiting changes.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Returns whether no change waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Prepares the buffer for a new generation: failed changes are retried at once. If `moved`,
    /// the watches got new numbers; the waiting changes are dropped, since a swap enqueues every
    /// key anyway.
    pub(crate) fn renew(&self, moved: bool) {
        let mut state = self.state.lock();
        state.failures = 0;
        state.most = BATCH;
        if moved {
            state.clear();
        }
        drop(state);
        self.bell.notify_one();
    }

    /// Closes the buffer when the controller ends.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.drop_all(Missed::Dropped);
        state.closed = true;
        drop(state);
        self.bell.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Takes the reason to enqueue every key, if changes were dropped since the last call.
    pub(crate) fn missed(&self) -> Option<Missed> {
        self.state.lock().missed.take()
    }

    /// Waits for a change to map, and for the back-off after a failure. Returns `false` if the
    /// buffer was closed.
    pub(crate) async fn ready(&self) -> bool {
        let mut waited = false;
        loop {
            let wait = {
                let state = self.state.lock();
                if state.closed {
                    return false;
                }
                if (state.missed.is_some() || !state.order.is_empty())
                    && (state.failures == 0 || waited)
                {
                    return true;
                }
                match state.failures {
                    0 => None,
                    failures => {
                        Some(LONGEST.min(FIRST * 2_u32.saturating_pow(failures.min(20) - 1)))
                    }
                }
            };
            match wait {
                None => self.bell.notified().await,
                // The bell ends this wait only after a swap or a close.
                Some(wait) => {
                    let _ = tokio::time::timeout(wait, self.renewed()).await;
                    waited = true;
                }
            }
        }
    }

    async fn renewed(&self) {
        loop {
            self.bell.notified().await;
            let state = self.state.lock();
            if state.failures == 0 || state.closed {
                return;
            }
        }
    }

    pub(crate) fn take(&self) -> Batch {
        self.state.lock().take()
    }

    pub(crate) fn succeeded(&self) {
        let mut state = self.state.lock();
        state.failures = 0;
        state.most = (state.most * 2).min(BATCH);
    }

    /// Returns the changes of a failed call to the buffer. The next calls are smaller.
    pub(crate) fn put_back(&self, batch: Batch) {
        self.state.lock().put_back(batch);
    }
}

#[cfg(test)]
mod tests;
