//! What each call of the queue's API means for a key: the kinds of add, delays, failures, and
//! forgetting.
//!
//! Every function here runs under the lock, for one key (or a batch), in time that does not depend
//! on the number of keys, except for the logarithm in the timers. This module does not know threads
//! and waiting.

use crate::decision::Decision;
use crate::limit::nanos;
use crate::metrics::Lane;
use crate::slots::Place;
use crate::state::{Phase, State};
use crate::tag::Tag;

/// Number of slots that [`State::clear_back_offs`] visits in one hold of the lock: tens of
/// microseconds.
const CLEAR_BATCH: u32 = 128;

/// Why a key becomes dirty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// A change that another client made.
    Fresh,
    /// An initial list, a resync, a swap: nothing changed.
    Low,
    /// The event of this host's own write.
    Own,
}

impl<K: Eq, T: Tag> State<K, T> {
    pub(crate) fn entry(&mut self, hash: u32, key: K) -> u32 {
        let known = self.index.find(&self.slots, hash, &key);
        known.unwrap_or_else(|| {
            let at = self.slots.insert(key, hash);
            self.index.insert(hash, at);
            at
        })
    }

    pub(crate) fn add(&mut self, hash: u32, key: K, cause: Cause, tag: T) {
        if self.phase != Phase::Open {
            return;
        }
        let at = self.entry(hash, key);
        let slot = &mut self.slots[at];
        slot.tag = slot.tag.join(tag);
        if slot.place == Place::Queued(Lane::High) && slot.timer.is_none() {
            // The common duplicate.
            return;
        }
        if cause == Cause::Low {
            return self.enqueue(at, Lane::Low);
        }
        if slot.timer.is_some() {
            // The pending retry covers the own write; an earlier run is not needed.
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

    pub(crate) fn add_after(&mut self, hash: u32, key: K, delay: u64, tag: T) {
        if self.phase != Phase::Open {
            return;
        }
        self.metrics.retry();
        if delay == 0 {
            return self.add(hash, key, Cause::Fresh, tag);
        }
        let at = self.entry(hash, key);
        let slot = &mut self.slots[at];
        slot.tag = slot.tag.join(tag);
        let due = self.clock.now().saturating_add(delay);
        self.start_timer(at, due, Lane::High, false);
    }

    pub(crate) fn forget(&mut self, hash: u32, key: &K) {
        if let Some(at) = self.index.find(&self.slots, hash, key) {
            self.clear_failures(at);
            self.release(at);
        }
    }

    /// Drops the failures and the backoff of one key, as [`State::clear_back_offs`].
    pub(crate) fn clear_back_off(&mut self, hash: u32, key: &K) {
        if let Some(at) = self.index.find(&self.slots, hash, key) {
            self.clear_back_off_at(at);
        }
    }

    pub(crate) fn num_requeues(&self, hash: u32, key: &K) -> u32 {
        self.index
            .find(&self.slots, hash, key)
            .map_or(0, |at| self.slots[at].failures)
    }
}

impl<K, T: Tag> State<K, T> {
    /// Ends the run of a key with the worker's decision.
    pub(crate) fn finish(&mut self, at: u32, decision: Decision) {
        match decision {
            Decision::Forget => self.clear_failures(at),
            Decision::After(_) if self.slots[at].is_dirty() => self.clear_failures(at),
            Decision::After(delay) => {
                self.clear_failures(at);
                self.bring_back(at, Lane::High, nanos(delay));
            }
            Decision::Postpone(delay) => {
                let lane = self.slots[at].ran_in;
                self.bring_back(at, lane, nanos(delay));
            }
            Decision::Now => self.bring_back(at, Lane::High, 0),
            Decision::RateLimited {
                at_least,
                not_before,
                anew,
            } => {
                if anew {
                    self.clear_failures(at);
                }
                self.rate_limit(at, nanos(at_least), nanos(not_before));
            }
        }
        self.done(at);
    }

    fn bring_back(&mut self, at: u32, lane: Lane, delay: u64) {
        if self.phase != Phase::Open {
            return;
        }
        if delay == 0 {
            self.stop_timer(at);
            return self.enqueue(at, lane);
        }
        self.metrics.retry();
        let due = self.clock.now().saturating_add(delay);
        self.start_timer(at, due, lane, false);
    }

    /// Records a failure of a key. Until `not_before` is over, no add of any kind queues the key.
    pub(crate) fn rate_limit(&mut self, at: u32, at_least: u64, not_before: u64) {
        if self.phase != Phase::Open {
            return;
        }
        self.metrics.retry();
        let now = self.clock.now();
        let at_least = at_least.max(not_before);
        let slot = &mut self.slots[at];
        let running = slot.place == Place::Running;
        let due = if running && slot.early {
            // The backoff that this run cut short continues as if there had been no run. The
            // bucket's token was taken when the backoff began.
            slot.back_off_until.max(now.saturating_add(at_least))
        } else {
            let own = self.back_off.delay(slot.failures);
            let shared = self.bucket.as_mut().map_or(0, |bucket| bucket.take(now));
            self.failing += usize::from(slot.failures == 0);
            slot.failures = slot.failures.saturating_add(1);
            now.saturating_add(own.max(shared).max(at_least))
        };
        // An earlier backoff that is still pending wins, as its timer does; after a forget only the
        // timer has its time.
        let until = match (slot.timer, slot.back_off_until) {
            (Some(timer), 0) if slot.timer_back_off => due.min(timer.due),
            (Some(_), pending) if slot.timer_back_off => due.min(pending),
            _ => due,
        };
        slot.back_off_until = until;
        if not_before > 0 {
            self.raise_floor(at, now.saturating_add(not_before));
        }
        let slot = &mut self.slots[at];
        let lane = if running { slot.ran_in } else { Lane::High };
        if running {
            // The retry covers the own writes of this run.
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

    /// Collects the keys in a batch of slots. Returns the start of the next batch.
    pub(crate) fn keys(&self, from: u32, into: &mut Vec<K>) -> Option<u32>
    where
        K: Clone,
    {
        let to = from.saturating_add(CLEAR_BATCH).min(self.slots.end());
        let live = (from..to).filter(|&at| self.slots.is_live(at));
        into.extend(live.filter_map(|at| self.slots[at].key.clone()));
        (to < self.slots.end()).then_some(to)
    }

    /// Drops failures and backoffs in a batch of slots. Returns the start of the next batch.
    pub(crate) fn clear_back_offs(&mut self, from: u32) -> Option<u32> {
        let to = from.saturating_add(CLEAR_BATCH).min(self.slots.end());
        for at in from..to {
            if self.slots.is_live(at) {
                self.clear_back_off_at(at);
            }
        }
        (to < self.slots.end() && self.failing + self.backing_off > 0).then_some(to)
    }

    fn clear_back_off_at(&mut self, at: u32) {
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
}
