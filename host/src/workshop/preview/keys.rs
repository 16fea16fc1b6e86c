//! The keys that still have to be processed, and what the preview remembers of each. It takes the
//! place of the workqueue: it hands keys out in order, each key once, and without any time passing.
//!
//! This module must not know controllers, objects or effects.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use vmhost_core::{ObjectName, Refusal, Snapshot};

/// A key: the number of its controller, and its name.
pub(super) type Key = (usize, ObjectName);

/// The keys of all controllers.
pub(super) struct Keys {
    order: VecDeque<Key>,
    queued: HashSet<Key>,
    /// Keys that ask for another turn although nothing has changed, each with the value of
    /// `changes` when it asked.
    parked: BTreeMap<Key, u64>,
    states: HashMap<Key, State>,
    /// The number of changes so far.
    changes: u64,
    /// How many turns a key may have.
    most: u32,
}

/// What the preview remembers of a key from one turn to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) turns: u32,
    /// Failures since the last success.
    pub(super) attempt: u32,
    /// The refused effect of the last turn.
    pub(super) last: Option<Refusal>,
    /// The object as of the last successful turn.
    pub(super) previous: Option<Snapshot>,
    /// Whether the last turn changed anything.
    pub(super) changed: bool,
}

impl Keys {
    pub(super) fn new(most: u32) -> Self {
        Self {
            order: VecDeque::new(),
            queued: HashSet::new(),
            parked: BTreeMap::new(),
            states: HashMap::new(),
            changes: 0,
            most,
        }
    }

    /// Adds a key, unless it is waiting already.
    pub(super) fn add(&mut self, key: Key) {
        if self.queued.insert(key.clone()) {
            self.order.push_back(key);
        }
    }

    /// Lets a key wait until something changes.
    pub(super) fn park(&mut self, key: Key) {
        self.parked.insert(key, self.changes);
    }

    /// Counts a change.
    pub(super) fn changed(&mut self) {
        self.changes += 1;
    }

    /// Takes the next key. Returns `None` if no key can run any more.
    pub(super) fn next(&mut self) -> Option<Key> {
        if self.order.is_empty() {
            let parked = std::mem::take(&mut self.parked);
            for (key, at) in parked {
                match at < self.changes {
                    true => self.add(key),
                    false => drop(self.parked.insert(key, at)),
                }
            }
        }
        let key = self.order.pop_front()?;
        self.queued.remove(&key);
        Some(key)
    }

    /// Begins a turn of a key. Returns `false` if the key has had all its turns.
    pub(super) fn begin(&mut self, key: &Key) -> bool {
        self.parked.remove(key);
        let most = self.most;
        let state = self.state(key);
        let may = state.turns < most;
        state.turns += u32::from(may);
        may
    }

    /// What the preview remembers of a key.
    pub(super) fn state(&mut self, key: &Key) -> &mut State {
        self.states.entry(key.clone()).or_default()
    }

    /// The keys that would ask for another turn again and again.
    pub(super) fn parked(&self) -> impl Iterator<Item = &Key> {
        self.parked.keys()
    }

    /// The number of keys that were not processed.
    pub(super) fn waiting(&self) -> usize {
        self.order.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        (0, ObjectName::new(None, name))
    }

    #[test]
    fn a_key_waits_once_and_in_order() {
        let mut keys = Keys::new(10);
        for name in ["a", "b", "a"] {
            keys.add(key(name));
        }
        assert_eq!(keys.waiting(), 2);
        assert_eq!(
            [keys.next(), keys.next(), keys.next()],
            [Some(key("a")), Some(key("b")), None]
        );
        keys.add(key("a"));
        assert_eq!(keys.next(), Some(key("a")), "again after its turn");
    }

    #[test]
    fn a_key_that_asks_again_waits_for_a_change() {
        let mut keys = Keys::new(10);
        keys.park(key("a"));
        assert_eq!((keys.next(), keys.parked().count()), (None, 1));
        keys.changed();
        assert_eq!((keys.next(), keys.parked().count()), (Some(key("a")), 0));
        keys.park(key("a"));
        assert_eq!(keys.next(), None, "nothing has changed since");
    }

    #[test]
    fn a_key_has_so_many_turns() {
        let mut keys = Keys::new(2);
        assert!(keys.begin(&key("a")) && keys.begin(&key("a")));
        assert!(!keys.begin(&key("a")) && keys.begin(&key("b")));
        assert_eq!(keys.state(&key("a")).turns, 2);
    }
}
