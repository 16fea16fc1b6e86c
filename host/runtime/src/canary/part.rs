//! What a turn does for the canary: it notes the side that runs it, keeps the snapshot that it saw,
//! and counts how it ended. This module must not know how a turn runs, or how a canary is carried
//! out.

use std::sync::Arc;

use vmhost_core::{ObjectName, Snapshot};

use crate::canary::Canary;
use crate::canary::breach::Breach;
use crate::canary::keys::{CandidateKeys, Recall};
use crate::canary::score::Noted;
use crate::controller::memory::KeyMemory;

/// One side of a canary, for the turns of one controller.
#[derive(Clone)]
pub(crate) struct Part {
    /// The canary.
    pub(crate) canary: Arc<Canary>,
    /// The keys of the controller that the candidate took.
    pub(crate) keys: Arc<CandidateKeys>,
    /// Whether this is the candidate's side.
    pub(crate) is_candidate: bool,
}

impl Part {
    /// Notes that a turn of the key begins on this side.
    pub(crate) fn begins(&self, key: &ObjectName) {
        match self.is_candidate {
            true => self.keys.begins_on_candidate(key),
            false => self.keys.begins_on_live(key),
        }
    }

    /// Returns whether this is the candidate's side of an aborted canary: then the live version has
    /// to run the keys.
    pub(crate) fn is_taken_back(&self) -> bool {
        self.is_candidate && self.canary.is_aborted()
    }

    /// Returns the canary if this is the candidate's side.
    pub(crate) fn candidate(&self) -> Option<&Canary> {
        self.is_candidate.then_some(&*self.canary)
    }

    /// Returns the snapshot that the key's last successful turn on this side saw. The candidate's
    /// first turn of a key gets the live version's snapshot.
    pub(crate) fn previous(&self, memory: &KeyMemory, key: &ObjectName) -> Option<Snapshot> {
        if self.is_candidate
            && let Recall::Own(object) = self.keys.previous(key)
        {
            return object;
        }
        memory.previous(key)
    }

    /// Keeps the snapshot that a successful turn saw; `None` if the object was deleted.
    pub(crate) fn saw(&self, memory: &KeyMemory, key: &ObjectName, object: Option<&Snapshot>) {
        if !self.is_candidate {
            self.keys.live_saw(key);
            memory.saw(key, object);
        } else if self.keys.saw(key, object) {
            memory.saw(key, object);
        }
    }

    /// Notes that a successful turn has seen that the key's object is deleted. Returns whether the
    /// live version has to see that too: the candidate saw it, and there is no room to remember
    /// that.
    pub(crate) fn must_see_again(&self, key: &ObjectName) -> bool {
        self.is_candidate && !self.keys.remember_gone(key)
    }

    /// Counts a turn of this side. Returns a breach if the canary has to be aborted. A turn of a
    /// key that failed before the candidate took it does not count.
    pub(crate) fn note(&self, key: &ObjectName, noted: Noted) -> Option<Breach> {
        let id = self.canary.id(&self.keys.label, key);
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

    /// Returns both sides of one canary.
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
        // This turn ends after the promotion.
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
