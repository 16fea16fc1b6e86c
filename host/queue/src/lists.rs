//! First-in-first-out lists whose links run through the slots: the two lanes, and the keys in
//! processing.
//!
//! The lists are doubly linked, so that a key changes lanes in constant time and no list is ever
//! copied. A slot is in at most one list, the list of its `place`. This module does not know why a
//! key moves.

use crate::slots::{NIL, Slots};

/// A list of slots; see the module.
pub(crate) struct List {
    head: u32,
    tail: u32,
    len: usize,
}

impl List {
    pub(crate) const fn new() -> Self {
        Self {
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

    pub(crate) fn push_back<K, T>(&mut self, slots: &mut Slots<K, T>, at: u32) {
        let slot = &mut slots[at];
        slot.prev = self.tail;
        slot.next = NIL;
        match self.tail {
            NIL => self.head = at,
            tail => slots[tail].next = at,
        }
        self.tail = at;
        self.len += 1;
    }

    /// Removes a slot that is in this list.
    pub(crate) fn remove<K, T>(&mut self, slots: &mut Slots<K, T>, at: u32) {
        let (prev, next) = (slots[at].prev, slots[at].next);
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
