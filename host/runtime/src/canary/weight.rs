//! The share of a plugin's objects that runs on a candidate. A keyed hash of an object's uid
//! decides whether the object belongs to it. This module must not know generations or queues.

use std::hash::BuildHasher;

use foldhash::quality::FixedState;

use crate::canary::steps::ALL;

/// The candidate's share of the objects. Of two shares with the same seed, the larger one contains
/// all objects of the smaller one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    permille: u16,
    seed: u64,
}

impl Weight {
    /// Creates a share of this many thousandths. Each canary has its own seed, so that it does not
    /// always begin with the same objects.
    pub(crate) fn new(permille: u16, seed: u64) -> Self {
        Self { permille, seed }
    }

    /// The share in thousandths.
    pub(crate) fn permille(&self) -> u16 {
        self.permille
    }

    /// Returns whether the share contains the object with this uid.
    pub(crate) fn takes(&self, uid: &str) -> bool {
        let hash = FixedState::with_seed(self.seed).hash_one(uid);
        // Maps the hash to a number below `ALL`; all numbers are equally frequent.
        let place = (u128::from(hash) * u128::from(ALL)) >> u64::BITS;
        place < u128::from(self.permille)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = 5_000;

    /// Returns uids like those of an API server, the same in each run.
    fn uids() -> Vec<String> {
        let mut random = fastrand::Rng::with_seed(7);
        let uid = |_| uuid::Builder::from_random_bytes(random.u128(..).to_ne_bytes()).into_uuid();
        (0..MANY).map(uid).map(|uid| uid.to_string()).collect()
    }

    fn share(weight: Weight, uids: &[String]) -> f64 {
        let taken = uids.iter().filter(|uid| weight.takes(uid)).count();
        taken as f64 / uids.len() as f64
    }

    #[test]
    fn a_tenth_of_the_objects_is_a_tenth() {
        let uids = uids();
        for seed in [0, 1, 7, u64::MAX] {
            let share = share(Weight::new(100, seed), &uids);
            assert!((0.087..=0.113).contains(&share), "seed {seed}: {share}");
        }
    }

    #[test]
    fn numbers_in_a_row_are_spread_too() {
        let uids: Vec<String> = (0..MANY).map(|number| format!("uid-{number}")).collect();
        let share = share(Weight::new(100, 3), &uids);
        assert!((0.087..=0.113).contains(&share), "{share}");
    }

    #[test]
    fn a_larger_share_only_adds_objects() {
        let uids = uids();
        for seed in 0..8 {
            let mut before: Vec<&String> = Vec::new();
            for permille in [1, 50, 250, 999, ALL] {
                let weight = Weight::new(permille, seed);
                assert!(before.iter().all(|uid| weight.takes(uid)), "{permille}");
                before = uids.iter().filter(|uid| weight.takes(uid)).collect();
            }
            assert_eq!(before.len(), MANY, "the whole is all");
        }
    }

    #[test]
    fn nothing_takes_nothing_and_each_seed_takes_others() {
        let uids = uids();
        assert!(share(Weight::new(0, 5), &uids) == 0.0);
        let of = |seed| -> Vec<bool> {
            let weight = Weight::new(500, seed);
            uids.iter().map(|uid| weight.takes(uid)).collect()
        };
        assert_ne!(of(1), of(2));
        assert_eq!(of(1), of(1));
    }
}
