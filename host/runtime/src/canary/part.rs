//! The part of a turn in a canary: which side it runs on, which snapshot of its object was seen
//! last, and what the turn says about its side.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::FixedState;
use vmhost_core::{ObjectName, Snapshot};

use crate::canary::Canary;
use crate::canary::keys::{CandidateKeys, Recall};
use crate::canary::score::{Breach, Noted};
use crate::controller::memory::KeyMemory;

/// The part of a controller's turns, on one of the two sides.
#[derive(Clone)]
pub(crate) struct Part {
    /// The canary.
    pub(crate) canary: Arc<Canary>,
    /// What the candidate did with the controller's keys.
    pub(crate) keys: Arc<CandidateKeys>,
    /// Whether the turns run on the candidate.
    pub(crate) is_candidate: bool,
}

impl Part {
    /// A turn of the key begins.
    pub(crate) fn begins(&self, key: &ObjectName) {
        match self.is_candidate {
            true => self.keys.begins_on_candidate(key),
            false => self.keys.begins_on_live(key),
        }
    }

    /// Returns whether the turns are the candidate's and the canary was aborted: the live version
    /// has to run their keys.
    pub(crate) fn is_taken_back(&self) -> bool {
        self.is_candidate && self.canary.is_aborted()
    }

    /// The canary, if the turns run on the candidate.
    pub(crate) fn candidate(&self) -> Option<&Canary> {
        self.is_candidate.then_some(&*self.canary)
    }

    /// The snapshot that the key's last successful turn saw. The candidate goes on where the live
    /// version was.
    pub(crate) fn previous(&self, memory: &KeyMemory, key: &ObjectName) -> Option<Snapshot> {
        if self.is_candidate
            && let Recall::Own(object) = self.keys.previous(key)
        {
            return object;
        }
        memory.previous(key)
    }

    /// Keeps the snapshot that a successful turn saw. `None` if the object was deleted.
    pub(crate) fn saw(&self, memory: &KeyMemory, key: &ObjectName, object: Option<&Snapshot>) {
        if !self.is_candidate {
            self.keys.live_saw(key);
            memory.saw(key, object);
        } else if self.keys.saw(key, object) {
            memory.saw(key, object);
        }
    }

    /// A successful turn has seen that the key's object is deleted. Returns whether that was the
    /// candidate's and cannot be remembered: the live version has to see it too.
    pub(crate) fn must_see_again(&self, key: &ObjectName) -> bool {
        self.is_candidate && !self.keys.remember_gone(key)
    }

    /// Notes what a turn says about its side. Returns why the canary has to be aborted, if it has
    /// to. A key that failed before the candidate took it says nothing about the candidate.
    pub(crate) fn note(&self, key: &ObjectName, noted: Noted) -> Option<Breach> {
        let id = FixedState::default().hash_one((&*self.keys.label, key.as_str()));
        if !self.is_candidate {
            self.canary.note_live(id, noted);
            return None;
        }
        if self.keys.is_troubled(key) {
            return None;
        }
        self.canary.note_candidate(id, key, noted)
    }
}

#[cfg(test)]
mod tests {
    use vmhost_core::Object;

    use super::*;
    use crate::canary::end::Abort;
    use crate::canary::tests::canary;

    fn key() -> ObjectName {
        ObjectName::new(Some("a"), "x")
    }

    fn object(version: u64) -> Snapshot {
        Object::with_text(key(), "u", version, "{}")
    }

    /// Both sides of one canary.
    fn sides() -> [Part; 2] {
        let canary = canary();
        let keys = canary.keys("c").unwrap().clone();
        [true, false].map(|is_candidate| Part {
            canary: canary.clone(),
            keys: keys.clone(),
            is_candidate,
        })
    }

    fn seen(part: &Part, memory: &KeyMemory) -> Option<u64> {
        part.previous(memory, &key()).map(|object| object.version)
    }

    #[test]
    fn an_aborted_candidate_leaves_the_live_version_where_it_was() {
        let ([candidate, live], memory) = (sides(), KeyMemory::default());
        live.saw(&memory, &key(), Some(&object(1)));
        assert_eq!(seen(&candidate, &memory), Some(1), "it goes on there");
        candidate.saw(&memory, &key(), Some(&object(2)));
        candidate.saw(&memory, &key(), Some(&object(3)));
        assert_eq!(
            (seen(&candidate, &memory), seen(&live, &memory)),
            (Some(3), Some(1))
        );
        candidate.canary.abort(Abort::Operator);
        candidate.keys.end();
        candidate.saw(&memory, &key(), Some(&object(4)));
        assert_eq!(seen(&live, &memory), Some(1), "no edge is missed");
    }

    #[test]
    fn a_promoted_candidate_takes_its_snapshots_along() {
        let ([candidate, live], memory) = (sides(), KeyMemory::default());
        live.saw(&memory, &key(), Some(&object(1)));
        candidate.saw(&memory, &key(), Some(&object(2)));
        candidate.keys.merge(|key, object| memory.saw(key, object));
        assert_eq!(seen(&live, &memory), Some(2));
        // A turn that ends after the promotion.
        candidate.saw(&memory, &key(), Some(&object(3)));
        assert_eq!(
            (seen(&candidate, &memory), seen(&live, &memory)),
            (Some(3), Some(3))
        );
    }

    #[test]
    fn a_key_that_comes_back_to_the_live_version_is_not_overwritten() {
        let ([candidate, live], memory) = (sides(), KeyMemory::default());
        candidate.saw(&memory, &key(), Some(&object(1)));
        live.saw(&memory, &key(), Some(&object(2)));
        candidate.keys.merge(|key, object| memory.saw(key, object));
        assert_eq!(seen(&live, &memory), Some(2));
    }

    #[test]
    fn keys_that_failed_before_are_not_held_against_the_candidate() {
        let [candidate, _] = sides();
        let broke = Noted {
            failed: true,
            broke: Some("trap"),
            hot: false,
        };
        let names = [1, 2, 3, 4].map(|number| ObjectName::new(None, &format!("x{number}")));
        candidate.keys.note_troubled([names[0].clone()]);
        let found = names.map(|key| candidate.note(&key, broke).is_some());
        assert_eq!(found, [false, false, false, true]);
    }
}
