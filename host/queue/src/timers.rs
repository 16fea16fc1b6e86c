//! When delayed keys are due: a binary heap of times. Each slot has its position in the heap, so
//! that a delay can be cancelled.
//!
//! client-go's `delaying_queue.go` avoids stale entries in the same way. Equal times fire in the
//! order of insertion. This module does not know clocks: a time is a number of nanoseconds.

use crate::segments::Segments;
use crate::slots::{NIL, Slots};

#[derive(Clone, Copy)]
struct Timer {
    due: u64,
    /// Order of insertion, which breaks ties.
    sequence: u64,
    slot: u32,
}

impl Timer {
    fn before(&self, other: &Self) -> bool {
        (self.due, self.sequence) < (other.due, other.sequence)
    }
}

/// The timers; see the module.
pub(crate) struct Timers {
    /// A heap, earliest first. For each position `p`, `slots[heap[p].slot].timer == p`.
    heap: Segments<Timer>,
    sequence: u64,
}

impl Timers {
    pub(crate) const fn new() -> Self {
        Self {
            heap: Segments::new(),
            sequence: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// The time of the first timer.
    #[inline]
    pub(crate) fn first(&self) -> Option<u64> {
        (self.heap.len() > 0).then(|| self.heap[0].due)
    }

    /// The slot of the first timer.
    pub(crate) fn first_slot(&self) -> Option<u32> {
        (self.heap.len() > 0).then(|| self.heap[0].slot)
    }

    /// The time of the timer at this position of the heap.
    pub(crate) fn due(&self, position: u32) -> u64 {
        self.heap[position as usize].due
    }

    /// Starts the timer of a slot that has none.
    pub(crate) fn insert<K>(&mut self, slots: &mut Slots<K>, slot: u32, due: u64) {
        self.sequence += 1;
        self.heap.push(Timer {
            due,
            sequence: self.sequence,
            slot,
        });
        self.up(slots, self.heap.len() - 1);
    }

    /// Stops the timer of a slot that has one.
    pub(crate) fn remove<K>(&mut self, slots: &mut Slots<K>, slot: u32) {
        let hole = slots[slot].timer as usize;
        slots[slot].timer = NIL;
        let Some(last) = self.heap.pop() else { return };
        if hole == self.heap.len() {
            return;
        }
        self.heap[hole] = last;
        self.up(slots, hole);
        let settled = slots[last.slot].timer as usize;
        if settled == hole {
            self.down(slots, hole);
        }
    }

    fn put<K>(&mut self, slots: &mut Slots<K>, at: usize, timer: Timer) {
        self.heap[at] = timer;
        slots[timer.slot].timer = at as u32;
    }

    fn up<K>(&mut self, slots: &mut Slots<K>, mut at: usize) {
        let timer = self.heap[at];
        while at > 0 {
            let parent = self.heap[(at - 1) / 2];
            if !timer.before(&parent) {
                break;
            }
            self.put(slots, at, parent);
            at = (at - 1) / 2;
        }
        self.put(slots, at, timer);
    }

    fn down<K>(&mut self, slots: &mut Slots<K>, mut at: usize) {
        let timer = self.heap[at];
        loop {
            let mut child = at * 2 + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.heap[child + 1].before(&self.heap[child]) {
                child += 1;
            }
            let earlier = self.heap[child];
            if !earlier.before(&timer) {
                break;
            }
            self.put(slots, at, earlier);
            at = child;
        }
        self.put(slots, at, timer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_in_order_of_time_then_insertion_and_forgets_what_is_taken_back() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut slots, mut timers) = (Slots::new(), Timers::new());
        let mut expected = Vec::new();
        for n in 0..3000u32 {
            let (slot, due) = (slots.insert(n, n), random.u64(0..500));
            timers.insert(&mut slots, slot, due);
            expected.push((due, n, slot));
        }
        for _ in 0..1000 {
            let (due, _, slot) = expected.swap_remove(random.usize(0..expected.len()));
            assert_eq!(timers.due(slots[slot].timer), due);
            timers.remove(&mut slots, slot);
        }
        expected.sort_unstable();
        for (due, _, slot) in expected {
            assert_eq!(
                (timers.first(), timers.first_slot()),
                (Some(due), Some(slot))
            );
            timers.remove(&mut slots, slot);
        }
        assert_eq!((timers.first(), timers.len()), (None, 0));
    }
}
