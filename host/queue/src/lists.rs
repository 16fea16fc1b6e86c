//! First-in-first-out lists whose links run through the slots: the two lanes, and the keys in
//! processing.
//!
//! The lists are doubly linked, so that a key changes lanes in constant time and no list is ever
//! copied. A slot is in at most one list, the list of its `place`. This module does not know why a
//! key moves.

use crate::slots::{NIL, Place, Slots};

/// A list of slots; see the module.
pub(crate) struct List {
    /// The place of its slots.
    place: Place,
    head: u32,
    tail: u32,
    len: usize,
}

impl List {
    /// Creates the list of a place.
    pub(crate) const fn new(place: Place) -> Self {
        Self {
            place,
            head: NIL,
            tail: NIL,
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The slot at the front.
    pub(crate) fn front(&self) -> Option<u32> {
        (self.head != NIL).then_some(self.head)
    }

    /// The slots from front to back.
    pub(crate) fn iter<'a, K, T>(
        &'a self,
        slots: &'a Slots<K, T>,
    ) -> impl Iterator<Item = u32> + 'a {
        std::iter::successors(self.front(), |&at| {
            let next = slots[at].next;
            (next != NIL).then_some(next)
        })
    }

    /// Adds a slot that is in no list.
    pub(crate) fn push_back<K, T>(&mut self, slots: &mut Slots<K, T>, at: u32) {
        let slot = &mut slots[at];
        slot.place = self.place;
        slot.prev = self.tail;
        slot.next = NIL;
        match self.tail {
            NIL => self.head = at,
            tail => slots[tail].next = at,
        }
        self.tail = at;
        self.len += 1;
    }

    /// Removes a slot that is in this list, which makes it idle.
    pub(crate) fn remove<K, T>(&mut self, slots: &mut Slots<K, T>, at: u32) {
        let slot = &mut slots[at];
        slot.place = Place::Idle;
        let (prev, next) = (slot.prev, slot.next);
        match prev {
            NIL => self.head = next,
            prev => slots[prev].next = next,
        }
        match next {
            NIL => self.tail = prev,
            next => slots[next].prev = prev,
        }
        self.len -= 1;
    }
}
