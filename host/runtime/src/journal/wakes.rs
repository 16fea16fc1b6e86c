//! The wake log: the changes that woke keys, in a ring bounded in bytes. The informers' tasks write
//! it, and it is read only to answer a question about a turn. This module must not know turns.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use vmhost_core::{Gvk, ObjectName, Snapshot};

/// A change that woke a key.
#[derive(Clone, Debug)]
pub(crate) struct Wakened {
    /// The number that tags refer to, never 0.
    pub(crate) number: u32,
    /// When the change arrived.
    pub(crate) at: Instant,
    /// The label of the controller.
    pub(crate) controller: Arc<str>,
    /// The key that was woken.
    pub(crate) key: ObjectName,
    /// The kind of the object that changed.
    pub(crate) kind: Arc<Gvk>,
    /// The object before the change. `None` if the store did not show it.
    pub(crate) old: Option<Snapshot>,
    /// The object after the change. `None` if it is gone.
    pub(crate) new: Option<Snapshot>,
    /// The text of the changed object's `metadata.managedFields`, if a watch event brought it.
    pub(crate) managed: Option<Box<str>>,
    /// Whether the change was a write of this controller; see `journal::mark_own`.
    pub(crate) own: bool,
}

impl Wakened {
    fn bytes(&self) -> usize {
        let text =
            |object: &Option<Snapshot>| object.as_ref().map_or(0, |object| object.text.len() + 64);
        size_of::<Self>()
            + self.key.as_str().len()
            + text(&self.old)
            + text(&self.new)
            + self.managed.as_ref().map_or(0, |text| text.len())
    }
}

/// The wake log; see the module.
#[derive(Debug)]
pub(crate) struct WakeLog {
    ring: Mutex<Ring>,
    most: usize,
}

#[derive(Debug, Default)]
struct Ring {
    entries: VecDeque<Wakened>,
    bytes: usize,
    last: u32,
}

impl WakeLog {
    /// Creates a log of at most this many bytes, counting the text of each object. With 0 bytes it
    /// logs nothing.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            ring: Mutex::default(),
            most,
        }
    }

    /// Returns whether changes are logged.
    pub(crate) fn is_on(&self) -> bool {
        self.most > 0
    }

    /// Adds a change, sets its number, and returns the number; 0 if the log is off. A change that
    /// would take up half of the log gets a number but is not kept.
    pub(crate) fn add(&self, mut change: Wakened) -> u32 {
        if self.most == 0 {
            return 0;
        }
        let bytes = change.bytes();
        let mut dropped = Vec::new();
        let mut ring = self.ring.lock();
        ring.last = ring.last.wrapping_add(1).max(1);
        if bytes > self.most / 2 {
            // One large object must not displace the changes that woke other keys.
            return ring.last;
        }
        change.number = ring.last;
        ring.bytes += bytes;
        ring.entries.push_back(change);
        while ring.bytes > self.most {
            let Some(oldest) = ring.entries.pop_front() else {
                break;
            };
            ring.bytes -= oldest.bytes();
            dropped.push(oldest);
        }
        let number = ring.last;
        drop(ring);
        // Freed after the lock is released.
        drop(dropped);
        number
    }

    /// The entries that the function accepts, oldest first. Their `own` is not set; see
    /// `journal::mark_own`.
    pub(crate) fn pick(&self, is_wanted: impl Fn(&Wakened) -> bool) -> Vec<Wakened> {
        let ring = self.ring.lock();
        let entries = ring.entries.iter().filter(|entry| is_wanted(entry));
        entries.cloned().collect()
    }

    /// The bytes that the entries count for.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.ring.lock().bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_core::Object;

    const CONTROLLER: &str = "loops/objects";

    fn key(name: &str) -> ObjectName {
        ObjectName::new(Some("ns"), name)
    }

    /// Returns a change of an object of this size, from this version to the next.
    fn change(name: &str, version: u64, size: usize) -> Wakened {
        let text = "x".repeat(size);
        let object = |version| Some(Object::with_text(key(name), "u-1", version, &text));
        Wakened {
            number: 0,
            at: Instant::now(),
            controller: CONTROLLER.into(),
            key: key(name),
            kind: Gvk::new("", "v1", "ConfigMap").into(),
            old: object(version),
            new: object(version + 1),
            managed: Some("[]".into()),
            own: false,
        }
    }

    /// Checks the sum of bytes by counting anew, and returns the numbers of the entries.
    fn numbers(log: &WakeLog) -> Vec<u32> {
        let ring = log.ring.lock();
        let bytes: usize = ring.entries.iter().map(Wakened::bytes).sum();
        assert_eq!(ring.bytes, bytes, "the log counts as its entries do");
        assert!(bytes <= log.most, "{bytes} of {}", log.most);
        ring.entries.iter().map(|entry| entry.number).collect()
    }

    #[test]
    fn a_log_stays_within_its_bytes_and_keeps_the_newest() {
        let log = WakeLog::new(1 << 20);
        let mut random = fastrand::Rng::with_seed(7);
        for number in 1..=20_000 {
            let name = format!("object-{}", random.u32(0..100));
            let size = random.usize(0..16 << 10);
            assert_eq!(log.add(change(&name, 1, size)), number);
            if number % 1000 == 0 {
                let kept = numbers(&log);
                let first = number + 1 - kept.len() as u32;
                assert_eq!(kept, (first..=number).collect::<Vec<_>>());
            }
        }
        assert_eq!(log.ring.lock().last, 20_000);
        assert!(log.bytes() > 1 << 19, "it uses what it may");
        // A change that is larger than the log gets a number too, and leaves the log as it is.
        let kept = numbers(&log);
        assert_eq!(log.add(change("large", 1, 1 << 20)), 20_001);
        assert_eq!(numbers(&log), kept);
        assert_eq!(log.add(change("x", 1, 10)), 20_002);
        let kept = numbers(&log);
        assert!(kept.ends_with(&[20_000, 20_002]), "{kept:?}");
    }

    #[test]
    fn without_bytes_nothing_is_logged() {
        let log = WakeLog::new(0);
        assert_eq!(log.add(change("x", 1, 10)), 0);
        assert!(numbers(&log).is_empty());
        assert_eq!(log.ring.lock().last, 0);
    }

    #[test]
    fn numbers_wrap_and_leave_zero_out() {
        let log = WakeLog::new(1 << 20);
        log.ring.lock().last = u32::MAX - 1;
        let added: Vec<u32> = (0..3).map(|_| log.add(change("x", 1, 10))).collect();
        assert_eq!(added, [u32::MAX, 1, 2]);
    }

    #[test]
    fn entries_of_a_key_come_in_order() {
        let log = WakeLog::new(1 << 20);
        for version in 1..5 {
            log.add(change("x", version, 10));
            log.add(change("y", version, 10));
        }
        let found = log.pick(|entry| entry.key == key("x"));
        let numbers: Vec<u32> = found.iter().map(|entry| entry.number).collect();
        assert_eq!(numbers, [1, 3, 5, 7]);
        assert!(
            log.pick(|entry| &*entry.controller != CONTROLLER)
                .is_empty()
        );
    }
}
