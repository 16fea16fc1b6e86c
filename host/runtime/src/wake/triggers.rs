//! **Enqueue.** Finds the keys that a change wakes: predicates first, then the mapping from the
//! changed object to keys.
//!
//! It runs on the informers' tasks, so it never waits. Changes that the plugin maps itself are
//! handed to [`crate::turn::map`]. This module must not know how a woken key is processed.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use vmhost_cluster::{Index, Notice, NoticeCause, Query, Subscriber, Subscription};
use vmhost_core::{Change, Gvk, Mapping, NamedPrimary, ObjectName, Predicate, Wakes};

use crate::wake::keys;

/// Lets notices pass while it is open. The stores of a generation that is only being prepared must
/// not wake keys of the running one, nor may those of a replaced one: each own write would arrive
/// twice.
#[derive(Debug, Default)]
pub(crate) struct Gate(AtomicBool);

impl Gate {
    /// Opens the gate: changes wake keys.
    pub(crate) fn open(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Closes the gate: changes wake no keys.
    pub(crate) fn close(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The subscriptions to one kind: one for each watched namespace.
pub(crate) type Subscriptions = Arc<[Subscription]>;

/// The keys that a change of an object enqueues.
pub(crate) enum Enqueue {
    /// The object itself.
    Itself,
    /// The primaries that the object names.
    Named(Mapping, Subscriptions),
    /// The primaries whose index contains the object's name.
    Indexed(Index, Subscriptions),
    /// The keys that the plugin's `map-changes` returns.
    Guest,
}

/// One of a controller's watches.
pub(crate) struct WatchId {
    /// The number of the watch in the controller.
    pub(crate) number: u16,
    /// The kind of the watched objects.
    pub(crate) kind: Arc<Gvk>,
}

/// The controller whose keys a watch wakes.
pub(crate) trait Wake: Send + Sync {
    /// The controller's name in log lines.
    fn label(&self) -> &str;

    /// To be called when an event of a watch concerns a key.
    fn wake(&self, key: &ObjectName, watch: &WatchId, notice: &Notice<'_>);

    /// Called when the plugin has to map an object's change to keys.
    fn map(&self, source: u16, object: &ObjectName, change: Change);

    /// Called when a predicate filtered out a change.
    fn filtered(&self);

    /// Called when a predicate could not be evaluated, so that the change passes.
    fn undecided(&self);
}

/// The evaluation time above which a predicate is slow.
const SLOW: Duration = Duration::from_millis(10);
/// The time of slow evaluations after which a controller's predicates are disabled, since they
/// would delay other controllers' watches.
const SLOW_MOST: Duration = Duration::from_millis(500);

/// The time that slow evaluations have taken of all predicates of one controller in one generation:
/// each of many predicates would be slow for as long.
#[derive(Debug, Default)]
pub(crate) struct Slow(AtomicU64);

impl Slow {
    /// As [`Predicate::wakes`], and `Yes` once the predicates are disabled. `label` is the name of
    /// the controller in log lines.
    pub(crate) fn wakes(
        &self,
        label: &str,
        predicate: &Predicate,
        old: Option<&str>,
        new: Option<&str>,
    ) -> Wakes {
        if self.is_over() {
            return Wakes::Yes;
        }
        let started = Instant::now();
        let wakes = predicate.wakes(old, new);
        let mut time = started.elapsed();
        if time > SLOW {
            // The machine may have paused: that would not happen twice.
            let again = Instant::now();
            let _ = predicate.wakes(old, new);
            time = time.min(again.elapsed());
        }
        if self.took(time) {
            tracing::warn!(
                controller = label,
                "evaluations of predicates that took longer than {SLOW:?} each took {SLOW_MOST:?} together; disabling the controller's predicates, so every change enqueues its keys"
            );
        }
        wakes
    }

    fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= SLOW_MOST.as_micros() as u64
    }

    /// Counts the time of an evaluation. Returns whether it was the last one.
    fn took(&self, time: Duration) -> bool {
        if time <= SLOW {
            return false;
        }
        let time = time.as_micros() as u64;
        let before = self.0.fetch_add(time, Ordering::Relaxed);
        let most = SLOW_MOST.as_micros() as u64;
        (before..before.saturating_add(time)).contains(&(most - 1))
    }
}

/// The subscriber of one watched kind.
pub(crate) struct Trigger {
    /// While the gate is closed, notices are ignored.
    pub(crate) gate: Arc<Gate>,
    /// This watch.
    pub(crate) watch: WatchId,
    /// The predicate that a change must pass, if any.
    pub(crate) predicate: Option<Arc<Predicate>>,
    /// The time that slow evaluations have taken.
    pub(crate) slow: Arc<Slow>,
    /// The mapping from a change to keys.
    pub(crate) enqueue: Enqueue,
    /// The controller that owns the keys.
    pub(crate) controller: Arc<dyn Wake>,
}

impl Subscriber for Trigger {
    fn notice(&self, notice: Notice<'_>) {
        if self.gate.0.load(Ordering::Acquire) && self.passes(&notice) {
            self.wake(&notice);
        }
    }
}

impl Trigger {
    fn passes(&self, notice: &Notice<'_>) -> bool {
        let Some(predicate) = &self.predicate else {
            return true;
        };
        // After a rewind the effect of the last turn may be undone, whatever the object looks like.
        if notice.cause == NoticeCause::Rewound {
            return true;
        }
        let old = notice.old.map(|object| &object.text);
        let new = notice.new.map(|object| &object.text);
        let label = self.controller.label();
        match self.slow.wakes(label, predicate, old, new) {
            Wakes::Yes => true,
            Wakes::No => {
                self.controller.filtered();
                false
            }
            Wakes::Error(reason) => {
                self.controller.undecided();
                tracing::debug!(
                    controller = self.controller.label(),
                    object = %notice.name,
                    "cannot evaluate a predicate, so the change passes: {reason}"
                );
                true
            }
        }
    }

    fn wake(&self, notice: &Notice<'_>) {
        let wake = |name: &ObjectName| self.controller.wake(name, &self.watch, notice);
        match &self.enqueue {
            Enqueue::Itself => wake(notice.name),
            Enqueue::Named(mapping, primaries) => {
                named(mapping, notice, primaries).iter().for_each(wake);
            }
            Enqueue::Indexed(index, primaries) => {
                indexed(index, notice.name, primaries).iter().for_each(wake);
            }
            Enqueue::Guest => {
                let change = Change {
                    old: notice.old.cloned(),
                    new: notice.new.cloned(),
                };
                self.controller.map(self.watch.number, notice.name, change);
            }
        }
    }
}

/// Returns the primaries that the old and the new object name, each once.
fn named(mapping: &Mapping, notice: &Notice<'_>, primaries: &Subscriptions) -> HashSet<ObjectName> {
    let is_key = |named: &NamedPrimary<'_>| {
        let uid = named.uid.as_deref();
        primaries
            .iter()
            .filter_map(|primary| primary.store().get(named.name.as_str()))
            .any(|object| uid.is_none_or(|uid| uid == object.uid()))
    };
    let objects = [notice.old, notice.new].into_iter().flatten();
    let texts = objects.map(|object| &object.text);
    keys::named(mapping, notice.name, texts, is_key)
}

fn indexed(index: &Index, name: &ObjectName, primaries: &Subscriptions) -> Vec<ObjectName> {
    let query = Query {
        index: Some((index, name.name())),
        ..Query::default()
    };
    let found = primaries.iter().filter_map(|primary| {
        // The subscription requested the index, so the store has it.
        primary.store().page(&query).ok()
    });
    found
        .flat_map(|(objects, _)| objects)
        .map(|object| object.name.clone())
        .filter(|primary| keys::may_mean(primary, name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_core::PredicateDescription;

    #[test]
    fn slow_predicates_are_disabled_together() {
        let description: PredicateDescription =
            serde_json::from_str(r#"{"cel":"object.spec.on"}"#).unwrap();
        let predicate = Predicate::compile(&description).unwrap();
        let slow = Slow::default();
        let wakes = || slow.wakes("c", &predicate, None, Some(r#"{"spec":{"on":false}}"#));
        for _ in 0..1000 {
            assert!(!slow.took(SLOW), "it is not slow");
        }
        for _ in 0..9 {
            assert!(!slow.took(Duration::from_millis(50)));
        }
        assert_eq!(wakes(), Wakes::No);
        assert!(slow.took(Duration::from_millis(50)));
        assert!(!slow.took(Duration::from_millis(50)), "it is said once");
        assert_eq!(wakes(), Wakes::Yes);
    }
}
