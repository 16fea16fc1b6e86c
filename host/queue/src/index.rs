//! Finds the slot of a key: a hash table by linear hashing, whose chains run through the slots.
//!
//! Each insert splits at most one bucket and each removal joins a few, so no rehash ever stalls the
//! queue. This module knows only the key, the hash and the chain of a slot.

use crate::segments::Segments;
use crate::slots::{Link, NIL, Slots};

/// Number of buckets of an empty table.
const MIN_BUCKETS: usize = 16;

/// Number of buckets that one removal joins: joining starts when a quarter of the buckets is in
/// use, so four joins keep pace with the keys.
const JOINS: usize = 4;

/// The hash table; see the module.
pub(crate) struct Index {
    /// The first slot of each chain. Every live slot is in the chain of `bucket(hash)`, once.
    heads: Segments<u32>,
    /// The largest power of two that is at most the number of buckets, minus one.
    mask: u32,
}

impl Index {
    pub(crate) fn new() -> Self {
        let mut heads = Segments::new();
        for _ in 0..MIN_BUCKETS {
            heads.push(NIL);
        }
        Self {
            heads,
            mask: MIN_BUCKETS as u32 - 1,
        }
    }

    /// Returns the bucket of a hash. Buckets below `len - (mask + 1)` are already split and use one
    /// more bit.
    #[inline]
    fn bucket(&self, hash: u32) -> usize {
        let wide = (hash & (self.mask * 2 + 1)) as usize;
        if wide < self.heads.len() {
            wide
        } else {
            (hash & self.mask) as usize
        }
    }

    #[inline]
    pub(crate) fn find<K: Eq>(&self, slots: &Slots<K>, hash: u32, key: &K) -> Option<u32> {
        let mut at = self.heads[self.bucket(hash)];
        while at != NIL {
            let link = slots.link(at);
            if link.hash == hash && slots[at].key.as_ref() == Some(key) {
                return Some(at);
            }
            at = link.chain;
        }
        None
    }

    /// Adds a slot that `slots` has just created.
    pub(crate) fn insert<K>(&mut self, slots: &mut Slots<K>, at: u32) {
        if slots.live() as usize > self.heads.len() {
            self.split(slots);
        }
        let bucket = self.bucket(slots.link(at).hash);
        self.link(slots, bucket, at);
    }

    /// Removes a slot that `slots` is about to free.
    pub(crate) fn remove<K>(&mut self, slots: &mut Slots<K>, at: u32) {
        let &Link { hash, chain: next } = slots.link(at);
        let bucket = self.bucket(hash);
        let mut before = self.heads[bucket];
        if before == at {
            self.heads[bucket] = next;
        } else {
            while slots.link(before).chain != at {
                before = slots.link(before).chain;
            }
            slots.link_mut(before).chain = next;
        }
        for _ in 0..JOINS {
            if self.heads.len() <= MIN_BUCKETS || slots.live() as usize >= self.heads.len() / 4 {
                break;
            }
            self.join(slots);
        }
    }

    /// The length of the longest chain: the most keys that one lookup compares.
    #[cfg(test)]
    pub(crate) fn longest_chain<K>(&self, slots: &Slots<K>) -> usize {
        let chain = |bucket: usize| {
            let (mut at, mut length) = (self.heads[bucket], 0);
            while at != NIL {
                (at, length) = (slots.link(at).chain, length + 1);
            }
            length
        };
        (0..self.heads.len()).map(chain).max().unwrap_or(0)
    }

    fn link<K>(&mut self, slots: &mut Slots<K>, bucket: usize, at: u32) {
        slots.link_mut(at).chain = self.heads[bucket];
        self.heads[bucket] = at;
    }

    fn split<K>(&mut self, slots: &mut Slots<K>) {
        let low = self.heads.len() - (self.mask as usize + 1);
        let mut at = std::mem::replace(&mut self.heads[low], NIL);
        self.heads.push(NIL);
        if self.heads.len() == (self.mask as usize + 1) * 2 {
            self.mask = self.mask * 2 + 1;
        }
        while at != NIL {
            let &Link { hash, chain: next } = slots.link(at);
            let bucket = self.bucket(hash);
            self.link(slots, bucket, at);
            at = next;
        }
    }

    fn join<K>(&mut self, slots: &mut Slots<K>) {
        let Some(mut at) = self.heads.pop() else {
            return;
        };
        if self.heads.len() < self.mask as usize + 1 {
            self.mask /= 2;
        }
        while at != NIL {
            let &Link { hash, chain: next } = slots.link(at);
            let bucket = self.bucket(hash);
            self.link(slots, bucket, at);
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_key_while_it_grows_and_shrinks() {
        let (mut slots, mut index) = (Slots::new(), Index::new());
        let hash = |key: u32| key.wrapping_mul(0x9E37_79B9).rotate_left(16) & !3;
        for round in 0..2 {
            for key in 0..5000 {
                let at = slots.insert(key, hash(key));
                index.insert(&mut slots, at);
            }
            assert!(index.heads.len() > 4000);
            for key in 0..5000 {
                let at = index.find(&slots, hash(key), &key);
                assert_eq!(at.map(|at| slots[at].key), Some(Some(key)), "round {round}");
                let at = at.unwrap();
                index.remove(&mut slots, at);
                slots.remove(at);
                assert_eq!(index.find(&slots, hash(key), &key), None);
            }
            assert_eq!((slots.live(), index.heads.len()), (0, MIN_BUCKETS));
        }
    }
}
