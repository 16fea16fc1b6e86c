//! When delayed keys are due. Equal times fire in the order of insertion.
//!
//! A slot notes its own timer, so that a delay can be cancelled: client-go's `delaying_queue.go`
//! avoids stale entries in the same way. This module does not know clocks: a time is a number of
//! nanoseconds.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use crate::slots::{Slots, Timer};

/// The timers; see the module.
pub(crate) struct Timers {
    /// For each entry, `slots[slot].timer == Some(timer)`.
    slots: BTreeMap<Timer, u32>,
    sequence: NonZeroU64,
}

impl Timers {
    pub(crate) const fn new() -> Self {
        Self {
            slots: BTreeMap::new(),
            sequence: NonZeroU64::MIN,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The time and the slot of the first timer.
    pub(crate) fn first(&self) -> Option<(u64, u32)> {
        let (timer, slot) = self.slots.first_key_value()?;
        Some((timer.due, *slot))
    }

    /// Starts the timer of a slot that has none.
    pub(crate) fn insert<K, T>(&mut self, slots: &mut Slots<K, T>, slot: u32, due: u64) {
        self.sequence = self.sequence.saturating_add(1);
        let timer = Timer {
            due,
            sequence: self.sequence,
        };
        self.slots.insert(timer, slot);
        slots[slot].timer = Some(timer);
    }

    /// Stops the timer of a slot, if it has one.
    pub(crate) fn remove<K, T>(&mut self, slots: &mut Slots<K, T>, slot: u32) {
        if let Some(timer) = slots[slot].timer.take() {
            self.slots.remove(&timer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_in_order_of_time_then_insertion_and_forgets_what_is_taken_back() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut slots, mut timers) = (Slots::<u32, ()>::new(), Timers::new());
        let mut expected = Vec::new();
        for n in 0..3000u32 {
            let (slot, due) = (slots.insert(n, n), random.u64(0..500));
            timers.insert(&mut slots, slot, due);
            expected.push((due, n, slot));
        }
        for _ in 0..1000 {
            let (due, _, slot) = expected.swap_remove(random.usize(0..expected.len()));
            assert_eq!(slots[slot].timer.map(|timer| timer.due), Some(due));
            timers.remove(&mut slots, slot);
        }
        expected.sort_unstable();
        for (due, _, slot) in expected {
            assert_eq!(timers.first(), Some((due, slot)));
            timers.remove(&mut slots, slot);
        }
        assert_eq!((timers.first(), timers.len()), (None, 0));
    }
}
