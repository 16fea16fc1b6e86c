//! The binding of a subscription to an informer, and how it moves to another informer without
//! missing a change.
//!
//! This module must not know why a subscription moves. Lock order: gate, then binding; never take a
//! gate while holding a binding.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use vmhost_core::{ObjectName, Snapshot};

use super::notice::{Notice, NoticeCause, Subscriber};
use super::running::{Running, Shared};
use super::spec::WatchSpec;
use super::state::InformerState;
use crate::discovery::KindNames;
use crate::store::Store;

/// A subscription's hold on an informer.
pub(super) struct Hold {
    id: u64,
    wish: WatchSpec,
    subscriber: Option<Arc<dyn Subscriber>>,
    /// The shared state of `binding.running`, readable without a lock.
    shared: ArcSwap<Shared>,
    binding: Mutex<Binding>,
}

/// The informer to which a hold is bound.
struct Binding {
    /// `None` if the hold was given up.
    running: Option<Arc<Running>>,
    /// Number of the informer that the hold should use.
    aim: u64,
    /// Whether the subscriber was notified of the existing objects. Until then it gets no notices
    /// of changes either.
    attached: bool,
}

/// The result of an attempt to move.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// The hold is on the target, or was given up.
    Done,
    /// The new store has not received its first list.
    Unsynced,
    /// The new store must reach this version first.
    Behind(u64),
}

impl Hold {
    pub(super) fn new(
        id: u64,
        wish: WatchSpec,
        subscriber: Option<Arc<dyn Subscriber>>,
        running: Arc<Running>,
    ) -> Arc<Self> {
        running.shared.users.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self {
            id,
            wish,
            subscriber,
            shared: ArcSwap::new(running.shared.clone()),
            binding: Mutex::new(Binding {
                aim: running.shared.id,
                running: Some(running),
                attached: false,
            }),
        })
    }

    pub(super) fn wish(&self) -> &WatchSpec {
        &self.wish
    }

    pub(super) fn store(&self) -> Arc<Store> {
        self.shared.load().store.clone()
    }

    pub(super) fn state(&self) -> InformerState {
        self.shared.load().state()
    }

    pub(super) fn names(&self) -> Option<Arc<KindNames>> {
        self.shared.load().names.lock().clone()
    }

    /// Sets the target informer: attempts to move anywhere else do nothing from now on.
    pub(super) fn aim_at(&self, running: &Running) {
        self.binding.lock().aim = running.shared.id;
    }

    /// Returns whether the hold uses this informer.
    pub(super) fn is_on(&self, running: &Arc<Running>) -> bool {
        self.binding.lock().is_on(running)
    }

    /// Notifies the subscriber of the existing objects, and from then on of changes.
    pub(super) fn attach(&self) {
        let Some(subscriber) = &self.subscriber else {
            return;
        };
        loop {
            let Some(running) = self.binding.lock().running.clone() else {
                return;
            };
            let shared = &running.shared;
            let _gate = shared.gate();
            {
                // The hold may have moved before the gate was taken.
                let mut binding = self.binding.lock();
                if !binding.is_on(&running) {
                    continue;
                }
                binding.attached = true;
                shared.add(self.id, subscriber.clone());
            }
            for snapshot in &shared.store.snapshots() {
                subscriber.notice(Notice::shown(NoticeCause::Initial, None, snapshot));
            }
            return;
        }
    }

    /// Gives the informer up. Takes no gate: a subscriber may do this from within a notice.
    pub(super) fn give_up(&self) {
        let mut binding = self.binding.lock();
        if let Some(running) = binding.running.take() {
            running.shared.remove(self.id);
            running.shared.users.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Moves to another informer and notifies the differences of its store, if that store is
    /// complete up to the present store's position, so that readers never see older data. A store
    /// that has shown nothing yet is left at once.
    pub(super) fn move_to(&self, target: &Arc<Running>) -> Moved {
        loop {
            let from = {
                let binding = self.binding.lock();
                match &binding.running {
                    Some(from) if binding.aim == target.shared.id && !binding.is_on(target) => {
                        from.clone()
                    }
                    _ => return Moved::Done,
                }
            };
            let _gates = Shared::gates(&from.shared, &target.shared);
            let (old, new) = (&from.shared.store, &target.shared.store);
            if old.is_synced() || !old.is_empty() {
                if !new.is_synced() {
                    return Moved::Unsynced;
                }
                // If the kind is no longer served, no version arrives any more, and nothing is
                // shown.
                if new.position() < old.position() && !new.is_absent() {
                    return Moved::Behind(old.position());
                }
            }
            match self.settle_on(&from, target) {
                // Another call moved the hold first.
                None => continue,
                Some(Some(subscriber)) => tell_difference(&**subscriber, old, new),
                Some(None) => {}
            }
            return Moved::Done;
        }
    }

    /// Binds the hold to the target; the caller holds both gates. `None` if the hold is elsewhere
    /// by now, or has another target. Otherwise returns the subscriber, if it was notified of the
    /// old store's objects.
    fn settle_on(
        &self,
        from: &Arc<Running>,
        target: &Arc<Running>,
    ) -> Option<Option<&Arc<dyn Subscriber>>> {
        let mut binding = self.binding.lock();
        if !binding.is_on(from) || binding.aim != target.shared.id {
            return None;
        }
        self.shared.store(target.shared.clone());
        from.shared.remove(self.id);
        from.shared.users.fetch_sub(1, Ordering::Relaxed);
        target.shared.users.fetch_add(1, Ordering::Relaxed);
        let told = self.subscriber.as_ref().filter(|_| binding.attached);
        if let Some(subscriber) = told {
            target.shared.add(self.id, subscriber.clone());
        }
        binding.running = Some(target.clone());
        Some(told)
    }
}

impl Binding {
    fn is_on(&self, running: &Arc<Running>) -> bool {
        let present = self.running.as_ref();
        present.is_some_and(|present| Arc::ptr_eq(present, running))
    }
}

/// Notifies a subscriber that knows the old store of the differences of the new store.
fn tell_difference(subscriber: &dyn Subscriber, old: &Store, new: &Store) {
    let cause = if old.is_synced() {
        NoticeCause::Relisted
    } else {
        NoticeCause::Initial
    };
    let before = old.snapshots();
    let mut before: HashMap<&ObjectName, &Snapshot> = before
        .iter()
        .map(|snapshot| (&snapshot.name, snapshot))
        .collect();
    for snapshot in &new.snapshots() {
        let known = before.remove(&snapshot.name);
        let same = known.is_some_and(|known| {
            known.uid() == snapshot.uid() && known.version == snapshot.version
        });
        if !same {
            subscriber.notice(Notice::shown(cause, known, snapshot));
        }
    }
    for gone in before.into_values() {
        subscriber.notice(Notice::gone(gone, new.position()));
    }
}
