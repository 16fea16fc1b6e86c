//! Whom a change wakes: predicates first, then the mapping from the changed object to keys.
//!
//! Runs on the informers' tasks, so it never waits. What the policy itself maps is handed to [`crate::mapper`]. It must not know what becomes of a key that is woken.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use vmhost_cluster::{Cause, Index, Notice, Query, Subscriber, Subscription};
use vmhost_core::{Change, Mapping, NamedPrimary, ObjectName, Predicate, Scope, Wakes};

use crate::controller::Controller;

/// Lets notices pass while it is open. Stores of a generation that is only being tried must not wake keys of the one that runs, nor must those of one that is over:
/// each own write would come twice.
#[derive(Debug, Default)]
pub struct Gate(AtomicBool);

impl Gate {
    /// From now on changes are told.
    pub fn open(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// From now on nothing is told.
    pub fn close(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The subscriptions to one kind: one for each watched namespace.
pub type Subscriptions = Arc<[Subscription]>;

/// Whose keys a change of an object wakes.
pub enum Target {
    /// The object is the key.
    Itself,
    /// Primaries that the object names.
    Named(Mapping, Subscriptions),
    /// Primaries whose index holds the object's name.
    Indexed(Index, Subscriptions),
    /// The policy says.
    Guest,
}

/// A decision that took longer than this was slow.
const SLOW: Duration = Duration::from_millis(10);
/// After so many slow decisions a predicate is asked no more: it would hold up the watches of others.
const SLOW_MOST: u32 = 20;

/// The subscriber of one watched kind.
pub struct Trigger {
    /// Closed: nothing happens.
    pub gate: Arc<Gate>,
    /// Which of the controller's watches it is.
    pub source: u16,
    /// What has to hold.
    pub predicate: Option<Arc<Predicate>>,
    /// How many of its decisions were slow.
    pub slow: AtomicU32,
    /// Whom it wakes.
    pub target: Target,
    /// Whose keys they are.
    pub controller: Arc<Controller>,
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
        // The policy's last turn may have been undone, whatever the object looks like.
        if notice.cause == Cause::Rewound {
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
                controller = &*self.controller.label,
                "{SLOW_MOST} decisions of a predicate took longer than {SLOW:?} each: from now on every change wakes"
            );
        }
        match wakes {
            Wakes::Yes => true,
            Wakes::No => {
                self.controller.metrics.wakes.filtered.inc();
                false
            }
            Wakes::Error(reason) => {
                self.controller.metrics.wakes.predicate_errors.inc();
                tracing::debug!(
                    controller = &*self.controller.label,
                    object = %notice.name,
                    "a predicate cannot be decided, so the change wakes: {reason}"
                );
                true
            }
        }
    }

    fn wake(&self, notice: &Notice<'_>) {
        let wake = |name: &ObjectName| {
            self.controller
                .wake(name, self.source, notice.cause, notice.version);
        };
        match &self.target {
            Target::Itself => wake(notice.name),
            Target::Named(mapping, primaries) => {
                named(mapping, notice, primaries).iter().for_each(wake);
            }
            Target::Indexed(index, primaries) => {
                indexed(index, notice.name, primaries).iter().for_each(wake);
            }
            Target::Guest => self.controller.mapper.push(
                (self.source, notice.name.clone()),
                Change {
                    old: notice.old.cloned(),
                    new: notice.new.cloned(),
                },
            ),
        }
    }
}

/// The primaries that the old and the new object name, each once. Whether the primary kind has
/// namespaces only its store can tell: a name that it does not hold is no key. An owner reference
/// names an object by its uid: a later object of the same name is not the owner.
fn named(mapping: &Mapping, notice: &Notice<'_>, primaries: &Subscriptions) -> HashSet<ObjectName> {
    let is_key = |named: &NamedPrimary<'_>| {
        let uid = named.uid.as_deref();
        primaries
            .iter()
            .filter_map(|primary| primary.store().get(named.name.as_str()))
            .any(|object| uid.is_none_or(|uid| uid == object.uid()))
    };
    let mut names = HashSet::default();
    for object in [notice.old, notice.new].into_iter().flatten() {
        for scope in [Scope::Namespaced, Scope::Cluster] {
            let found = mapping.names(&object.text, &object.name, scope);
            names.extend(found.into_iter().filter(is_key).map(|named| named.name));
        }
    }
    names
}

fn indexed(index: &Index, name: &ObjectName, primaries: &Subscriptions) -> Vec<ObjectName> {
    let query = Query {
        index: Some((index, name.name())),
        ..Query::default()
    };
    let found = primaries.iter().filter_map(|primary| {
        // The subscription asked for the index, so the store keeps it.
        primary.store().page(&query).ok()
    });
    // In the object's namespace, or in none: a primary without a namespace may name objects anywhere.
    found
        .flat_map(|(objects, _)| objects)
        .map(|object| object.name.clone())
        .filter(|primary| {
            let namespace = primary.namespace();
            name.namespace().is_none() || namespace.is_none() || namespace == name.namespace()
        })
        .collect()
}

/// The lane of a cause: what nobody has changed just now waits behind what somebody has.
pub fn is_fresh(cause: Cause) -> bool {
    matches!(cause, Cause::Changed | Cause::Deleted)
}
