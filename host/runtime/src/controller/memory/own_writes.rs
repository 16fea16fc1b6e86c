//! Tells this host's own writes from other writers' changes when they come back as watch events.
//!
//! It serves one rule: an event caused by the host's own write must not shorten a pending back-off.
//! Without this rule, a turn whose first effect changes the status and whose second effect is
//! refused would repeat at wire speed. A write's event often arrives before the write's response,
//! so the version is not known yet. Therefore the events of a key are held back while its turn
//! writes, and are told apart when the turn ends.

use std::collections::HashMap;

use vmhost_core::ObjectName;

/// The keys whose turn is writing, and the keys whose last writes have not all come back as events.
#[derive(Debug, Default)]
pub(crate) struct OwnWrites(HashMap<ObjectName, Turn>);

/// The number of a controller's watch (of the key's own kind, or of a kind whose objects wake the
/// key) and a version in it. Events are ordered only within one watch.
type Seen = (u16, u64);

#[derive(Debug, Default)]
struct Turn {
    /// True after the turn. Events are then told apart as they arrive.
    over: bool,
    /// Versions that arrived in events. The list stays short: a turn lasts seconds, and one key
    /// gets few events in that time.
    seen: Vec<Seen>,
    /// Versions that the API server returned for the turn's writes.
    own: Vec<Seen>,
    /// The numbers of the events in `seen` in the wake log.
    numbers: Vec<u32>,
}

/// The events that arrived for a key while its turn wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// No event.
    Nothing,
    /// Only events of the turn's own writes.
    OnlyOwn,
    /// At least one event of another writer's change.
    Foreign,
}

/// The origin of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Unknown while the turn writes. The event counts at [`OwnWrites::end`].
    Held,
    /// A late event of a write of the key's last turn.
    Own,
    /// Another writer's change.
    Foreign,
}

impl OwnWrites {
    /// Begins the write phase of the key's turn.
    pub(crate) fn begin(&mut self, key: &ObjectName) {
        self.0.insert(key.clone(), Turn::default());
    }

    /// Records that the turn wrote an object in this watch, which now has this version. A write
    /// that changed nothing must not be recorded, since no event will bring its version.
    pub(crate) fn wrote(&mut self, key: &ObjectName, source: u16, version: u64) {
        if let Some(turn) = self.0.get_mut(key) {
            turn.own.push((source, version));
        }
    }

    /// Returns the origin of the event that brought this version in this watch, and has this number
    /// in the wake log.
    pub(crate) fn origin(
        &mut self,
        key: &ObjectName,
        (source, version): Seen,
        number: u32,
    ) -> Origin {
        let turns = &mut self.0;
        if turns.is_empty() {
            return Origin::Foreign;
        }
        let Some(turn) = turns.get_mut(key) else {
            return Origin::Foreign;
        };
        if !turn.over {
            turn.seen.push((source, version));
            turn.numbers.push(number);
            return Origin::Held;
        }
        let own = turn.own.contains(&(source, version));
        // Within a watch, no older version arrives after this one.
        turn.own
            .retain(|&(of, pending)| of != source || pending > version);
        if turn.own.is_empty() {
            turns.remove(key);
        }
        if own { Origin::Own } else { Origin::Foreign }
    }

    /// Forgets a deleted key. Later events of its turns' writes to other objects count as foreign.
    pub(crate) fn forget(&mut self, key: &ObjectName) {
        let turns = &mut self.0;
        if !turns.is_empty() {
            turns.remove(key);
        }
    }

    /// Ends the write phase of the key's turn. Returns which events arrived in the meantime, and
    /// their numbers in the wake log.
    pub(crate) fn end(&mut self, key: &ObjectName) -> (Came, Vec<u32>) {
        let turns = &mut self.0;
        let Some(turn) = turns.get_mut(key) else {
            return (Came::Nothing, Vec::new());
        };
        turn.over = true;
        let seen = std::mem::take(&mut turn.seen);
        let numbers = std::mem::take(&mut turn.numbers);
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
        (came, numbers)
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
                assert_eq!(own.origin(&key, (0, version), 0), Origin::Held);
            }
            for &version in writes {
                own.wrote(&key, 0, version);
            }
            assert_eq!(own.end(&key).0, came, "{events:?} {writes:?}");
            assert_eq!(
                own.origin(&key, (0, 10), 0),
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
            own.origin(&ObjectName::new(Some("a"), "y"), (0, 1), 0),
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
        assert_eq!(own.end(&key).0, Came::Nothing);
        assert_eq!(own.origin(&key, (0, 7), 0), Origin::Own);
        assert_eq!(own.origin(&key, (0, 8), 0), Origin::Own);
        assert_eq!(own.origin(&key, (0, 8), 0), Origin::Foreign);
        assert_eq!(
            own.origin(&key, (1, 6), 0),
            Origin::Own,
            "another watch, another order"
        );
        assert!(own.0.is_empty());
    }
}
