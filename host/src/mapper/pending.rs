//! The changes that wait to be mapped: bounded, in their order, and out of each other's way.
//!
//! It must not know who maps them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use vmhost_core::{Change, ObjectName, Snapshot};

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
/// A watched object: the number of its watch, and its name.
pub type Watched = (u16, ObjectName);

/// The changes that wait.
#[derive(Debug, Default)]
pub struct Mapper {
    state: Mutex<State>,
    /// Something came, or the task has to look again (a swap, an end).
    bell: Notify,
}

#[derive(Debug)]
struct State {
    order: VecDeque<Watched>,
    waiting: HashMap<Watched, Waiting>,
    /// Changes were dropped: all keys have to be looked at.
    overflow: bool,
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
            overflow: false,
            most: BATCH,
            failures: 0,
            closed: false,
        }
    }
}

/// What waits of one object.
#[derive(Debug, Default)]
struct Waiting {
    /// Its states, the oldest first; the first is the one before the first change.
    states: Vec<Option<Snapshot>>,
    /// Calls with this object alone that failed.
    tries: u32,
}

impl Waiting {
    fn bytes(&self) -> usize {
        let text = |object: &Snapshot| object.text.len();
        // Each state but the first and the last is told twice.
        2 * self.states.iter().flatten().map(text).sum::<usize>()
    }
}

/// What is mapped at once.
#[derive(Debug, Default)]
pub(super) struct Batch(Vec<(Watched, Waiting)>);

impl Batch {
    pub(super) fn changes(&self) -> Vec<Change> {
        let of = |(_, waiting): &(Watched, Waiting)| -> Vec<Change> {
            let pair = |pair: &[Option<Snapshot>]| Change {
                old: pair[0].clone(),
                new: pair[1].clone(),
            };
            waiting.states.windows(2).map(pair).collect()
        };
        self.0.iter().flat_map(of).collect()
    }

    /// How many objects, and the first of them.
    pub(super) fn objects(&self) -> (usize, Option<&ObjectName>) {
        (self.0.len(), self.0.first().map(|((_, name), _)| name))
    }

    /// Which watches brought which versions; a deletion's is not known.
    pub(super) fn versions(&self) -> Vec<(u16, u64)> {
        let of = |((source, _), waiting): &(Watched, Waiting)| -> Vec<(u16, u64)> {
            let version =
                |state: &Option<Snapshot>| state.as_ref().map_or(u64::MAX, |state| state.version);
            let states = waiting.states.iter().skip(1);
            states.map(|state| (*source, version(state))).collect()
        };
        self.0.iter().flat_map(of).collect()
    }
}

impl Mapper {
    /// Something changed.
    pub fn push(&self, object: Watched, change: Change) {
        self.lock().push(object, change);
        self.bell.notify_one();
    }

    /// Objects whose changes wait.
    pub fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// None?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A swap: what failed is tried again at once. `moved`: the numbers of the watches mean others now; the swap looks at every key anyway.
    pub fn renew(&self, moved: bool) {
        let mut state = self.lock();
        state.failures = 0;
        state.most = BATCH;
        if moved {
            state.order.clear();
            state.waiting.clear();
        }
        drop(state);
        self.bell.notify_one();
    }

    /// The controller ends.
    pub fn close(&self) {
        let mut state = self.lock();
        state.drop_all();
        state.closed = true;
        drop(state);
        self.bell.notify_one();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Were changes dropped since the last time?
    pub(super) fn overflowed(&self) -> bool {
        std::mem::take(&mut self.lock().overflow)
    }

    /// Resolves when there is something to do, after the back-off of the last failure. False: it was closed.
    pub(super) async fn ready(&self) -> bool {
        let mut waited = false;
        loop {
            let wait = {
                let state = self.lock();
                if state.closed {
                    return false;
                }
                if (state.overflow || !state.order.is_empty()) && (state.failures == 0 || waited) {
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
            let state = self.lock();
            if state.failures == 0 || state.closed {
                return;
            }
        }
    }

    pub(super) fn take(&self) -> Batch {
        self.lock().take()
    }

    pub(super) fn succeeded(&self) {
        let mut state = self.lock();
        state.failures = 0;
        state.most = (state.most * 2).min(BATCH);
    }

    /// The call has failed: the same changes come again, in smaller calls.
    pub(super) fn put_back(&self, batch: Batch) {
        self.lock().put_back(batch);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, object: Watched, change: Change) {
        if self.closed {
            return;
        }
        let objects = self.waiting.len();
        match self.waiting.get_mut(&object) {
            Some(waiting) if waiting.states.len() <= STATES => waiting.states.push(change.new),
            None if objects < OBJECTS => {
                self.order.push_back(object.clone());
                let states = vec![change.old, change.new];
                self.waiting.insert(object, Waiting { states, tries: 0 });
            }
            _ => self.drop_all(),
        }
    }

    fn drop_all(&mut self) {
        self.order.clear();
        self.waiting.clear();
        self.overflow = true;
    }

    fn take(&mut self) -> Batch {
        let mut batch = Batch::default();
        let (mut changes, mut bytes) = (0, 0);
        while let Some(next) = self.order.front()
            && batch.0.len() < self.most
        {
            let Some(waiting) = self.waiting.get(next) else {
                self.order.pop_front();
                continue;
            };
            changes += waiting.states.len().saturating_sub(1);
            bytes += waiting.bytes();
            if (changes > BATCH || bytes > BATCH_BYTES) && !batch.0.is_empty() {
                break;
            }
            if let Some(object) = self.order.pop_front()
                && let Some(waiting) = self.waiting.remove(&object)
            {
                batch.0.push((object, waiting));
            }
        }
        batch
    }

    fn put_back(&mut self, batch: Batch) {
        if self.closed {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        let alone = batch.0.len() == 1;
        self.most = (batch.0.len() / 2).max(1);
        for (object, mut waiting) in batch.0.into_iter().rev() {
            if alone {
                waiting.tries += 1;
            }
            if waiting.tries >= TRIES || waiting.states.len() > STATES + 1 {
                self.overflow = true;
                self.failures = 0;
                continue;
            }
            if let Some(later) = self.waiting.get_mut(&object) {
                // The first of the later ones is the last of these.
                waiting.states.extend(later.states.drain(1..));
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

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_core::Object;

    fn object(version: u64) -> Option<Snapshot> {
        let name = ObjectName::new(Some("a"), "x");
        Some(Object::with_text(name, "u", version, "{}"))
    }

    fn id(name: &str) -> Watched {
        (1, ObjectName::new(Some("a"), name))
    }

    fn push(mapper: &Mapper, name: &str, old: u64, new: u64) {
        let state = |version| if version == 0 { None } else { object(version) };
        mapper.push(
            id(name),
            Change {
                old: state(old),
                new: state(new),
            },
        );
    }

    fn versions(batch: &Batch) -> Vec<(u64, u64)> {
        let version =
            |object: &Option<Snapshot>| object.as_ref().map_or(0, |object| object.version);
        batch
            .changes()
            .iter()
            .map(|change| (version(&change.old), version(&change.new)))
            .collect()
    }

    async fn next(mapper: &Mapper) -> Batch {
        assert!(mapper.ready().await);
        mapper.take()
    }

    #[tokio::test(start_paused = true)]
    async fn changes_of_an_object_stay_together_and_in_order_also_after_a_failure() {
        let mapper = Mapper::default();
        push(&mapper, "x", 0, 1);
        push(&mapper, "y", 5, 6);
        push(&mapper, "x", 1, 2);
        let batch = next(&mapper).await;
        assert_eq!(versions(&batch), [(0, 1), (1, 2), (5, 6)]);
        push(&mapper, "x", 2, 0);
        push(&mapper, "z", 0, 9);
        mapper.put_back(batch);
        let start = tokio::time::Instant::now();
        let batch = next(&mapper).await;
        assert_eq!(start.elapsed(), FIRST);
        assert_eq!(versions(&batch).len(), 1, "half of two");
        mapper.succeeded();
        let mut all = versions(&batch);
        while !mapper.is_empty() {
            all.extend(versions(&next(&mapper).await));
        }
        assert_eq!(all.len(), 5);
        assert!(
            all.windows(3).any(|part| part == [(0, 1), (1, 2), (2, 0)]),
            "{all:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_cannot_be_mapped_holds_up_no_other() {
        let mapper = Mapper::default();
        for name in ["a", "bad", "c", "d"] {
            push(&mapper, name, 0, 1);
        }
        let mut mapped = Vec::new();
        let start = tokio::time::Instant::now();
        while mapped.len() < 3 {
            let batch = next(&mapper).await;
            if batch.0.iter().any(|((_, name), _)| name.name() == "bad") {
                mapper.put_back(batch);
            } else {
                mapped.extend(batch.0);
                mapper.succeeded();
            }
        }
        assert!(
            start.elapsed() < Duration::from_secs(1),
            "{:?}",
            start.elapsed()
        );
        assert!(!mapper.overflowed());
        // And in the end every key is looked at in its stead.
        while !mapper.is_empty() {
            let batch = next(&mapper).await;
            mapper.put_back(batch);
        }
        assert!(mapper.overflowed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_swap_tries_again_at_once() {
        let mapper = Mapper::default();
        push(&mapper, "x", 0, 1);
        for _ in 1..TRIES {
            let batch = next(&mapper).await;
            mapper.put_back(batch);
        }
        mapper.renew(false);
        let start = tokio::time::Instant::now();
        assert!(mapper.ready().await);
        assert_eq!(start.elapsed(), Duration::ZERO);
        mapper.close();
        assert!(!mapper.ready().await);
        push(&mapper, "y", 0, 1);
        assert!(mapper.is_empty(), "nobody will ask for it");
    }

    #[tokio::test(start_paused = true)]
    async fn too_much_becomes_a_look_at_every_key() {
        let mapper = Mapper::default();
        for version in 0..=STATES as u64 {
            push(&mapper, "x", version, version + 1);
        }
        push(&mapper, "y", 0, 1);
        assert_eq!(versions(&next(&mapper).await), [(0, 1)]);
        assert!(mapper.overflowed());
        assert!(!mapper.overflowed(), "once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_gets_no_more_than_it_can_hold() {
        let mapper = Mapper::default();
        for number in 0..BATCH + 10 {
            push(&mapper, &number.to_string(), 0, 1);
        }
        assert_eq!(next(&mapper).await.changes().len(), BATCH);
        assert_eq!(next(&mapper).await.changes().len(), 10);
        for number in 0..10 {
            let name = ObjectName::new(Some("a"), "x");
            let large = Object::with_text(name, "u", 1, &"x".repeat(1 << 20));
            mapper.push(
                id(&number.to_string()),
                Change {
                    old: None,
                    new: Some(large),
                },
            );
        }
        assert_eq!(next(&mapper).await.changes().len(), 4);
    }
}
