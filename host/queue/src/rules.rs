//! What each call of the queue's API means for its key: the kinds of add, delays, failures, and forgetting.
//!
//! Every function here runs under the lock, for one key (or a batch), in time that does not depend on how many keys there
//! are, but for the logarithm in the timers. Knows nothing of threads and waiting.

use crate::metrics::Lane;
use crate::slots::{NIL, Place};
use crate::state::{Phase, State};

/// Slots looked at in one hold of the lock by [`State::clear_back_offs`]: tens of microseconds.
const CLEAR_BATCH: u32 = 128;

/// Who says that a key is dirty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// Somebody else changed something.
    Fresh,
    /// An initial list, a resync, a swap: nothing changed.
    Low,
    /// The event of this host's own write.
    Own,
}

/// A key as the caller has it: given away, or lent and cloned only if the queue has to keep it.
pub(crate) trait Given<K> {
    fn key(&self) -> &K;
    fn keep(self) -> K;
}

impl<K> Given<K> for K {
    fn key(&self) -> &K {
        self
    }
    fn keep(self) -> K {
        self
    }
}

impl<K: Clone> Given<K> for &K {
    fn key(&self) -> &K {
        self
    }
    fn keep(self) -> K {
        self.clone()
    }
}

impl<K: Eq> State<K> {
    fn entry(&mut self, hash: u32, key: impl Given<K>) -> u32 {
        let known = self.index.find(&self.slots, hash, key.key());
        known.unwrap_or_else(|| {
            let at = self.slots.insert(key.keep(), hash);
            self.index.insert(&mut self.slots, at);
            at
        })
    }

    pub(crate) fn add(&mut self, hash: u32, key: impl Given<K>, cause: Cause) {
        if self.phase != Phase::Open {
            return;
        }
        let at = self.entry(hash, key);
        let slot = &self.slots[at];
        if slot.place == Place::Queued(Lane::High) && slot.timer == NIL {
            // The common duplicate.
            return;
        }
        if cause == Cause::Low {
            return self.enqueue(at, Lane::Low);
        }
        if slot.timer != NIL {
            // The pending retry will see the own write; there is nothing to hurry for.
            if cause == Cause::Own && slot.timer_back_off {
                return;
            }
            self.stop_timer(at);
        }
        if cause == Cause::Own && self.slots[at].place == Place::Running {
            self.note_dirty_run(at, Lane::High);
            self.slots[at].again_own = true;
            return;
        }
        self.enqueue(at, Lane::High);
    }

    pub(crate) fn add_after(&mut self, hash: u32, key: K, delay: u64) {
        if self.phase != Phase::Open {
            return;
        }
        self.metrics.retry();
        if delay == 0 {
            return self.add(hash, key, Cause::Fresh);
        }
        let at = self.entry(hash, key);
        let due = self.now().saturating_add(delay);
        self.start_timer(at, due, Lane::High, false);
    }

    /// `floor`: no add of any kind brings the key up before `at_least` is over.
    pub(crate) fn add_rate_limited(&mut self, hash: u32, key: K, at_least: u64, floor: bool) {
        if self.phase != Phase::Open {
            return;
        }
        self.metrics.retry();
        let at = self.entry(hash, key);
        let now = self.now();
        let slot = &mut self.slots[at];
        let running = slot.place == Place::Running;
        let due = if running && slot.early {
            // The back-off that this run cut short goes on as if the run had not been. Its token is paid for.
            slot.back_off_until.max(now.saturating_add(at_least))
        } else {
            let own = self.back_off.delay(slot.failures);
            let shared = self.bucket.as_mut().map_or(0, |bucket| bucket.take(now));
            self.failing += usize::from(slot.failures == 0);
            slot.failures = slot.failures.saturating_add(1);
            now.saturating_add(own.max(shared).max(at_least))
        };
        // An earlier back-off that is still pending wins, as its timer does; one that was forgotten is known by its timer only.
        let until = match (slot.timer_back_off, slot.back_off_until) {
            (true, 0) => due.min(self.timers.due(slot.timer)),
            (true, pending) => due.min(pending),
            (false, _) => due,
        };
        slot.back_off_until = until;
        if floor {
            self.raise_floor(at, now.saturating_add(at_least));
        }
        let slot = &mut self.slots[at];
        let lane = if running { slot.ran_in } else { Lane::High };
        if running {
            // Own writes of this run are what the retry will look at.
            slot.again_own = false;
        }
        if due <= now {
            return self.enqueue(at, lane);
        }
        self.start_timer(at, due, lane, true);
    }

    fn clear_failures(&mut self, at: u32) {
        let slot = &mut self.slots[at];
        if slot.failures != 0 {
            slot.failures = 0;
            self.failing -= 1;
        }
        slot.back_off_until = 0;
        slot.early = false;
    }

    pub(crate) fn forget(&mut self, hash: u32, key: &K) {
        if let Some(at) = self.index.find(&self.slots, hash, key) {
            self.clear_failures(at);
            self.release(at);
        }
    }

    pub(crate) fn num_requeues(&self, hash: u32, key: &K) -> u32 {
        self.index
            .find(&self.slots, hash, key)
            .map_or(0, |at| self.slots[at].failures)
    }

    /// The keys in a batch of slots; returns where the next batch begins.
    pub(crate) fn keys(&self, from: u32, into: &mut Vec<K>) -> Option<u32>
    where
        K: Clone,
    {
        let to = from.saturating_add(CLEAR_BATCH).min(self.slots.end());
        let live = (from..to).filter(|&at| self.slots.is_live(at));
        into.extend(live.filter_map(|at| self.slots[at].key.clone()));
        (to < self.slots.end()).then_some(to)
    }

    /// Drops failures and back-offs in a batch of slots; returns where the next batch begins.
    pub(crate) fn clear_back_offs(&mut self, from: u32) -> Option<u32> {
        let to = from.saturating_add(CLEAR_BATCH).min(self.slots.end());
        for at in from..to {
            if !self.slots.is_live(at) {
                continue;
            }
            self.clear_failures(at);
            if self.slots[at].timer_back_off {
                if self.slots[at].timer_plain {
                    self.slots[at].timer_back_off = false;
                    self.backing_off -= 1;
                } else {
                    self.stop_timer(at);
                }
                if self.phase == Phase::Open {
                    self.enqueue(at, Lane::Low);
                }
            }
            self.release(at);
        }
        (to < self.slots.end() && self.failing + self.backing_off > 0).then_some(to)
    }
}
