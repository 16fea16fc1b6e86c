//! Telling this host's own writes from others' when they come back as watch events.
//!
//! The rule that it serves (design, "Workqueue"): an event that is the host's own write must not shorten a pending back-off, else a turn whose first effect stamps
//! a status and whose second is refused would spin at wire speed. The event of a write often arrives before the write's answer, so that its version is not known
//! yet: while a key's writes are under way, its events are held back and told apart when the turn ends.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;
use vmhost_core::ObjectName;

/// The keys whose turn is writing.
#[derive(Debug, Default)]
pub struct OwnWrites(Mutex<FxHashMap<ObjectName, Turn>>);

#[derive(Debug, Default)]
struct Turn {
    /// Versions that events brought. A turn lasts seconds at most, and one key's events in it are few.
    seen: Vec<u64>,
    /// Versions that the turn's writes returned.
    own: Vec<u64>,
}

/// What came for a key while its turn wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// Nothing.
    Nothing,
    /// Nothing but what the turn itself wrote.
    OnlyOwn,
    /// Somebody else changed it too.
    Foreign,
}

impl OwnWrites {
    /// The key's turn is about to write.
    pub fn begin(&self, key: &ObjectName) {
        self.lock().insert(key.clone(), Turn::default());
    }

    /// The turn wrote its own object, which has this version now.
    pub fn wrote(&self, key: &ObjectName, version: u64) {
        if let Some(turn) = self.lock().get_mut(key) {
            turn.own.push(version);
        }
    }

    /// An event brought this version. True: it is held back until [`OwnWrites::end`].
    pub fn hold(&self, key: &ObjectName, version: u64) -> bool {
        let mut turns = self.lock();
        if turns.is_empty() {
            return false;
        }
        turns
            .get_mut(key)
            .map(|turn| turn.seen.push(version))
            .is_some()
    }

    /// The turn has ended: what came meanwhile?
    pub fn end(&self, key: &ObjectName) -> Came {
        let Some(turn) = self.lock().remove(key) else {
            return Came::Nothing;
        };
        if turn.seen.is_empty() {
            Came::Nothing
        } else if turn.seen.iter().all(|version| turn.own.contains(version)) {
            Came::OnlyOwn
        } else {
            Came::Foreign
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FxHashMap<ObjectName, Turn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_apart_whichever_comes_first() {
        let key = ObjectName::new(Some("a"), "x");
        for (events, writes, came) in [
            (&[][..], &[7][..], Came::Nothing),
            (&[7], &[7], Came::OnlyOwn),
            (&[7, 8], &[8, 7], Came::OnlyOwn),
            (&[7, 9], &[7], Came::Foreign),
            (&[7], &[], Came::Foreign),
        ] {
            let own = OwnWrites::default();
            own.begin(&key);
            for &version in events {
                assert!(own.hold(&key, version));
            }
            for &version in writes {
                own.wrote(&key, version);
            }
            assert_eq!(own.end(&key), came, "{events:?} {writes:?}");
            assert!(!own.hold(&key, 10), "not held after the turn");
        }
    }

    #[test]
    fn other_keys_are_not_held() {
        let own = OwnWrites::default();
        own.begin(&ObjectName::new(Some("a"), "x"));
        assert!(!own.hold(&ObjectName::new(Some("a"), "y"), 1));
    }
}
