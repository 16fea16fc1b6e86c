//! What a candidate did with the keys of one controller: which keys had their last turn on it, and
//! the snapshots that it saw.
//!
//! A promotion hands the snapshots to the controller's memory. An abort drops them, so that the
//! live version is still to see every change since its own last turn. This module must not know
//! queues.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use vmhost_core::{ObjectName, Snapshot};

/// The number of deleted keys that are remembered. The candidate's turn for a later one is repeated
/// on the live version, as if the canary were over for that key.
const GONE: usize = 1 << 16;

/// The keys of one controller during a canary.
#[derive(Debug)]
pub struct CandidateKeys {
    /// The controller's label.
    pub(crate) label: Arc<str>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    /// The keys whose last turn was on the candidate, with the number of their turns in a row.
    on: HashMap<ObjectName, u32>,
    /// The deleted ones of these.
    gone: HashSet<ObjectName>,
    /// The snapshots of the candidate's last successful turns, if the controller asks for them.
    /// `None`: the object was deleted.
    previous: HashMap<ObjectName, Option<Snapshot>>,
    /// Keys that failed or were held on the live version when the candidate took them.
    troubled: HashSet<ObjectName>,
}

/// Where the snapshots of the candidate's turns belong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Here.
    #[default]
    Open,
    /// In the controller's memory: the candidate was promoted.
    Merged,
    /// Nowhere: the canary was aborted.
    Dropped,
}

/// Where the snapshot of a key's last turn is.
#[derive(Clone, Debug)]
pub(crate) enum Recall {
    /// In the controller's memory.
    Memory,
    /// Here. `None`: the candidate saw the deletion.
    Own(Option<Snapshot>),
}

impl CandidateKeys {
    /// No keys yet. `label` is the controller's label.
    pub(crate) fn new(label: Arc<str>) -> Self {
        Self {
            label,
            state: Mutex::default(),
        }
    }

    /// Notes keys that failed or were held when the candidate took them: what is wrong with them is
    /// not the candidate's fault.
    pub(crate) fn note_troubled(&self, keys: impl IntoIterator<Item = ObjectName>) {
        self.state.lock().troubled.extend(keys);
    }

    /// Returns whether the key failed or was held when the candidate took it.
    pub(crate) fn is_troubled(&self, key: &ObjectName) -> bool {
        self.state.lock().troubled.contains(key)
    }

    /// A turn of the key begins on the candidate.
    pub(crate) fn begins_on_candidate(&self, key: &ObjectName) {
        let mut state = self.state.lock();
        state.gone.remove(key);
        if let Some(turns) = state.on.get_mut(key) {
            *turns = turns.saturating_add(1);
        } else {
            state.on.insert(key.clone(), 1);
        }
    }

    /// A turn of the key begins on the live version.
    pub(crate) fn begins_on_live(&self, key: &ObjectName) {
        let mut state = self.state.lock();
        state.on.remove(key);
        state.gone.remove(key);
    }

    /// The candidate has dealt with the deletion of the key's object. Returns whether that is
    /// remembered; if not, the live version has to deal with it too.
    pub(crate) fn remember_gone(&self, key: &ObjectName) -> bool {
        let mut state = self.state.lock();
        state.on.remove(key);
        let has_room = state.gone.len() < GONE;
        if has_room {
            state.gone.insert(key.clone());
        }
        has_room
    }

    /// Returns whether the key's last turn was on the candidate.
    pub(crate) fn has(&self, key: &ObjectName) -> bool {
        let state = self.state.lock();
        state.on.contains_key(key) || state.gone.contains(key)
    }

    /// The number of turns that the key had on the candidate in a row.
    pub(crate) fn turns(&self, key: &str) -> u32 {
        self.state.lock().on.get(key).copied().unwrap_or_default()
    }

    /// Returns whether the candidate saw another object under this name. It has to learn that the
    /// other object is gone before anyone sees the new one.
    pub(crate) fn saw_other(&self, key: &ObjectName, uid: &str) -> bool {
        let state = self.state.lock();
        let saw = state.previous.get(key).and_then(Option::as_ref);
        saw.is_some_and(|saw| saw.uid() != uid)
    }

    /// The snapshot of the key's last successful turn.
    pub(crate) fn previous(&self, key: &ObjectName) -> Recall {
        let state = self.state.lock();
        match (state.phase, state.previous.get(key)) {
            (Phase::Open, Some(saw)) => Recall::Own(saw.clone()),
            _ => Recall::Memory,
        }
    }

    /// Keeps the snapshot that a successful turn of the candidate saw. `None` if the object was
    /// deleted. Returns whether the snapshot belongs in the controller's memory instead.
    pub(crate) fn saw(&self, key: &ObjectName, object: Option<&Snapshot>) -> bool {
        let mut state = self.state.lock();
        match state.phase {
            Phase::Open => {
                let before = state.previous.insert(key.clone(), object.cloned());
                // Object text may be large, so it is freed after the lock is released.
                drop(state);
                drop(before);
                false
            }
            Phase::Merged => true,
            Phase::Dropped => false,
        }
    }

    /// A successful turn of the live version saw the key's object: what the candidate saw is older.
    pub(crate) fn live_saw(&self, key: &ObjectName) {
        let mut state = self.state.lock();
        let before = state.previous.remove(key);
        drop(state);
        drop(before);
    }

    /// The candidate was promoted: hands each snapshot to `saw`. Later ones belong in the
    /// controller's memory.
    pub(crate) fn merge(&self, mut saw: impl FnMut(&ObjectName, Option<&Snapshot>)) {
        let mut state = self.state.lock();
        state.phase = Phase::Merged;
        // Under the lock, so that no turn that ends now is overwritten by an older snapshot.
        for (key, object) in std::mem::take(&mut state.previous) {
            saw(&key, object.as_ref());
        }
    }

    /// The canary is over: returns the keys whose last turn was on the candidate, and forgets all.
    /// Unless the candidate was promoted, its snapshots are dropped.
    pub(crate) fn end(&self) -> Vec<ObjectName> {
        let mut state = self.state.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Dropped;
        }
        let phase = state.phase;
        let all = std::mem::replace(
            &mut *state,
            State {
                phase,
                ..State::default()
            },
        );
        drop(state);
        all.on.into_keys().chain(all.gone).collect()
    }
}

#[cfg(test)]
mod tests {
    use vmhost_core::Object;

    use super::*;

    fn keys() -> CandidateKeys {
        CandidateKeys::new("p/c".into())
    }

    fn key(name: &str) -> ObjectName {
        ObjectName::new(Some("a"), name)
    }

    fn object(uid: &str, version: u64) -> Snapshot {
        Object::with_text(key("x"), uid, version, "{}")
    }

    fn version(recall: &Recall) -> Option<Option<u64>> {
        match recall {
            Recall::Memory => None,
            Recall::Own(object) => Some(object.as_ref().map(|object| object.version)),
        }
    }

    #[test]
    fn a_key_is_where_its_last_turn_was() {
        let keys = keys();
        assert!(!keys.has(&key("x")));
        keys.begins_on_candidate(&key("x"));
        keys.begins_on_candidate(&key("x"));
        assert!(keys.has(&key("x")));
        assert_eq!((keys.turns("a/x"), keys.turns("a/y")), (2, 0));
        keys.begins_on_live(&key("x"));
        assert!(!keys.has(&key("x")));
        assert_eq!(keys.turns("a/x"), 0);
        // Deleted on the candidate: its next turn, if any, is there too.
        keys.begins_on_candidate(&key("x"));
        assert!(keys.remember_gone(&key("x")));
        assert!(keys.has(&key("x")));
        keys.begins_on_candidate(&key("x"));
        assert!(keys.has(&key("x")));
        assert_eq!(keys.end(), [key("x")]);
        assert!(!keys.has(&key("x")), "the canary is over");
    }

    #[test]
    fn deleted_keys_are_bounded() {
        let keys = keys();
        for number in 0..GONE {
            assert!(keys.remember_gone(&key(&number.to_string())));
        }
        assert!(!keys.remember_gone(&key("one-more")));
        assert!(
            !keys.has(&key("one-more")),
            "its next turn is on the live version"
        );
        assert_eq!(keys.end().len(), GONE);
    }

    #[test]
    fn the_candidate_recalls_what_it_saw_itself() {
        let keys = keys();
        assert_eq!(version(&keys.previous(&key("x"))), None, "asks the memory");
        assert!(!keys.saw(&key("x"), Some(&object("u", 7))), "kept here");
        assert_eq!(version(&keys.previous(&key("x"))), Some(Some(7)));
        assert!(!keys.saw(&key("x"), None));
        assert_eq!(version(&keys.previous(&key("x"))), Some(None));
        // The live version ran the key meanwhile.
        keys.live_saw(&key("x"));
        assert_eq!(version(&keys.previous(&key("x"))), None);
    }

    #[test]
    fn an_object_that_took_over_a_name_is_told_apart() {
        let keys = keys();
        assert!(!keys.saw_other(&key("x"), "u"), "nothing was seen");
        keys.saw(&key("x"), Some(&object("u", 7)));
        assert!(!keys.saw_other(&key("x"), "u"));
        assert!(keys.saw_other(&key("x"), "v"));
        keys.saw(&key("x"), None);
        assert!(
            !keys.saw_other(&key("x"), "v"),
            "it knows that the old one is gone"
        );
    }

    #[test]
    fn a_promotion_hands_the_snapshots_over_and_an_abort_drops_them() {
        let promoted = keys();
        promoted.saw(&key("x"), Some(&object("u", 7)));
        promoted.saw(&key("y"), None);
        let mut merged = Vec::new();
        promoted.merge(|key, object| merged.push((key.clone(), object.map(|saw| saw.version))));
        merged.sort();
        assert_eq!(merged, [(key("x"), Some(7)), (key("y"), None)]);
        assert!(
            promoted.saw(&key("x"), Some(&object("u", 8))),
            "for the memory"
        );
        promoted.end();
        assert!(promoted.saw(&key("x"), None), "still");

        let aborted = keys();
        aborted.saw(&key("x"), Some(&object("u", 7)));
        aborted.end();
        assert_eq!(version(&aborted.previous(&key("x"))), None);
        assert!(!aborted.saw(&key("x"), Some(&object("u", 8))), "for nobody");
    }

    #[test]
    fn keys_that_failed_before_are_known() {
        let keys = keys();
        keys.note_troubled([key("x")]);
        assert!(keys.is_troubled(&key("x")) && !keys.is_troubled(&key("y")));
    }
}
