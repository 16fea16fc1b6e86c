//! Which informers run, and who shares them: one for each kind, namespace and selectors, that keeps what any of its users wants.
//!
//! ```text
//! join, leave, scope learned -> what all of the group want -> not what its informer keeps? start another -> move the others when it is ready -> the old one,
//!                                                                                                            which nobody holds any more, stops
//! ```
//!
//! It must not know how a subscription moves (`hold` does). Under its lock no gate is waited for: a subscriber may give up its subscription from within a notice.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use vmhost_core::Gvk;

use super::hold::{Hold, Moved};
use super::running::{Closing, Running, Shared};
use super::table::{Key, Table};
use super::{InformerObserver, InformerState, Subscriber, WatchSpec, task};
use crate::connect::Connection;
use crate::store::Index;
use crate::text::Wanted;

/// All informers of one connection.
pub(super) struct Inner {
    connection: Connection,
    observer: Arc<dyn InformerObserver>,
    /// How long a watch may be silent.
    silence: Duration,
    handle: Handle,
    table: Mutex<Table>,
}

/// How long to wait for a target's position before it is worked out anew. A store that follows the
/// cluster gets there within milliseconds.
const AGAIN: Duration = Duration::from_secs(5);

/// What a target needs before the next attempt to move to it.
enum Wait {
    Synced,
    Position(u64),
}

impl Inner {
    pub(super) fn new(
        connection: Connection,
        observer: Arc<dyn InformerObserver>,
        silence: Duration,
        handle: Handle,
    ) -> Arc<Self> {
        Arc::new(Self {
            connection,
            observer,
            silence,
            handle,
            table: Mutex::default(),
        })
    }

    /// A new subscription, on the informer that keeps what it and all others of its group want.
    pub(super) fn join(
        self: &Arc<Self>,
        wish: WatchSpec,
        subscriber: Option<Arc<dyn Subscriber>>,
    ) -> Arc<Hold> {
        let (hold, key, target) = {
            let mut table = self.table();
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

    /// A subscription is over.
    pub(super) fn leave(self: &Arc<Self>, hold: &Arc<Hold>) {
        hold.give_up();
        let aimed = {
            let mut table = self.table();
            let key = table.key_of(hold.wish());
            if let Some(group) = table.groups.get_mut(&key) {
                group.holds.retain(|other| !Arc::ptr_eq(other, hold));
            }
            self.aim_again(&mut table, key)
        };
        if let Some((key, target)) = aimed {
            // This may be within a notice: no gate is to be waited for here.
            self.gather(&key, &target, false);
        }
    }

    /// An informer has found out where a kind's objects live. Those who asked for a namespace of a kind that has none share one watch.
    pub(super) fn learn_scope(self: &Arc<Self>, kind: &Gvk, namespaced: bool) {
        let aimed: Vec<_> = {
            let mut table = self.table();
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

    /// How each informer does, in the order of their start.
    pub(super) fn states(&self) -> Vec<InformerState> {
        let running: Vec<Arc<Running>> = self
            .table()
            .running
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        running
            .iter()
            .map(|running| running.shared.state())
            .collect()
    }

    /// The informer that keeps what the group and `joining` want: the present one if it keeps just that, else another one.
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

    /// The same after somebody has left or come from another group. None: nobody is left, or nothing has changed.
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
        let task = task::Task::new(
            self.connection.clone(),
            shared.clone(),
            Arc::downgrade(self),
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

    /// Moves all of a group to its target, now as far as may be, and the others when the target is ready for them.
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

    /// One attempt for all who are elsewhere. None: there are none, or the group aims at another informer by now.
    fn try_gather(&self, key: &Key, target: &Arc<Running>) -> Option<Wait> {
        let elsewhere: Vec<Arc<Hold>> = {
            let table = self.table();
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

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
