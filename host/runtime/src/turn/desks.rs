//! The desks of a worker: one for the live generation, and during a canary one for the candidate. A
//! key's object decides at which of them its turn works.
//!
//! It must not know how a turn runs.

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

/// What is known of a key's object before its turn.
pub(crate) enum Seen {
    /// Nothing: the turn reads the snapshot itself.
    Unread,
    /// The snapshot that decided at which desk the turn works.
    Read(Option<Snapshot>),
}

impl Desks {
    /// The desks of a controller under this line-up. `None` if the live generation has no such
    /// controller.
    pub(crate) fn new(lineup: Arc<Lineup>, controller: &Arc<Controller>) -> Option<Self> {
        let parts = lineup
            .candidate
            .as_ref()
            .and_then(|candidate| parts(candidate, controller));
        let (live, candidate) = match (&lineup.candidate, parts) {
            (Some(candidate), Some([live, part])) => {
                let generation = candidate.generation.clone();
                let desk = Desk::with(generation, controller, Some(part));
                (Some(live), desk)
            }
            // A timer stays with the live version.
            _ => (None, None),
        };
        Some(Self {
            live: Desk::with(lineup.live.clone(), controller, live)?,
            candidate,
            lineup,
        })
    }

    /// The desk at which a turn of the key works.
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
    /// Begins a turn of the key at a desk, and tells the canary if one runs.
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

/// The parts of the live version and of the candidate in a controller's turns. `None` for a timer.
fn parts(candidate: &Candidate, controller: &Controller) -> Option<[Part; 2]> {
    let keys = candidate.canary.keys(&controller.name)?;
    let parts = [false, true].map(|is_candidate| Part {
        canary: candidate.canary.clone(),
        keys: keys.clone(),
        is_candidate,
    });
    Some(parts)
}

/// Returns whether a key with this object runs on the candidate.
fn runs_on_candidate(
    desk: &Desk,
    part: &Part,
    candidate: &Candidate,
    key: &ObjectName,
    object: Option<&Snapshot>,
) -> bool {
    let Some(object) = object else {
        // A deletion is dealt with where the last turn was.
        return part.keys.has(key);
    };
    let description = desk.sources.description();
    // The candidate learns first that its own object is gone.
    if description.previous && part.keys.saw_other(key, object.uid()) {
        return true;
    }
    // A clean-up stays with the live version.
    candidate.weight.takes(object.uid())
        && !(description.finalizer.is_some() && is_deleting(object))
}

fn is_deleting(object: &Snapshot) -> bool {
    Metadata::parse(&object.text).is_ok_and(|metadata| metadata.is_deleting())
}
