//! The changes that wait to be mapped: bounded, in their order, and out of each other's way.
//!
//! What becomes too much is dropped in exchange for the fact that something was missed; on a
//! standby all of it is. It must not know what maps them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use vmhost_core::{Change, ObjectName, Snapshot};

pub mod buffer;

use buffer::{MapBuffer, Room};

/// Changes of one call; the contract says so.
const BATCH: usize = 500;
/// Text of one call, in bytes: a fraction of what an instance may hold.
const BATCH_BYTES: usize = 8 << 20;
/// Objects whose changes wait, at most.
const OBJECTS: usize = 50_000;
/// States of one object that wait, at most.
const STATES: usize = 32;
/// Failures in a row of one object by itself, after which every key is looked at in its stead.
const TRIES: u32 = 10;
/// First wait after a failure; it doubles.
const FIRST: Duration = Duration::from_millis(5);
/// Longest wait after a failure.
const LONGEST: Duration = Duration::from_secs(60);
/// What a state takes besides its text, in bytes: the object without it, its name and its entry
/// here, rounded up.
const OVERHEAD: usize = 256;

/// A watched object: the number of its watch, and its name.
pub type Watched = (u16, ObjectName);

/// The changes that wait.
#[derive(Debug)]
pub struct Mapper {
    buffer: Arc<MapBuffer>,
    state: Mutex<State>,
    /// Something came, or the task has to look again (a swap, an end).
    bell: Notify,
}

#[derive(Debug)]
struct State {
    order: VecDeque<Watched>,
    waiting: HashMap<Watched, Waiting>,
    /// Why all keys have to be looked at.
    missed: Option<Missed>,
    /// Of a change nothing but the fact is kept.
    standby: bool,
    /// How often all that waited was dropped. What is mapped meanwhile does not go on where the
    /// next changes begin.
    cleared: u64,
    /// Objects of a call: all that fit, and half of them after each failure.
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

/// Why changes are not there to be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missed {
    /// There were too many, or one could not be mapped.
    Dropped,
    /// This host stood by.
    StoodBy,
}

/// What waits of one object.
#[derive(Debug)]
struct Waiting {
    /// Its states, the oldest first; the first is the one before the first change.
    states: Vec<Option<Snapshot>>,
    /// Calls with this object alone that failed.
    tries: u32,
    room: Room,
}

impl Waiting {
    fn bytes(&self) -> usize {
        let text = |object: &Snapshot| object.text.len();
        // Each state but the first and the last is told twice.
        2 * self.states.iter().flatten().map(text).sum::<usize>()
    }
}

/// What is mapped at once.
#[derive(Debug)]
pub(crate) struct Batch {
    objects: Vec<(Watched, Waiting)>,
    /// As [`State::cleared`] when it was taken.
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

    /// How many objects, and the first of them.
    pub(crate) fn objects(&self) -> (usize, Option<&ObjectName>) {
        (
            self.objects.len(),
            self.objects.first().map(|((_, name), _)| name),
        )
    }

    /// Which watches brought which versions; a deletion's is not known.
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
    /// No change waits yet. Those of a plugin's controllers share the buffer.
    pub fn new(buffer: Arc<MapBuffer>) -> Self {
        Self {
            buffer,
            state: Mutex::default(),
            bell: Notify::new(),
        }
    }

    /// Something changed.
    pub fn push(&self, object: Watched, change: Change) {
        self.state.lock().push(&self.buffer, object, change);
        self.bell.notify_one();
    }

    /// From now on only the fact is kept that something changed: another host maps it.
    pub fn stand_by(&self) {
        let mut state = self.state.lock();
        if !state.standby {
            if !state.waiting.is_empty() {
                state.missed = Some(Missed::StoodBy);
            }
            state.clear();
        }
        state.standby = true;
    }

    /// From now on changes are kept.
    pub fn lead(&self) {
        self.state.lock().standby = false;
    }

    /// Objects whose changes wait.
    pub fn len(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// None?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A swap: what failed is tried again at once. `moved`: the numbers of the watches mean others now; the swap looks at every key anyway.
    pub fn renew(&self, moved: bool) {
        let mut state = self.state.lock();
        state.failures = 0;
        state.most = BATCH;
        if moved {
            state.clear();
        }
        drop(state);
        self.bell.notify_one();
    }

    /// The controller ends.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.drop_all(Missed::Dropped);
        state.closed = true;
        drop(state);
        self.bell.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Why all keys have to be looked at, if changes were missed since the last time.
    pub(crate) fn missed(&self) -> Option<Missed> {
        self.state.lock().missed.take()
    }

    /// Resolves when there is something to do, after the back-off of the last failure. False: it was closed.
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
                // A bell shortens the wait only if it was a swap's, or the end's.
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

    /// The call has failed: the same changes come again, in smaller calls.
    pub(crate) fn put_back(&self, batch: Batch) {
        self.state.lock().put_back(batch);
    }
}

impl State {
    fn push(&mut self, buffer: &Arc<MapBuffer>, object: Watched, change: Change) {
        if self.closed {
            return;
        }
        if self.standby {
            self.missed = Some(Missed::StoodBy);
            return;
        }
        if !self.keep(buffer, object, change) {
            self.drop_all(Missed::Dropped);
        }
    }

    /// False: there is no room for it.
    fn keep(&mut self, buffer: &Arc<MapBuffer>, object: Watched, change: Change) -> bool {
        let objects = self.waiting.len();
        if let Some(waiting) = self.waiting.get_mut(&object) {
            if waiting.states.len() > STATES || !waiting.room.grow(size(&change.new)) {
                return false;
            }
            waiting.states.push(change.new);
            return true;
        }
        let mut room = Room::empty(buffer);
        if objects >= OBJECTS || !room.grow(size(&change.old) + size(&change.new)) {
            return false;
        }
        self.order.push_back(object.clone());
        let waiting = Waiting {
            states: vec![change.old, change.new],
            tries: 0,
            room,
        };
        self.waiting.insert(object, waiting);
        true
    }

    fn clear(&mut self) {
        self.order.clear();
        self.waiting.clear();
        self.cleared += 1;
    }

    fn drop_all(&mut self, why: Missed) {
        self.clear();
        self.missed = Some(why);
    }

    fn take(&mut self) -> Batch {
        let mut batch = Batch {
            objects: Vec::new(),
            cleared: self.cleared,
        };
        let (mut changes, mut bytes) = (0, 0);
        while let Some(next) = self.order.front()
            && batch.objects.len() < self.most
        {
            let Some(waiting) = self.waiting.get(next) else {
                self.order.pop_front();
                continue;
            };
            changes += waiting.states.len().saturating_sub(1);
            bytes += waiting.bytes();
            if (changes > BATCH || bytes > BATCH_BYTES) && !batch.objects.is_empty() {
                break;
            }
            if let Some(object) = self.order.pop_front()
                && let Some(waiting) = self.waiting.remove(&object)
            {
                batch.objects.push((object, waiting));
            }
        }
        batch
    }

    fn put_back(&mut self, batch: Batch) {
        if self.closed {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        let alone = batch.objects.len() == 1;
        self.most = (batch.objects.len() / 2).max(1);
        if batch.cleared != self.cleared {
            self.missed.get_or_insert(Missed::Dropped);
            return;
        }
        for (object, mut waiting) in batch.objects.into_iter().rev() {
            if alone {
                waiting.tries += 1;
            }
            if waiting.tries >= TRIES || waiting.states.len() > STATES + 1 {
                self.missed = Some(Missed::Dropped);
                self.failures = 0;
                continue;
            }
            if let Some(later) = self.waiting.get_mut(&object) {
                // The first of the later ones is the last of these.
                waiting.states.extend(later.states.drain(1..));
                waiting.room.absorb(&mut later.room);
                *later = waiting;
                continue;
            }
            if alone {
                self.order.push_back(object.clone());
                // The others need not wait for this one.
                self.failures = if self.order.len() > 1 {
                    0
                } else {
                    waiting.tries
                };
            } else {
                self.order.push_front(object.clone());
            }
            self.waiting.insert(object, waiting);
        }
    }
}

/// What a state takes, in bytes.
fn size(state: &Option<Snapshot>) -> usize {
    OVERHEAD + state.as_ref().map_or(0, |object| object.text.len())
}

#[cfg(test)]
mod tests;
