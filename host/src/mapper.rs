//! Changes that the policy itself maps to keys: kept until a call of its `map-changes` has succeeded, whatever traps, errors and swaps come in between.
//!
//! Changes of one object stay in their order, and none of the states in between is left out: each may have named another key. What becomes too much is dropped in
//! exchange for a look at every key, which is always right.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use vmhost_core::{Change, MapRequest, ObjectName, Snapshot};

use crate::controller::Controller;
use crate::leader::Leadership;
use crate::registry::Slot;

/// Changes of one call; the contract says so.
const BATCH: usize = 500;
/// Objects whose changes wait, at most.
const OBJECTS: usize = 50_000;
/// States of one object that wait, at most.
const STATES: usize = 32;
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

#[derive(Debug, Default)]
struct State {
    order: VecDeque<Watched>,
    waiting: FxHashMap<Watched, States>,
    /// Changes were dropped: all keys have to be looked at.
    overflow: bool,
    failures: u32,
    closed: bool,
}

/// The states of one object, the oldest first; the first is the one before the first change.
type States = Vec<Option<Snapshot>>;

/// What is mapped at once.
#[derive(Debug, Default)]
struct Batch {
    objects: Vec<(Watched, States)>,
    overflow: bool,
}

impl Batch {
    fn changes(&self) -> Vec<Change> {
        let of = |states: &States| -> Vec<Change> {
            let pair = |pair: &[Option<Snapshot>]| Change {
                old: pair[0].clone(),
                new: pair[1].clone(),
            };
            states.windows(2).map(pair).collect()
        };
        self.objects
            .iter()
            .flat_map(|(_, states)| of(states))
            .collect()
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

    /// A swap: what failed is tried again at once.
    pub fn retry(&self) {
        self.lock().failures = 0;
        self.bell.notify_one();
    }

    /// The controller ends.
    pub fn close(&self) {
        self.lock().closed = true;
        self.bell.notify_one();
    }

    /// What is to be mapped now; none: it was closed.
    async fn next(&self) -> Option<Batch> {
        loop {
            let failures = {
                let mut state = self.lock();
                if state.closed {
                    return None;
                }
                if state.failures == 0 && (state.overflow || !state.order.is_empty()) {
                    return Some(state.take());
                }
                state.failures
            };
            if failures == 0 {
                self.bell.notified().await;
            } else {
                // A bell shortens the wait only if it was a swap's.
                let wait = LONGEST.min(FIRST * 2_u32.saturating_pow(failures.min(20) - 1));
                let _ = tokio::time::timeout(wait, self.retried()).await;
                let mut state = self.lock();
                if !state.closed {
                    return Some(state.take());
                }
            }
        }
    }

    async fn retried(&self) {
        loop {
            self.bell.notified().await;
            let state = self.lock();
            if state.failures == 0 || state.closed {
                return;
            }
        }
    }

    /// The call has failed: the same changes come again, before what came later.
    fn put_back(&self, batch: Batch) {
        let mut state = self.lock();
        state.failures = state.failures.saturating_add(1);
        state.overflow |= batch.overflow;
        for (object, mut states) in batch.objects.into_iter().rev() {
            match state.waiting.get_mut(&object) {
                Some(later) => {
                    // The first of the later ones is the last of these.
                    states.extend(later.drain(1..));
                    *later = states;
                }
                None => {
                    state.waiting.insert(object.clone(), states);
                    state.order.push_front(object);
                }
            }
        }
    }

    fn succeeded(&self) {
        self.lock().failures = 0;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, object: Watched, change: Change) {
        let objects = self.waiting.len();
        match self.waiting.get_mut(&object) {
            Some(states) if states.len() <= STATES => states.push(change.new),
            None if objects < OBJECTS => {
                self.order.push_back(object.clone());
                self.waiting.insert(object, vec![change.old, change.new]);
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
        let mut batch = Batch {
            overflow: std::mem::take(&mut self.overflow),
            ..Batch::default()
        };
        let mut changes = 0;
        while let Some(object) = self.order.front() {
            let states = self.waiting.get(object).map_or(0, Vec::len);
            changes += states.saturating_sub(1);
            if changes > BATCH && !batch.objects.is_empty() {
                break;
            }
            let Some(object) = self.order.pop_front() else {
                break;
            };
            if let Some(states) = self.waiting.remove(&object) {
                batch.objects.push((object, states));
            }
        }
        batch
    }
}

/// Maps changes until the controller ends, while this host leads.
pub async fn run(slot: Arc<Slot>, controller: Arc<Controller>, leadership: Arc<Leadership>) {
    while let Some(batch) = controller.mapper.next().await {
        leadership.leads().await;
        // As for a turn: no call starts on an older generation after a newer one was announced.
        let starting = slot.begin();
        let generation = starting.generation.clone();
        let Some(sources) = generation.sources(&controller).cloned() else {
            return;
        };
        if batch.overflow {
            tracing::warn!(
                controller = controller.label,
                "too many changes wait to be mapped: every key is looked at instead"
            );
            controller.queue.add_low_all(sources.keys());
        }
        let changes = batch.changes();
        if changes.is_empty() {
            continue;
        }
        let request = MapRequest {
            controller: &controller.name,
            changes: &changes,
        };
        let mapped = generation
            .plugin
            .map_changes(&request, sources.clone(), || drop(starting))
            .await;
        let problem = match mapped {
            Ok(Ok(names)) => {
                // What the store does not hold is no key: its own event wakes it when it comes.
                for name in names
                    .into_iter()
                    .filter(|name| sources.snapshot(name).is_some())
                {
                    controller.queue.add(name);
                }
                controller.mapper.succeeded();
                controller.metrics.wakes.mapped("success");
                continue;
            }
            Ok(Err(message)) => vmhost_core::cut(&message, 1024).to_owned(),
            Err(error) => {
                controller.metrics.call_error(&error);
                error.to_string()
            }
        };
        controller.metrics.wakes.mapped("error");
        tracing::error!(
            controller = controller.label,
            "cannot map {} changes to keys, will be tried again: {problem}",
            changes.len()
        );
        controller.mapper.put_back(batch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_core::Object;

    fn object(version: u64) -> Option<Snapshot> {
        Some(Arc::new(Object {
            name: ObjectName::new(Some("a"), "x"),
            uid: "u".into(),
            version,
            text: "{}".into(),
        }))
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

    #[tokio::test(start_paused = true)]
    async fn changes_of_an_object_stay_together_and_in_order_also_after_a_failure() {
        let mapper = Mapper::default();
        push(&mapper, "x", 0, 1);
        push(&mapper, "y", 5, 6);
        push(&mapper, "x", 1, 2);
        let batch = mapper.next().await.unwrap();
        assert_eq!(versions(&batch), [(0, 1), (1, 2), (5, 6)]);
        push(&mapper, "x", 2, 0);
        push(&mapper, "z", 0, 9);
        mapper.put_back(batch);
        let start = tokio::time::Instant::now();
        let batch = mapper.next().await.unwrap();
        assert_eq!(start.elapsed(), FIRST);
        assert_eq!(versions(&batch).len(), 5);
        assert!(
            versions(&batch).ends_with(&[(0, 9)]),
            "what came later comes later"
        );
        assert!(
            versions(&batch)
                .windows(3)
                .any(|all| all == [(0, 1), (1, 2), (2, 0)])
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_swap_tries_again_at_once() {
        let mapper = Mapper::default();
        push(&mapper, "x", 0, 1);
        for _ in 0..10 {
            let batch = mapper.next().await.unwrap();
            mapper.put_back(batch);
        }
        mapper.retry();
        let start = tokio::time::Instant::now();
        assert!(mapper.next().await.is_some());
        assert_eq!(start.elapsed(), Duration::ZERO);
        mapper.close();
        assert!(mapper.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn too_much_becomes_a_look_at_every_key() {
        let mapper = Mapper::default();
        for version in 0..=STATES as u64 {
            push(&mapper, "x", version, version + 1);
        }
        push(&mapper, "y", 0, 1);
        let batch = mapper.next().await.unwrap();
        assert!(batch.overflow);
        assert_eq!(versions(&batch), [(0, 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_gets_no_more_than_the_contract_says() {
        let mapper = Mapper::default();
        for number in 0..BATCH + 10 {
            push(&mapper, &number.to_string(), 0, 1);
        }
        assert_eq!(mapper.next().await.unwrap().changes().len(), BATCH);
        assert_eq!(mapper.next().await.unwrap().changes().len(), 10);
        assert!(mapper.is_empty());
    }
}
