//! The changes that woke many keys, for lists of turns: with one walk over the journal, however
//! many keys there are. This module must not know what the changes are told for.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use vmhost_core::ObjectName;

use crate::journal::wakes::Wakened;
use crate::journal::{Journal, mark, written};

/// A controller's label and a key.
type Place = (Arc<str>, ObjectName);

impl Journal {
    /// The changes that woke each of these keys, like [`Journal::woken`].
    pub(crate) fn woken_all(&self, places: &HashSet<Place>) -> HashMap<Place, Vec<Wakened>> {
        let names: HashSet<&ObjectName> = places.iter().map(|(_, key)| key).collect();
        let mut wrote: HashMap<Place, HashSet<u64>> = HashMap::new();
        self.walk(
            |turn| {
                let mut versions = written(turn).peekable();
                if versions.peek().is_some() && names.contains(&turn.key) {
                    let place = (turn.origin.controller.clone(), turn.key.clone());
                    wrote.entry(place).or_default().extend(versions);
                }
            },
            |_| {},
        );
        let mut found: HashMap<Place, Vec<Wakened>> = HashMap::new();
        for change in self.wakes.pick(|change| names.contains(&change.key)) {
            let place = (change.controller.clone(), change.key.clone());
            // Another controller may have a key with the same name.
            if places.contains(&place) {
                found.entry(place).or_default().push(change);
            }
        }
        for (place, woken) in &mut found {
            if let Some(versions) = wrote.get(place) {
                mark(woken, versions);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::RECORD_BYTES;
    use crate::journal::warnings::tests::parts::{CONTROLLER, change, key, primary, turn};

    #[test]
    fn the_changes_of_all_keys_are_those_of_each() {
        let journal = Journal::new(RECORD_BYTES, 1);
        let other = ObjectName::new(Some("default"), "other");
        for version in 1..5 {
            let mut turn = turn(version).patches(primary(), version, 100 + version);
            if version == 2 {
                turn.key = other.clone();
            }
            journal.turn(turn);
        }
        // The first, second and third change are to versions 101, 102 and 103.
        for (number, of) in [(1, key()), (2, key()), (3, other.clone())] {
            let mut change = change(number, 9, &primary(), ("1", "2"), Some("kubectl"));
            change.key = of;
            journal.wakes.add(change);
        }
        let own: Place = (CONTROLLER.into(), key());
        let places = HashSet::from([own.clone(), (CONTROLLER.into(), other)]);
        let all = journal.woken_all(&places);
        let told = |woken: &[Wakened]| -> Vec<(u32, bool)> {
            woken
                .iter()
                .map(|change| (change.number, change.own))
                .collect()
        };
        assert_eq!(all.len(), 2);
        for place in &places {
            let (turns, _) = journal.of(CONTROLLER, &place.1);
            let one = journal.woken(CONTROLLER, &place.1, &turns);
            assert_eq!(told(&all[place]), told(&one), "{}", place.1);
        }
        // The turns of the other key wrote the second version.
        assert_eq!(told(&all[&own]), [(1, true), (2, false)]);
        let unknown = HashSet::from([("loops/others".into(), key())]);
        assert!(journal.woken_all(&unknown).is_empty());
    }
}
