//! The queue of events, with a lane for each namespace: a namespace whose requests fail rests, and
//! the others continue.
//!
//! This module is synchronous. It must not know what the items are, nor how they are written.

use std::collections::{HashMap, VecDeque};

use tokio::time::Instant;

/// Maximum number of queued items of a plugin, as in client-go. At 1 KiB each, 1 MiB.
pub(super) const WAITING: usize = 1000;
/// Maximum number of queued items of one namespace: a quarter, so that a namespace that accepts no
/// events leaves room for the others.
pub(super) const LANE: usize = WAITING / 4;

/// The lanes; see the module.
#[derive(Debug)]
pub(super) struct Lanes<T> {
    lanes: HashMap<String, Lane<T>>,
    /// The namespaces of `lanes`; the one that was served last is at the end.
    order: VecDeque<String>,
    waiting: usize,
}

#[derive(Debug)]
struct Lane<T> {
    /// Never empty.
    items: VecDeque<T>,
    rests_until: Option<Instant>,
}

/// The next step of the worker.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<T> {
    /// Write this item of this namespace.
    Item(String, T),
    /// Wait until this time.
    Rest(Instant),
    /// The queue is empty.
    Nothing,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Self {
            lanes: HashMap::new(),
            order: VecDeque::new(),
            waiting: 0,
        }
    }
}

impl<T> Lanes<T> {
    /// Appends an item to its namespace's lane. Returns whether there was room.
    pub(super) fn push(&mut self, namespace: &str, item: T) -> bool {
        let full = |lane: &Lane<T>| lane.items.len() >= LANE;
        if self.waiting >= WAITING || self.lanes.get(namespace).is_some_and(full) {
            return false;
        }
        self.lane(namespace).items.push_back(item);
        self.waiting += 1;
        true
    }

    /// Takes the next item of the namespace that was served longest ago and does not rest.
    pub(super) fn next(&mut self, now: Instant) -> Next<T> {
        let rests = |lane: &Lane<T>| lane.rests_until.filter(|until| *until > now);
        let ready = self
            .order
            .iter()
            .position(|name| self.lanes.get(name).and_then(rests).is_none());
        let Some(namespace) = ready.and_then(|at| self.order.remove(at)) else {
            return match self.lanes.values().filter_map(rests).min() {
                Some(until) => Next::Rest(until),
                None => Next::Nothing,
            };
        };
        let Some(lane) = self.lanes.get_mut(&namespace) else {
            return Next::Nothing;
        };
        lane.rests_until = None;
        let item = lane.items.pop_front();
        if lane.items.is_empty() {
            self.lanes.remove(&namespace);
        } else {
            self.order.push_back(namespace.clone());
        }
        match item {
            Some(item) => {
                self.waiting -= 1;
                Next::Item(namespace, item)
            }
            None => Next::Nothing,
        }
    }

    /// Returns the item that was handed out last to the front of its namespace's lane, which rests
    /// until `until`.
    pub(super) fn put_back(&mut self, namespace: &str, item: T, until: Instant) {
        let lane = self.lane(namespace);
        lane.items.push_front(item);
        lane.rests_until = Some(until);
        self.waiting += 1;
    }

    /// Number of queued items.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    fn lane(&mut self, namespace: &str) -> &mut Lane<T> {
        if !self.lanes.contains_key(namespace) {
            self.order.push_back(namespace.to_owned());
        }
        self.lanes
            .entry(namespace.to_owned())
            .or_insert_with(|| Lane {
                items: VecDeque::new(),
                rests_until: None,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Takes all items that are available now.
    fn take(lanes: &mut Lanes<u32>, now: Instant) -> Vec<(String, u32)> {
        let mut taken = Vec::new();
        while let Next::Item(namespace, item) = lanes.next(now) {
            taken.push((namespace, item));
        }
        taken
    }

    #[test]
    fn namespaces_take_turns_and_keep_their_order() {
        let (mut lanes, now) = (Lanes::default(), Instant::now());
        for (namespace, item) in [("a", 1), ("a", 2), ("b", 3), ("a", 4)] {
            assert!(lanes.push(namespace, item));
        }
        let taken = take(&mut lanes, now);
        let expected = [("a", 1), ("b", 3), ("a", 2), ("a", 4)];
        assert_eq!(taken, expected.map(|(name, item)| (name.to_owned(), item)));
        assert_eq!((lanes.next(now), lanes.len()), (Next::Nothing, 0));
    }

    #[test]
    fn one_that_rests_holds_up_no_other() {
        let (mut lanes, now) = (Lanes::default(), Instant::now());
        let later = now + Duration::from_secs(1);
        for (namespace, item) in [("a", 1), ("a", 2), ("b", 3)] {
            lanes.push(namespace, item);
        }
        let Next::Item(namespace, item) = lanes.next(now) else {
            panic!("nothing waits");
        };
        lanes.put_back(&namespace, item, later);
        assert_eq!(lanes.len(), 3);
        assert_eq!(take(&mut lanes, now), [("b".to_owned(), 3)]);
        assert_eq!(lanes.next(now), Next::Rest(later));
        assert_eq!(
            take(&mut lanes, later),
            [("a".to_owned(), 1), ("a".to_owned(), 2)]
        );
    }

    #[test]
    fn one_namespace_leaves_room_for_others() {
        let mut lanes = Lanes::default();
        let count = |lanes: &mut Lanes<usize>, namespace: &str| {
            (0..WAITING)
                .filter(|item| lanes.push(namespace, *item))
                .count()
        };
        assert_eq!(count(&mut lanes, "a"), LANE);
        for other in ["b", "c", "d"] {
            assert_eq!(count(&mut lanes, other), LANE);
        }
        assert_eq!((count(&mut lanes, "e"), lanes.len()), (0, WAITING));
    }
}
