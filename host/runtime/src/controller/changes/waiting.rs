//! How changes wait, by object: they come in, leave in batches, and come back when a call fails.
//!
//! This module owns the limits of what waits. It must not know when a call begins.

use std::sync::Arc;

use vmhost_core::{Change, Snapshot};

use super::buffer::{MapBuffer, Room};
use super::{BATCH, Batch, Missed, State, Waiting, Watched};

/// Maximum object text per call, in bytes: a fraction of an instance's memory limit.
const BATCH_BYTES: usize = 8 << 20;
/// Maximum number of objects with waiting changes.
const OBJECTS: usize = 50_000;
/// Maximum number of waiting states per object.
pub(super) const STATES: usize = 32;
/// Consecutive failures of calls with one object alone, after which its changes are dropped and
/// every key is enqueued instead.
pub(super) const TRIES: u32 = 10;
/// The memory of a state besides its text, in bytes: the object's other fields, its name and its
/// entry in the buffer, rounded up.
pub(super) const OVERHEAD: usize = 256;

impl Waiting {
    fn bytes(&self) -> usize {
        let text = |object: &Snapshot| object.text.len();
        // Each state except the first and the last is passed twice: as new, then as old.
        2 * self.states.iter().flatten().map(text).sum::<usize>()
    }
}

impl State {
    pub(super) fn push(&mut self, buffer: &Arc<MapBuffer>, object: Watched, change: Change) {
        if self.closed {
            return;
        }
        if self.standby {
            self.missed = Some(Missed::StoodBy);
            return;
        }
        if !self.keep(buffer, object, change) {
            self.drop_all(Missed::Dropped);
        }
    }

    /// Returns `false` if there is no room for the change.
    fn keep(&mut self, buffer: &Arc<MapBuffer>, object: Watched, change: Change) -> bool {
        let objects = self.waiting.len();
        if let Some(waiting) = self.waiting.get_mut(&object) {
            if waiting.states.len() > STATES || !waiting.room.grow(size(&change.new)) {
                return false;
            }
            waiting.states.push(change.new);
            return true;
        }
        let mut room = Room::empty(buffer);
        if objects >= OBJECTS || !room.grow(size(&change.old) + size(&change.new)) {
            return false;
        }
        self.order.push_back(object.clone());
        let waiting = Waiting {
            states: vec![change.old, change.new],
            tries: 0,
            room,
        };
        self.waiting.insert(object, waiting);
        true
    }

    pub(super) fn clear(&mut self) {
        self.order.clear();
        self.waiting.clear();
        self.cleared += 1;
    }

    pub(super) fn drop_all(&mut self, why: Missed) {
        self.clear();
        self.missed = Some(why);
    }

    pub(super) fn take(&mut self) -> Batch {
        let mut batch = Batch {
            objects: Vec::new(),
            cleared: self.cleared,
        };
        let (mut changes, mut bytes) = (0, 0);
        while let Some(next) = self.order.front()
            && batch.objects.len() < self.most
        {
            let Some(waiting) = self.waiting.get(next) else {
                self.order.pop_front();
                continue;
            };
            changes += waiting.states.len().saturating_sub(1);
            bytes += waiting.bytes();
            if (changes > BATCH || bytes > BATCH_BYTES) && !batch.objects.is_empty() {
                break;
            }
            if let Some(object) = self.order.pop_front()
                && let Some(waiting) = self.waiting.remove(&object)
            {
                batch.objects.push((object, waiting));
            }
        }
        batch
    }

    pub(super) fn put_back(&mut self, batch: Batch) {
        if self.closed {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        let alone = batch.objects.len() == 1;
        self.most = (batch.objects.len() / 2).max(1);
        if batch.cleared != self.cleared {
            self.missed.get_or_insert(Missed::Dropped);
            return;
        }
        for (object, mut waiting) in batch.objects.into_iter().rev() {
            if alone {
                waiting.tries += 1;
            }
            if waiting.tries >= TRIES || waiting.states.len() > STATES + 1 {
                self.missed = Some(Missed::Dropped);
                self.failures = 0;
                continue;
            }
            if let Some(later) = self.waiting.get_mut(&object) {
                // The first of the later states equals the last of these.
                waiting.states.extend(later.states.drain(1..));
                waiting.room.absorb(&mut later.room);
                *later = waiting;
                continue;
            }
            if alone {
                self.order.push_back(object.clone());
                // The other objects need not wait for this one's back-off.
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

/// The memory of a state, in bytes.
fn size(state: &Option<Snapshot>) -> usize {
    OVERHEAD + state.as_ref().map_or(0, |object| object.text.len())
}
