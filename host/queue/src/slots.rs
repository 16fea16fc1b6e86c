//! The state of each key: one slot per key, addressed by a small number that does not change while
//! the key is known.
//!
//! Lists, timers, the index and leases refer to slots by number, so that a key is hashed once per
//! add and never again. This module does not know the rules: `rules` decides which fields mean what
//! together.

use std::num::NonZeroU64;
use std::ops::{Index, IndexMut};

use crate::clock::Clock;
use crate::metrics::Lane;
use crate::tag::Tag;

/// No slot, no position.
pub(crate) const NIL: u32 = u32::MAX;

/// Slots per chunk. A chunk (some 40 KiB) is the unit of allocation.
const CHUNK: u32 = 512;

/// Number of slots that an empty queue may keep for the next keys: some 2 KiB.
const KEPT: usize = 32;

/// Where a key is: in the list of that name, or in no list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In no list: the key waits for a timer, or only its failures are remembered.
    Idle,
    /// Dirty, waiting for a worker.
    Queued(Lane),
    /// In processing.
    Running,
}

/// When a slot is due, and its place among those that are due at the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timer {
    pub(crate) due: u64,
    pub(crate) sequence: NonZeroU64,
}

/// The state of one key.
pub(crate) struct Slot<K, T> {
    /// `None` only in a free slot.
    pub(crate) key: Option<K>,
    /// The tags of the adds since the key was last taken.
    pub(crate) tag: T,
    /// The key's hash, so that the key is not hashed again.
    pub(crate) hash: u32,
    /// Neighbours in the list of `place`.
    pub(crate) prev: u32,
    /// See `prev`; in a free slot, the next free slot of the chunk.
    pub(crate) next: u32,
    /// The pending timer. `Timers` maintains this field.
    pub(crate) timer: Option<Timer>,
    /// Failures since the last forget. A key with failures keeps its slot.
    pub(crate) failures: u32,
    /// `List` maintains this field.
    pub(crate) place: Place,
    /// Set if the key became dirty while running: the lane for the key when its run ends.
    pub(crate) again: Option<Lane>,
    /// Whether an own write made the key dirty while running: a failure of this run clears the
    /// mark.
    pub(crate) again_own: bool,
    /// Whether this run began before `back_off_until`: its failure does not count.
    pub(crate) early: bool,
    /// The lane from which the last run was taken; a retry of that run goes back to it.
    pub(crate) ran_in: Lane,
    /// Whether the pending timer is an `add_after`. If `timer` is `None` both flags are false, else
    /// at least one is true.
    pub(crate) timer_plain: bool,
    /// Whether the pending timer is a backoff.
    pub(crate) timer_back_off: bool,
    /// The lane for the key when its timer fires.
    pub(crate) timer_lane: Lane,
    /// When the last counted failure may be retried; 0 if none. Unchanged when an add cuts the
    /// backoff short.
    pub(crate) back_off_until: u64,
    /// The key is not handed out before this time, whatever adds it; 0 if there is no floor.
    pub(crate) floor: u64,
    /// When the key became dirty; 0 if the metrics need no times.
    pub(crate) queued_at: u64,
    /// When the run began; 0 if the metrics need no times.
    pub(crate) started_at: u64,
}

impl<K, T: Tag> Slot<K, T> {
    /// Returns whether the key was added since its run began.
    pub(crate) fn is_dirty(&self) -> bool {
        self.again.is_some() || self.again_own
    }

    /// Returns whether no state is left.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.place == Place::Idle && self.timer.is_none() && self.failures == 0
    }

    /// Returns whether the key may not be handed out yet.
    #[inline]
    pub(crate) fn is_held(&self, clock: &mut Clock) -> bool {
        self.floor != 0 && self.floor > clock.now()
    }

    fn new(key: K, hash: u32) -> Self {
        Self {
            key: Some(key),
            tag: T::default(),
            hash,
            prev: NIL,
            next: NIL,
            timer: None,
            failures: 0,
            place: Place::Idle,
            again: None,
            again_own: false,
            early: false,
            ran_in: Lane::High,
            timer_plain: false,
            timer_back_off: false,
            timer_lane: Lane::High,
            back_off_until: 0,
            floor: 0,
            queued_at: 0,
            started_at: 0,
        }
    }
}

struct Chunk<K, T> {
    /// Up to `CHUNK` slots; no memory if the chunk has no key. The first chunk grows as a plain
    /// vector, because most queues are small.
    slots: Vec<Slot<K, T>>,
    /// Number of the first free slot in `slots`.
    free: u32,
    live: u32,
}

/// All slots; see the module.
pub(crate) struct Slots<K, T> {
    chunks: Vec<Chunk<K, T>>,
    /// The chunks with free slots, each once; new keys go to the last one.
    open: Vec<u32>,
    live: u32,
}

impl<K, T: Tag> Slots<K, T> {
    pub(crate) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            open: Vec::new(),
            live: 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn live(&self) -> u32 {
        self.live
    }

    /// One past the highest slot number that may be in use.
    pub(crate) fn end(&self) -> u32 {
        self.chunks.len() as u32 * CHUNK
    }

    /// Returns whether the slot with this number, which is below `end`, has a key.
    pub(crate) fn is_live(&self, at: u32) -> bool {
        self.chunks[(at / CHUNK) as usize]
            .slots
            .get((at % CHUNK) as usize)
            .is_some_and(|slot| slot.key.is_some())
    }

    /// Creates a slot for a key: idle, without a timer or failures, in no list.
    pub(crate) fn insert(&mut self, key: K, hash: u32) -> u32 {
        self.live += 1;
        let number = match self.open.last() {
            Some(&number) => number,
            None => {
                let number = self.chunks.len() as u32;
                self.chunks.push(Chunk {
                    slots: Vec::new(),
                    free: NIL,
                    live: 0,
                });
                self.open.push(number);
                number
            }
        };
        let chunk = &mut self.chunks[number as usize];
        chunk.live += 1;
        if chunk.live == CHUNK {
            self.open.pop();
        }
        if chunk.free != NIL {
            let at = chunk.free;
            let slot = &mut chunk.slots[(at % CHUNK) as usize];
            chunk.free = std::mem::replace(&mut slot.next, NIL);
            (slot.key, slot.hash) = (Some(key), hash);
            return at;
        }
        if number > 0 && chunk.slots.capacity() == 0 {
            chunk.slots.reserve_exact(CHUNK as usize);
        }
        let at = number * CHUNK + chunk.slots.len() as u32;
        chunk.slots.push(Slot::new(key, hash));
        at
    }

    /// Frees a slot, and returns its hash. The caller has reset its fields to those of a new slot
    /// (except those that an insert or a run overwrites).
    pub(crate) fn remove(&mut self, at: u32) -> u32 {
        self.live -= 1;
        let number = at / CHUNK;
        let chunk = &mut self.chunks[number as usize];
        let slot = &mut chunk.slots[(at % CHUNK) as usize];
        slot.key = None;
        slot.tag = T::default();
        slot.next = chunk.free;
        let hash = slot.hash;
        chunk.free = at;
        chunk.live -= 1;
        if self.live == 0 {
            self.reset();
            return hash;
        }
        if chunk.live == CHUNK - 1 {
            // Placed below the last, so that this chunk drains instead of being filled again.
            self.open.push(number);
            let len = self.open.len();
            if len > 1 {
                self.open.swap(len - 1, len - 2);
            }
        }
        if chunk.live == 0 && self.open.last() != Some(&number) {
            chunk.slots = Vec::new();
            chunk.free = NIL;
        }
        hash
    }
}

impl<K, T: Tag> Slots<K, T> {
    /// Frees the memory of an empty queue, unless it is negligible.
    #[inline]
    fn reset(&mut self) {
        if self.chunks.len() > 1 || self.chunks[0].slots.capacity() > KEPT {
            *self = Self::new();
        }
    }
}

impl<K, T> Index<u32> for Slots<K, T> {
    type Output = Slot<K, T>;

    #[inline]
    fn index(&self, at: u32) -> &Slot<K, T> {
        &self.chunks[(at / CHUNK) as usize].slots[(at % CHUNK) as usize]
    }
}

impl<K, T> IndexMut<u32> for Slots<K, T> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut Slot<K, T> {
        &mut self.chunks[(at / CHUNK) as usize].slots[(at % CHUNK) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_memory_of_gone_keys_back() {
        let mut slots = Slots::<u32, ()>::new();
        let all: Vec<u32> = (0..100 * CHUNK).map(|n| slots.insert(n, n)).collect();
        assert_eq!(slots.live(), 100 * CHUNK);
        for &at in &all[1..] {
            slots.remove(at);
        }
        let kept = slots
            .chunks
            .iter()
            .filter(|chunk| chunk.slots.capacity() > 0)
            .count();
        assert!(kept <= 2, "{kept} chunks kept for one key");
        assert_eq!((slots[all[0]].key, slots.live()), (Some(0), 1));
        let again: Vec<u32> = (0..100 * CHUNK - 1).map(|n| slots.insert(n, n)).collect();
        assert_eq!(
            slots.chunks.len(),
            100,
            "room is used again: {}",
            again.len()
        );
        slots.remove(all[0]);
        for &at in &again {
            slots.remove(at);
        }
        assert_eq!((slots.live(), slots.chunks.capacity()), (0, 0));
        let at = slots.insert(7, 7);
        slots.remove(at);
        assert!(slots.chunks[0].slots.capacity() <= KEPT);
        assert_eq!(slots.insert(8, 8), at, "what is kept is used again");
    }
}
