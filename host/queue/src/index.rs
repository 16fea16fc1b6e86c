//! Finds the slot of a key: a hash table of slot numbers.
//!
//! This module knows only the key and the hash of a slot.

use hashbrown::HashTable;

use crate::slots::Slots;

/// A table with room for fewer keys than this is never made smaller.
const KEPT: usize = 64;

/// The hash table; see the module.
pub(crate) struct Index(HashTable<Entry>);

/// A slot, and its key's hash, so that a growing table reads no slot.
struct Entry {
    hash: u32,
    slot: u32,
}

/// The table takes the bucket from the low bits of a hash and a tag from its highest.
fn wide(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

impl Index {
    pub(crate) const fn new() -> Self {
        Self(HashTable::new())
    }

    #[inline]
    pub(crate) fn find<K: Eq, T>(&self, slots: &Slots<K, T>, hash: u32, key: &K) -> Option<u32> {
        let is_it =
            |entry: &Entry| entry.hash == hash && slots[entry.slot].key.as_ref() == Some(key);
        self.0.find(wide(hash), is_it).map(|entry| entry.slot)
    }

    /// Adds the slot of a key that is not in the table.
    pub(crate) fn insert(&mut self, hash: u32, slot: u32) {
        let entry = Entry { hash, slot };
        self.0
            .insert_unique(wide(hash), entry, |entry| wide(entry.hash));
    }

    /// Removes a slot that is in the table.
    pub(crate) fn remove(&mut self, hash: u32, slot: u32) {
        if let Ok(found) = self.0.find_entry(wide(hash), |entry| entry.slot == slot) {
            found.remove();
        }
        let len = self.0.len();
        if self.0.capacity() > KEPT && len < self.0.capacity() / 8 {
            self.0.shrink_to(len * 2, |entry| wide(entry.hash));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_key_while_it_grows_and_shrinks() {
        let (mut slots, mut index) = (Slots::<u32, ()>::new(), Index::new());
        let hash = |key: u32| key.wrapping_mul(0x9E37_79B9).rotate_left(16) & !3;
        for round in 0..2 {
            for key in 0..5000 {
                index.insert(hash(key), slots.insert(key, hash(key)));
            }
            assert!(index.0.capacity() >= 5000);
            for key in 0..5000 {
                let at = index.find(&slots, hash(key), &key);
                assert_eq!(at.map(|at| slots[at].key), Some(Some(key)), "round {round}");
                let at = at.unwrap();
                index.remove(hash(key), at);
                slots.remove(at);
                assert_eq!(index.find(&slots, hash(key), &key), None);
            }
            assert_eq!((slots.live(), index.0.len()), (0, 0));
            assert!(index.0.capacity() <= KEPT);
        }
    }
}
