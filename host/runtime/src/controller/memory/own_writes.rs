//! Telling this host's own writes from others' when they come back as watch events.
//!
//! The rule that it serves (design, "Workqueue"): an event that is the host's own write must not shorten a pending back-off, else a turn whose first effect stamps
//! a status and whose second is refused would spin at wire speed. The event of a write often arrives before the write's answer, so that its version is not known
//! yet: while a key's writes are under way, its events are held back and told apart when the turn ends.

use std::collections::HashMap;

use vmhost_core::ObjectName;

/// The keys whose turn is writing, and those that have not seen all of their last turn's writes yet.
#[derive(Debug, Default)]
pub struct OwnWrites(HashMap<ObjectName, Turn>);

/// A version, and the number of the controller's watch that brings it: the key's own kind, or one whose objects wake it. Events come in order within a watch only.
type Seen = (u16, u64);

#[derive(Debug, Default)]
struct Turn {
    /// Is it over? Then events are told apart as they come.
    over: bool,
    /// Versions that events brought. A turn lasts seconds at most, and one key's events in it are few.
    seen: Vec<Seen>,
    /// Versions that the turn's writes returned.
    own: Vec<Seen>,
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
    pub fn begin(&mut self, key: &ObjectName) {
        self.0.insert(key.clone(), Turn::default());
    }

    /// The turn wrote an object of this watch, which has this version now. Not for a write that changed nothing: no event will bring its version.
    pub fn wrote(&mut self, key: &ObjectName, source: u16, version: u64) {
        if let Some(turn) = self.0.get_mut(key) {
            turn.own.push((source, version));
        }
    }

    /// An event of this watch brought this version: whose is it?
    pub fn origin(&mut self, key: &ObjectName, source: u16, version: u64) -> Origin {
        let turns = &mut self.0;
        if turns.is_empty() {
            return Origin::Foreign;
        }
        let Some(turn) = turns.get_mut(key) else {
            return Origin::Foreign;
        };
        if !turn.over {
            turn.seen.push((source, version));
            return Origin::Held;
        }
        let own = turn.own.contains(&(source, version));
        // What is older than this one comes no more.
        turn.own
            .retain(|&(of, pending)| of != source || pending > version);
        if turn.own.is_empty() {
            turns.remove(key);
        }
        if own { Origin::Own } else { Origin::Foreign }
    }

    /// The key is gone: events of what its turns wrote elsewhere are nobody's.
    pub fn forget(&mut self, key: &ObjectName) {
        let turns = &mut self.0;
        if !turns.is_empty() {
            turns.remove(key);
        }
    }

    /// The turn has ended: what came meanwhile?
    pub fn end(&mut self, key: &ObjectName) -> Came {
        let turns = &mut self.0;
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
        turn.own.retain(|&(of, pending)| {
            !seen
                .iter()
                .any(|&(source, version)| source == of && version >= pending)
        });
        if turn.own.is_empty() {
            turns.remove(key);
        }
        came
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
            let mut own = OwnWrites::default();
            own.begin(&key);
            for &version in events {
                assert_eq!(own.origin(&key, 0, version), Origin::Held);
            }
            for &version in writes {
                own.wrote(&key, 0, version);
            }
            assert_eq!(own.end(&key), came, "{events:?} {writes:?}");
            assert_eq!(
                own.origin(&key, 0, 10),
                Origin::Foreign,
                "not held after the turn"
            );
        }
    }

    #[test]
    fn other_keys_are_not_held() {
        let mut own = OwnWrites::default();
        own.begin(&ObjectName::new(Some("a"), "x"));
        assert_eq!(
            own.origin(&ObjectName::new(Some("a"), "y"), 0, 1),
            Origin::Foreign
        );
    }

    #[test]
    fn an_own_event_that_comes_after_the_turn_is_known_and_then_forgotten() {
        let key = ObjectName::new(Some("a"), "x");
        let mut own = OwnWrites::default();
        own.begin(&key);
        own.wrote(&key, 0, 7);
        own.wrote(&key, 0, 8);
        own.wrote(&key, 1, 6);
        assert_eq!(own.end(&key), Came::Nothing);
        assert_eq!(own.origin(&key, 0, 7), Origin::Own);
        assert_eq!(own.origin(&key, 0, 8), Origin::Own);
        assert_eq!(own.origin(&key, 0, 8), Origin::Foreign);
        assert_eq!(
            own.origin(&key, 1, 6),
            Origin::Own,
            "another watch, another order"
        );
        assert!(own.0.is_empty());
    }
}
