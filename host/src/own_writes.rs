//! Telling this host's own writes from others' when they come back as watch events.
//!
//! The rule that it serves (design, "Workqueue"): an event that is the host's own write must not shorten a pending back-off, else a turn whose first effect stamps
//! a status and whose second is refused would spin at wire speed. The event of a write often arrives before the write's answer, so that its version is not known
//! yet: while a key's writes are under way, its events are held back and told apart when the turn ends.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;
use vmhost_core::ObjectName;

/// The keys whose turn is writing, and those that have not seen all of their last turn's writes yet.
#[derive(Debug, Default)]
pub struct OwnWrites(Mutex<FxHashMap<ObjectName, Turn>>);

#[derive(Debug, Default)]
struct Turn {
    /// Is it over? Then events are told apart as they come.
    over: bool,
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

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Not known yet: it counts at [`OwnWrites::end`].
    Held,
    /// A write of the key's last turn, which came late.
    Own,
    /// Somebody else's change.
    Foreign,
}

impl OwnWrites {
    /// The key's turn is about to write.
    pub fn begin(&self, key: &ObjectName) {
        self.lock().insert(key.clone(), Turn::default());
    }

    /// The turn wrote its own object, which has this version now. Not for a write that changed nothing: no event will bring its version.
    pub fn wrote(&self, key: &ObjectName, version: u64) {
        if let Some(turn) = self.lock().get_mut(key) {
            turn.own.push(version);
        }
    }

    /// An event brought this version: whose is it?
    pub fn origin(&self, key: &ObjectName, version: u64) -> Origin {
        let mut turns = self.lock();
        if turns.is_empty() {
            return Origin::Foreign;
        }
        let Some(turn) = turns.get_mut(key) else {
            return Origin::Foreign;
        };
        if !turn.over {
            turn.seen.push(version);
            return Origin::Held;
        }
        let own = turn.own.contains(&version);
        // Events of an object come in order: what is older than this one comes no more.
        turn.own.retain(|&pending| pending > version);
        if turn.own.is_empty() {
            turns.remove(key);
        }
        if own { Origin::Own } else { Origin::Foreign }
    }

    /// The turn has ended: what came meanwhile?
    pub fn end(&self, key: &ObjectName) -> Came {
        let mut turns = self.lock();
        let Some(turn) = turns.get_mut(key) else {
            return Came::Nothing;
        };
        turn.over = true;
        let seen = std::mem::take(&mut turn.seen);
        let came = if seen.is_empty() {
            Came::Nothing
        } else if seen.iter().all(|version| turn.own.contains(version)) {
            Came::OnlyOwn
        } else {
            Came::Foreign
        };
        let newest = seen.into_iter().max().unwrap_or_default();
        turn.own.retain(|&pending| pending > newest);
        if turn.own.is_empty() {
            turns.remove(key);
        }
        came
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
                assert_eq!(own.origin(&key, version), Origin::Held);
            }
            for &version in writes {
                own.wrote(&key, version);
            }
            assert_eq!(own.end(&key), came, "{events:?} {writes:?}");
            assert_eq!(
                own.origin(&key, 10),
                Origin::Foreign,
                "not held after the turn"
            );
        }
    }

    #[test]
    fn other_keys_are_not_held() {
        let own = OwnWrites::default();
        own.begin(&ObjectName::new(Some("a"), "x"));
        assert_eq!(
            own.origin(&ObjectName::new(Some("a"), "y"), 1),
            Origin::Foreign
        );
    }

    #[test]
    fn an_own_event_that_comes_after_the_turn_is_known_and_then_forgotten() {
        let key = ObjectName::new(Some("a"), "x");
        let own = OwnWrites::default();
        own.begin(&key);
        own.wrote(&key, 7);
        own.wrote(&key, 8);
        assert_eq!(own.end(&key), Came::Nothing);
        assert_eq!(own.origin(&key, 7), Origin::Own);
        assert_eq!(own.origin(&key, 8), Origin::Own);
        assert_eq!(own.origin(&key, 8), Origin::Foreign);
        assert!(own.lock().is_empty());
    }
}
