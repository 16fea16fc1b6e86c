//! The last turns of each key in which the candidate did something else. They are bounded in bytes,
//! and in number for each key. Sensitive values are already hidden in them. This module must not
//! know how versions are compared.

use std::collections::VecDeque;
use std::sync::Arc;

use lru::LruCache;
use serde_json::Value;
use vmhost_core::ObjectName;

use crate::shadow::report::ShadowTurn;

/// The most bytes of all turns. The turns of the key that differed longest ago are dropped first.
const BYTES: usize = 4 << 20;

/// The most turns of a key that are kept.
const TURNS: usize = 4;

/// If a turn is larger, the texts of its effects are dropped and only their fields stay; if it is
/// then still larger, only its first effects and differences stay.
const LARGEST: usize = 64 << 10;

/// The number of effects, and of differences, that stay of a turn that is still larger.
const FEW: usize = 16;

/// A controller's label and a key.
type Id = (Arc<str>, ObjectName);

/// The last turns; see the module.
#[derive(Debug)]
pub(crate) struct Keys {
    of: LruCache<Id, VecDeque<Kept>>,
    bytes: usize,
}

#[derive(Debug)]
struct Kept {
    turn: ShadowTurn,
    bytes: usize,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            of: LruCache::unbounded(),
            bytes: 0,
        }
    }
}

impl Keys {
    /// Adds a turn of a key.
    pub(crate) fn add(&mut self, controller: &Arc<str>, key: &ObjectName, mut turn: ShadowTurn) {
        let mut bytes = size(&turn);
        if bytes > LARGEST {
            let effects = turn.effects.iter_mut();
            effects.for_each(|effect| effect.effect = Value::Null);
            bytes = size(&turn);
        }
        if bytes > LARGEST {
            turn.effects.truncate(FEW);
            turn.differences.truncate(FEW);
            bytes = size(&turn);
        }
        let id = (controller.clone(), key.clone());
        let turns = self.of.get_or_insert_mut(id, VecDeque::new);
        turns.push_back(Kept { turn, bytes });
        self.bytes += bytes;
        if turns.len() > TURNS
            && let Some(oldest) = turns.pop_front()
        {
            self.bytes -= oldest.bytes;
        }
        while self.bytes > BYTES {
            let Some((_, turns)) = self.of.pop_lru() else {
                break;
            };
            self.bytes -= turns.iter().map(|kept| kept.bytes).sum::<usize>();
        }
    }

    /// The turns of a key, oldest first.
    pub(crate) fn of(&self, controller: &str, key: &ObjectName) -> Vec<ShadowTurn> {
        let id: Id = (controller.into(), key.clone());
        let turns = self.of.peek(&id).into_iter().flatten();
        turns.map(|kept| kept.turn.clone()).collect()
    }
}

/// Returns about the number of bytes that the turn takes.
fn size(turn: &ShadowTurn) -> usize {
    serde_json::to_vec(turn).map_or(0, |text| text.len()) + size_of::<Kept>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::story::Effect;

    fn turn(time: usize, text: usize) -> ShadowTurn {
        ShadowTurn {
            time: time.to_string(),
            effects: vec![Effect {
                verb: "patch".into(),
                effect: Value::from("x".repeat(text)),
                ..Effect::default()
            }],
            ..ShadowTurn::default()
        }
    }

    fn key(number: usize) -> ObjectName {
        ObjectName::new(None, &number.to_string())
    }

    #[test]
    fn the_last_turns_of_a_key_are_kept() {
        let (mut keys, label): (_, Arc<str>) = (Keys::default(), "vm".into());
        for time in 0..TURNS + 3 {
            keys.add(&label, &key(1), turn(time, 10));
        }
        let kept = keys.of("vm", &key(1));
        let times: Vec<&str> = kept.iter().map(|turn| turn.time.as_str()).collect();
        assert_eq!(times, ["3", "4", "5", "6"]);
        assert!(keys.of("vm", &key(2)).is_empty());
        assert!(keys.of("other", &key(1)).is_empty());
    }

    #[test]
    fn the_keys_that_differed_longest_ago_make_way() {
        let (mut keys, label): (_, Arc<str>) = (Keys::default(), "vm".into());
        for number in 0..200 {
            keys.add(&label, &key(number), turn(number, 50_000));
            // The first key stays among the newest.
            keys.add(&label, &key(0), turn(number, 10));
        }
        assert!(keys.bytes <= BYTES, "{}", keys.bytes);
        let counted: usize = keys
            .of
            .iter()
            .flat_map(|(_, kept)| kept)
            .map(|kept| kept.bytes)
            .sum();
        assert_eq!(keys.bytes, counted);
        assert!(keys.of("vm", &key(1)).is_empty());
        assert_eq!(keys.of("vm", &key(0)).len(), TURNS);
        assert_eq!(keys.of("vm", &key(199)).len(), 1);
    }

    #[test]
    fn a_turn_of_very_many_effects_keeps_the_first() {
        let (mut keys, label): (_, Arc<str>) = (Keys::default(), "vm".into());
        let mut many = turn(1, 10);
        many.effects = vec![many.effects[0].clone(); 100_000];
        keys.add(&label, &key(1), many);
        assert_eq!(keys.of("vm", &key(1))[0].effects.len(), FEW);
        assert!(keys.bytes <= LARGEST, "{}", keys.bytes);
    }

    #[test]
    fn a_large_turn_keeps_no_texts() {
        let (mut keys, label): (_, Arc<str>) = (Keys::default(), "vm".into());
        keys.add(&label, &key(1), turn(1, LARGEST + 1));
        let kept = keys.of("vm", &key(1));
        assert_eq!(kept[0].effects[0].effect, Value::Null);
        assert_eq!(kept[0].effects[0].verb, "patch");
    }
}
