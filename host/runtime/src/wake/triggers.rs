//! **Enqueue.** Finds the keys that a change wakes: predicates first, then the mapping from the
//! changed object to keys.
//!
//! It runs on the informers' tasks, so it never waits. Changes that the plugin maps itself are
//! handed to [`crate::turn::map`]. This module must not know how a woken key is processed.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
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
/// The number of slow evaluations after which a predicate is disabled, since it would delay other
/// controllers' watches.
const SLOW_MOST: u32 = 20;

/// The subscriber of one watched kind.
pub(crate) struct Trigger {
    /// While the gate is closed, notices are ignored.
    pub(crate) gate: Arc<Gate>,
    /// This watch.
    pub(crate) watch: WatchId,
    /// The predicate that a change must pass, if any.
    pub(crate) predicate: Option<Arc<Predicate>>,
    /// The number of slow evaluations.
    pub(crate) slow: AtomicU32,
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
        if self.slow.load(Ordering::Relaxed) >= SLOW_MOST {
            return true;
        }
        let old = notice.old.map(|object| &object.text);
        let new = notice.new.map(|object| &object.text);
        let started = Instant::now();
        let wakes = predicate.wakes(old, new);
        if started.elapsed() > SLOW && self.slow.fetch_add(1, Ordering::Relaxed) + 1 == SLOW_MOST {
            tracing::warn!(
                controller = self.controller.label(),
                "{SLOW_MOST} evaluations of a predicate took longer than {SLOW:?} each; disabling it, so every change enqueues its keys"
            );
        }
        match wakes {
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
