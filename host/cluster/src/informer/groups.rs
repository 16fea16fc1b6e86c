//! Which informers run, and which subscriptions share them: one informer for each kind, namespace
//! and selectors, which keeps what any of its subscriptions wants.
//!
//! ```text
//! join, leave, scope learned -> what the whole group wants -> if its informer keeps other fields:
//! start another -> move the subscriptions when it is ready -> the old one has no users and stops
//! ```
//!
//! This module must not know how a subscription moves (`hold` does). While its lock is held, no
//! gate is waited for: a subscriber may drop its subscription from within a notice.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use vmhost_core::Gvk;

use super::hold::{Hold, Moved};
use super::notice::Subscriber;
use super::observer::InformerObserver;
use super::running::{Closing, Running, Shared};
use super::spec::WatchSpec;
use super::state::InformerState;
use super::table::{Key, Table};
use super::task::{self, LearnScope};
use crate::reader::Reader;
use crate::store::Index;
use crate::text::Wanted;

/// All informers of one connection.
pub(super) struct Inner {
    reader: Reader,
    observer: Arc<dyn InformerObserver>,
    /// How long a watch may be silent.
    silence: Duration,
    handle: Handle,
    table: Mutex<Table>,
}

/// How long to wait for a target's position before it is computed anew. A store that follows the
/// cluster gets there within milliseconds.
const AGAIN: Duration = Duration::from_secs(5);

/// What a target needs before the next attempt to move to it.
enum Wait {
    Synced,
    Position(u64),
}

impl Inner {
    pub(super) fn new(
        reader: Reader,
        observer: Arc<dyn InformerObserver>,
        silence: Duration,
        handle: Handle,
    ) -> Arc<Self> {
        Arc::new(Self {
            reader,
            observer,
            silence,
            handle,
            table: Mutex::default(),
        })
    }

    /// Returns the callback by which a task reports whether a kind is namespaced.
    fn scope_learner(self: &Arc<Self>) -> LearnScope {
        let informers = Arc::downgrade(self);
        Box::new(move |kind, namespaced| {
            if let Some(informers) = informers.upgrade() {
                informers.learn_scope(kind, namespaced);
            }
        })
    }

    /// Creates a subscription on the informer that keeps what it and the rest of its group want.
    pub(super) fn join(
        self: &Arc<Self>,
        wish: WatchSpec,
        subscriber: Option<Arc<dyn Subscriber>>,
    ) -> Arc<Hold> {
        let (hold, key, target) = {
            let mut table = self.table.lock();
            let key = table.key_of(&wish);
            let target = self.aim(&mut table, &key, Some(&wish));
            table.next += 1;
            let hold = Hold::new(table.next, wish, subscriber, target.clone());
            let group = table.groups.entry(key.clone()).or_default();
            group.holds.push(hold.clone());
            group.aim_at(&target);
            (hold, key, target)
        };
        self.gather(&key, &target, true);
        hold
    }

    /// Removes a subscription.
    pub(super) fn leave(self: &Arc<Self>, hold: &Arc<Hold>) {
        hold.give_up();
        let aimed = {
            let mut table = self.table.lock();
            let key = table.key_of(hold.wish());
            if let Some(group) = table.groups.get_mut(&key) {
                group.holds.retain(|other| !Arc::ptr_eq(other, hold));
            }
            self.aim_again(&mut table, key)
        };
        if let Some((key, target)) = aimed {
            // May run within a notice, so no gate may be waited for here.
            self.gather(&key, &target, false);
        }
    }

    /// Records whether a kind is namespaced. Subscriptions to namespaces of a cluster-scoped kind
    /// share one watch.
    pub(super) fn learn_scope(self: &Arc<Self>, kind: &Gvk, namespaced: bool) {
        let aimed: Vec<_> = {
            let mut table = self.table.lock();
            let changed = if namespaced {
                table.cluster_scoped.remove(kind)
            } else {
                table.cluster_scoped.insert(kind.clone())
            };
            if !changed {
                return;
            }
            let affected = table.regroup(kind);
            affected
                .into_iter()
                .filter_map(|key| self.aim_again(&mut table, key))
                .collect()
        };
        for (key, target) in aimed {
            self.gather(&key, &target, true);
        }
    }

    /// Ends all informers, also those whose stores are still in use.
    pub(super) fn stop(&self) {
        let mut table = self.table.lock();
        table.stopped = true;
        for running in table.running.iter().filter_map(Weak::upgrade) {
            running.stop.cancel();
        }
    }

    /// The state of each informer, in the order of their start.
    pub(super) fn states(&self) -> Vec<InformerState> {
        let running: Vec<Arc<Running>> = self
            .table
            .lock()
            .running
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        running
            .iter()
            .map(|running| running.shared.state())
            .collect()
    }

    /// Returns the informer that keeps what the group and `joining` want: the present one if it
    /// keeps exactly that, else a new one.
    fn aim(
        self: &Arc<Self>,
        table: &mut Table,
        key: &Key,
        joining: Option<&WatchSpec>,
    ) -> Arc<Running> {
        let group = table.groups.get(key);
        let holds = group
            .map(|group| group.holds.as_slice())
            .unwrap_or_default();
        let wishes = holds.iter().map(|hold| hold.wish()).chain(joining);
        let (mut wanted, mut indexes) = (Wanted::metadata(), BTreeSet::<Index>::new());
        for wish in wishes {
            wanted = wanted.union(&wish.keeps());
            indexes.extend(wish.indexes.iter().cloned());
        }
        let present = group
            .and_then(|group| group.target.clone())
            .filter(|target| target.shared.spec.wanted.keeps_as(&wanted));
        let target = present.unwrap_or_else(|| self.start(table, key, wanted));
        target.shared.store.keep_indexes(&indexes);
        target
    }

    /// As `aim`, after a subscription has left or joined a group. `None` if the group is empty, or
    /// nothing has changed.
    fn aim_again(self: &Arc<Self>, table: &mut Table, key: Key) -> Option<(Key, Arc<Running>)> {
        if table.groups.get(&key)?.holds.is_empty() {
            table.groups.remove(&key);
            return None;
        }
        let target = self.aim(table, &key, None);
        let group = table.groups.get_mut(&key)?;
        group.aim_at(&target);
        let moves = group.holds.iter().any(|hold| !hold.is_on(&target));
        moves.then_some((key, target))
    }

    fn start(self: &Arc<Self>, table: &mut Table, key: &Key, wanted: Wanted) -> Arc<Running> {
        table.next += 1;
        let spec = WatchSpec {
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
            label_selector: key.label_selector.clone(),
            field_selector: key.field_selector.clone(),
            wanted,
            indexes: BTreeSet::new(),
        };
        let shared = Shared::new(table.next, spec, self.observer.clone());
        let stop = CancellationToken::new();
        if table.stopped {
            stop.cancel();
        }
        let task = task::Task::new(
            self.reader.clone(),
            shared.clone(),
            self.scope_learner(),
            self.silence,
        );
        self.handle.spawn({
            let (stop, store) = (stop.clone(), Closing(shared.store.clone()));
            async move {
                stop.run_until_cancelled(task.run()).await;
                drop(store);
            }
        });
        let running = Arc::new(Running { shared, stop });
        table.running.retain(|running| running.strong_count() > 0);
        table.running.push(Arc::downgrade(&running));
        running
    }

    /// Moves all subscriptions of a group to its target: now as far as possible, and the others
    /// when the target is ready.
    fn gather(self: &Arc<Self>, key: &Key, target: &Arc<Running>, now: bool) {
        if now && self.try_gather(key, target).is_none() {
            return;
        }
        // The task keeps no informer alive: it ends with the target's store.
        let (key, store) = (key.clone(), target.shared.store.clone());
        let (inner, target) = (Arc::downgrade(self), Arc::downgrade(target));
        self.handle.spawn(async move {
            while !store.is_closed() {
                let wait = {
                    let (Some(inner), Some(target)) = (inner.upgrade(), target.upgrade()) else {
                        return;
                    };
                    inner.try_gather(&key, &target)
                };
                match wait {
                    None => return,
                    Some(Wait::Synced) => store.synced().await,
                    Some(Wait::Position(version)) => {
                        // The position of the other store may have gone back meanwhile.
                        let _ = timeout(AGAIN, store.caught_up(version)).await;
                    }
                }
                tokio::task::yield_now().await;
            }
        });
    }

    /// Tries once to move every subscription that is elsewhere. `None` if there are none, or the
    /// group has another target by now.
    fn try_gather(&self, key: &Key, target: &Arc<Running>) -> Option<Wait> {
        let elsewhere: Vec<Arc<Hold>> = {
            let table = self.table.lock();
            let group = table.groups.get(key)?;
            if !group
                .target
                .as_ref()
                .is_some_and(|present| Arc::ptr_eq(present, target))
            {
                return None;
            }
            let holds = group.holds.iter();
            holds.filter(|hold| !hold.is_on(target)).cloned().collect()
        };
        let mut wait = None;
        for hold in elsewhere {
            wait = match (hold.move_to(target), wait) {
                (Moved::Done, wait) => wait,
                (Moved::Unsynced, _) | (_, Some(Wait::Synced)) => Some(Wait::Synced),
                (Moved::Behind(version), Some(Wait::Position(other))) => {
                    Some(Wait::Position(version.max(other)))
                }
                (Moved::Behind(version), None) => Some(Wait::Position(version)),
            };
        }
        wait
    }
}
