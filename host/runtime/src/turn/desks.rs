//! The desks of a worker: one for the live generation, and during a canary one for the candidate.
//! The object of a key decides which desk runs the key's turn.
//!
//! This module must not know how a turn runs.

use std::sync::Arc;

use vmhost_core::{Metadata, ObjectName, Snapshot};

use crate::canary::part::Part;
use crate::controller::Controller;
use crate::deploy::slot::{Candidate, Lineup};
use crate::turn::{Desk, Turn};

/// The desks of a worker under one line-up.
pub(crate) struct Desks {
    /// The line-up.
    pub(crate) lineup: Arc<Lineup>,
    live: Arc<Desk>,
    candidate: Option<Arc<Desk>>,
}

/// Whether the key's object was read before its turn.
pub(crate) enum Seen {
    /// No: the turn reads the snapshot itself.
    Unread,
    /// Yes: this snapshot decided which desk runs the turn.
    Read(Option<Snapshot>),
}

impl Desks {
    /// Creates the desks of a controller under this line-up. Returns `None` if the live generation
    /// does not have the controller.
    pub(crate) fn new(lineup: Arc<Lineup>, controller: &Arc<Controller>) -> Option<Self> {
        let parts = lineup
            .candidate
            .as_ref()
            .and_then(|candidate| parts(candidate, controller));
        let (live, candidate) = match (&lineup.candidate, parts) {
            (Some(candidate), Some([live, part])) => {
                let generation = candidate.generation.clone();
                let desk = Desk::with(generation, controller, Some(part), lineup.live.clone());
                (Some(live), desk)
            }
            // The live version runs all timers.
            _ => (None, None),
        };
        Some(Self {
            live: Desk::with(lineup.live.clone(), controller, live, lineup.live.clone())?,
            candidate,
            lineup,
        })
    }

    /// Returns the desk that runs a turn of the key.
    pub(crate) fn of(&self, key: &ObjectName) -> (&Arc<Desk>, Seen) {
        match (&self.candidate, &self.lineup.candidate) {
            (Some(desk), Some(candidate)) => self.choose(desk, candidate, key),
            _ => (&self.live, Seen::Unread),
        }
    }

    fn choose<'a>(
        &'a self,
        desk: &'a Arc<Desk>,
        candidate: &Candidate,
        key: &ObjectName,
    ) -> (&'a Arc<Desk>, Seen) {
        let object = self.live.sources.snapshot(key);
        let runs = match &desk.part {
            Some(part) => runs_on_candidate(desk, part, candidate, key, object.as_ref()),
            None => false,
        };
        (if runs { desk } else { &self.live }, Seen::Read(object))
    }
}

impl Turn {
    /// Begins a turn of the key at a desk. If a canary runs, it is notified.
    pub(crate) fn at(desk: &Arc<Desk>, key: &ObjectName, seen: Seen) -> Self {
        if let Some(part) = &desk.part {
            part.begins(key);
        }
        match seen {
            Seen::Unread => Self::new(desk.clone(), key.clone()),
            Seen::Read(object) => Self::with(desk.clone(), key.clone(), object),
        }
    }
}

/// Returns the live version's side and the candidate's side for the turns of a controller. `None`
/// for a timer.
fn parts(candidate: &Candidate, controller: &Controller) -> Option<[Part; 2]> {
    let keys = candidate.canary.keys(&controller.name)?;
    let parts = [false, true].map(|is_candidate| Part {
        canary: candidate.canary.clone(),
        keys: keys.clone(),
        is_candidate,
    });
    Some(parts)
}

/// Returns whether the candidate runs a key with this object.
fn runs_on_candidate(
    desk: &Desk,
    part: &Part,
    candidate: &Candidate,
    key: &ObjectName,
    object: Option<&Snapshot>,
) -> bool {
    let Some(object) = object else {
        // The version that ran the last turn also handles the deletion.
        return part.keys.has(key);
    };
    let description = desk.sources.description();
    // The candidate first learns that the object which it saw is gone.
    if description.previous && part.keys.saw_other(key, object.uid()) {
        return true;
    }
    // The live version runs all clean-ups.
    candidate.weight.takes(object.uid())
        && !(description.finalizer.is_some() && is_deleting(object))
}

fn is_deleting(object: &Snapshot) -> bool {
    Metadata::parse(&object.text).is_ok_and(|metadata| metadata.is_deleting())
}
