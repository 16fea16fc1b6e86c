//! One subscription's place: which informer it uses at the moment, and how it moves to another one without missing a change.
//!
//! It must not know why it moves. Locks are taken in the order gate, place; never a gate under a place.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use vmhost_core::{ObjectName, Snapshot};

use super::running::{Running, Shared};
use super::{Cause, InformerState, Notice, Subscriber, WatchSpec};
use crate::store::Store;

/// A subscription's hold on an informer.
pub(super) struct Hold {
    id: u64,
    wish: WatchSpec,
    subscriber: Option<Arc<dyn Subscriber>>,
    /// Of `place.running`, to be read without a lock.
    shared: ArcSwap<Shared>,
    place: Mutex<Place>,
}

struct Place {
    /// None: it was given up.
    running: Option<Arc<Running>>,
    /// Number of the informer that it is to use.
    aim: u64,
    /// Was the subscriber told what is there? Until then it is told no changes either.
    attached: bool,
}

/// How an attempt to move ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// It is there, or was given up.
    Done,
    /// The new store has not got its first list.
    Unsynced,
    /// The new store has to get to this version first.
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
            place: Mutex::new(Place {
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

    /// It is to use this one: an attempt to move it anywhere else does nothing from now on.
    pub(super) fn aim_at(&self, running: &Running) {
        self.place().aim = running.shared.id;
    }

    /// Does it use this one?
    pub(super) fn is_on(&self, running: &Arc<Running>) -> bool {
        self.place().is_on(running)
    }

    /// Tells the subscriber what is there, and from then on what changes.
    pub(super) fn attach(&self) {
        let Some(subscriber) = &self.subscriber else {
            return;
        };
        loop {
            let Some(running) = self.place().running.clone() else {
                return;
            };
            let shared = &running.shared;
            let _gate = shared.gate();
            {
                // It may have been moved before the gate was closed.
                let mut place = self.place();
                if !place.is_on(&running) {
                    continue;
                }
                place.attached = true;
                shared.add(self.id, subscriber.clone());
            }
            for snapshot in &shared.store.snapshots() {
                subscriber.notice(Notice::shown(Cause::Initial, None, snapshot));
            }
            return;
        }
    }

    /// Gives the place up. Takes no gate: a subscriber may do it from within a notice.
    pub(super) fn give_up(&self) {
        let mut place = self.place();
        if let Some(running) = place.running.take() {
            running.shared.remove(self.id);
            running.shared.users.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Moves to another informer and tells what its store shows differently, if that store is complete up to where the present one is: time never runs
    /// backwards for who reads. A store that has shown nothing yet is left at once.
    pub(super) fn move_to(&self, target: &Arc<Running>) -> Moved {
        loop {
            let from = {
                let place = self.place();
                match &place.running {
                    Some(from) if place.aim == target.shared.id && !place.is_on(target) => {
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
                // Where the kind has vanished, no version comes any more; and nothing is shown.
                if new.position() < old.position() && !new.is_absent() {
                    return Moved::Behind(old.position());
                }
            }
            match self.settle_on(&from, target) {
                // Somebody else was faster.
                None => continue,
                Some(Some(subscriber)) => tell_difference(&**subscriber, old, new),
                Some(None) => {}
            }
            return Moved::Done;
        }
    }

    /// Under both gates. None: it is elsewhere by now, or to go elsewhere. Otherwise the subscriber, if it was told what the old store shows.
    fn settle_on(
        &self,
        from: &Arc<Running>,
        target: &Arc<Running>,
    ) -> Option<Option<&Arc<dyn Subscriber>>> {
        let mut place = self.place();
        if !place.is_on(from) || place.aim != target.shared.id {
            return None;
        }
        self.shared.store(target.shared.clone());
        from.shared.remove(self.id);
        from.shared.users.fetch_sub(1, Ordering::Relaxed);
        target.shared.users.fetch_add(1, Ordering::Relaxed);
        let told = self.subscriber.as_ref().filter(|_| place.attached);
        if let Some(subscriber) = told {
            target.shared.add(self.id, subscriber.clone());
        }
        place.running = Some(target.clone());
        Some(told)
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    fn is_on(&self, running: &Arc<Running>) -> bool {
        let present = self.running.as_ref();
        present.is_some_and(|present| Arc::ptr_eq(present, running))
    }
}

/// Tells what a subscriber who knows the old store has to know of the new one.
fn tell_difference(subscriber: &dyn Subscriber, old: &Store, new: &Store) {
    let cause = if old.is_synced() {
        Cause::Relisted
    } else {
        Cause::Initial
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
