//! The keys of one controller during a canary: which of them had their last turn on the candidate,
//! and the snapshots that the candidate saw.
//!
//! After a promotion, the controller's memory gets the snapshots. After an abort they are dropped,
//! so that the live version still sees every change since its own last turn. This module must not
//! know queues.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use vmhost_core::{ObjectName, Snapshot};

/// The number of deleted keys that are remembered. The live version repeats the candidate's turn of
/// each further one, as if the canary were over for that key.
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
    /// The keys whose last turn was on the candidate, each with the number of its turns there in a
    /// row.
    on: HashMap<ObjectName, u32>,
    /// The keys of deleted objects whose last turn was on the candidate.
    gone: HashSet<ObjectName>,
    /// The snapshots of the candidate's last successful turns, if the controller asks for them.
    /// `None` for an object that was deleted.
    previous: HashMap<ObjectName, Option<Snapshot>>,
    /// Keys that failed or were held on the live version when the candidate took them.
    troubled: HashSet<ObjectName>,
}

/// The place where the snapshots of the candidate's turns are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// In this value.
    #[default]
    Open,
    /// In the controller's memory, since the candidate was promoted.
    Merged,
    /// Nowhere, since the canary was aborted.
    Dropped,
}

/// The place of the snapshot of a key's last turn.
#[derive(Clone, Debug)]
pub(crate) enum Recall {
    /// In the controller's memory.
    Memory,
    /// In this value. `None` if the candidate saw the deletion.
    Own(Option<Snapshot>),
}

impl CandidateKeys {
    /// Creates a value without any keys. `label` is the controller's label.
    pub(crate) fn new(label: Arc<str>) -> Self {
        Self {
            label,
            state: Mutex::default(),
        }
    }

    /// Notes keys that failed or were held when the candidate took them: their failures are not the
    /// candidate's fault.
    pub(crate) fn note_troubled(&self, keys: impl IntoIterator<Item = ObjectName>) {
        self.state.lock().troubled.extend(keys);
    }

    /// Returns whether the key failed or was held when the candidate took it.
    pub(crate) fn is_troubled(&self, key: &ObjectName) -> bool {
        self.state.lock().troubled.contains(key)
    }

    /// Notes that a turn of the key begins on the candidate.
    pub(crate) fn begins_on_candidate(&self, key: &ObjectName) {
        let mut state = self.state.lock();
        state.gone.remove(key);
        if let Some(turns) = state.on.get_mut(key) {
            *turns = turns.saturating_add(1);
        } else {
            state.on.insert(key.clone(), 1);
        }
    }

    /// Notes that a turn of the key begins on the live version.
    pub(crate) fn begins_on_live(&self, key: &ObjectName) {
        let mut state = self.state.lock();
        state.on.remove(key);
        state.gone.remove(key);
    }

    /// Notes that the candidate has handled the deletion of the key's object. Returns `false` if
    /// there is no room to remember that: then the live version has to handle the deletion too.
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

    /// The number of turns in a row that the key had on the candidate.
    pub(crate) fn turns(&self, key: &str) -> u32 {
        self.state.lock().on.get(key).copied().unwrap_or_default()
    }

    /// Returns whether the candidate saw another object under this name. Then the candidate has to
    /// learn that this object is gone, before either version sees the new one.
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

    /// Keeps the snapshot that a successful turn of the candidate saw; `None` if the object was
    /// deleted. Returns whether the snapshot has to go into the controller's memory instead.
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

    /// Notes that a successful turn of the live version saw the key's object: the candidate's
    /// snapshot is older, and is dropped.
    pub(crate) fn live_saw(&self, key: &ObjectName) {
        let mut state = self.state.lock();
        let before = state.previous.remove(key);
        drop(state);
        drop(before);
    }

    /// Hands each snapshot to `saw`, because the candidate was promoted. Later snapshots go into
    /// the controller's memory.
    pub(crate) fn merge(&self, mut saw: impl FnMut(&ObjectName, Option<&Snapshot>)) {
        let mut state = self.state.lock();
        state.phase = Phase::Merged;
        // Done under the lock, so that no older snapshot overwrites that of a turn that ends now.
        for (key, object) in std::mem::take(&mut state.previous) {
            saw(&key, object.as_ref());
        }
    }

    /// Returns the keys whose last turn was on the candidate, and forgets all keys, because the
    /// canary is over. If the candidate was not promoted, its snapshots are dropped.
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
mod tests;
