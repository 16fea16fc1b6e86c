//! Whom a change wakes: predicates first, then the mapping from the changed object to keys.
//!
//! Runs on the informers' tasks, so it never waits. What the policy itself maps is handed to [`crate::turn::map`]. It must not know what becomes of a key that is woken.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use vmhost_cluster::{Index, Notice, NoticeCause, Query, Subscriber, Subscription};
use vmhost_core::{Change, Mapping, NamedPrimary, ObjectName, Predicate, Scope, Wakes};

/// Lets notices pass while it is open. Stores of a generation that is only being tried must not wake keys of the one that runs, nor must those of one that is over:
/// each own write would come twice.
#[derive(Debug, Default)]
pub(crate) struct Gate(AtomicBool);

impl Gate {
    /// From now on changes are told.
    pub(crate) fn open(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// From now on nothing is told.
    pub(crate) fn close(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The subscriptions to one kind: one for each watched namespace.
pub(crate) type Subscriptions = Arc<[Subscription]>;

/// Which keys a change of an object enqueues.
pub(crate) enum Enqueue {
    /// The object is the key.
    Itself,
    /// Primaries that the object names.
    Named(Mapping, Subscriptions),
    /// Primaries whose index holds the object's name.
    Indexed(Index, Subscriptions),
    /// The policy says.
    Guest,
}

/// The controller whose keys a watch wakes.
pub(crate) trait Wake: Send + Sync {
    /// Its name in log lines.
    fn label(&self) -> &str;

    /// An event of the watch of this number concerns a key.
    fn wake(&self, key: &ObjectName, source: u16, cause: NoticeCause, version: u64);

    /// The policy is to say which keys an object's change concerns.
    fn map(&self, source: u16, object: &ObjectName, change: Change);

    /// A predicate kept a change from waking anybody.
    fn filtered(&self);

    /// A predicate could not be decided, so that the change wakes.
    fn undecided(&self);
}

/// A decision that took longer than this was slow.
const SLOW: Duration = Duration::from_millis(10);
/// After so many slow decisions a predicate is asked no more: it would hold up the watches of others.
const SLOW_MOST: u32 = 20;

/// The subscriber of one watched kind.
pub(crate) struct Trigger {
    /// Closed: nothing happens.
    pub(crate) gate: Arc<Gate>,
    /// Which of the controller's watches it is.
    pub(crate) source: u16,
    /// What has to hold.
    pub(crate) predicate: Option<Arc<Predicate>>,
    /// How many of its decisions were slow.
    pub(crate) slow: AtomicU32,
    /// Which keys it wakes.
    pub(crate) enqueue: Enqueue,
    /// Whose keys they are.
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
        // The policy's last turn may have been undone, whatever the object looks like.
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
                "{SLOW_MOST} decisions of a predicate took longer than {SLOW:?} each: from now on every change wakes"
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
                self.controller.map(self.source, notice.name, change);
            }
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
