//! Gives a candidate its share of the objects: at the start of a canary, and at each further step.
//!
//! This module must not know when a step comes, or what follows the last one.

use std::time::SystemTime;

use tokio::time::Instant;
use vmhost_core::ObjectName;

use super::{TARGET, Watch};
use crate::canary::Step;
use crate::canary::steps::{Next, percent};
use crate::canary::weight::Weight;
use crate::deploy::slot::{Candidate, Lineup, Wired};

impl Watch {
    /// Gives the candidate this share: announces the new line-up, and hands over the keys that the
    /// candidate did not have before. Returns `false` if the canary has ended in the meantime.
    pub(super) async fn take(&mut self, permille: u16) -> bool {
        let (weight, canary) = (self.canary.weight(permille), &self.canary);
        let before = self.lineup.candidate.as_ref();
        let before = before.map(|candidate| candidate.weight);
        let mut taken = Vec::new();
        for (name, keys) in canary.controllers() {
            if let Some(wired) = self.generation.controllers.get(name) {
                let names = objects(wired, &weight, before.as_ref());
                keys.note_troubled(wired.controller.memory.forgive_these(&names));
                taken.push((wired, names));
            }
        }
        let candidate = Candidate {
            generation: self.generation.clone(),
            weight,
            canary: canary.clone(),
        };
        let lineup = Lineup::with(self.lineup.live.clone(), candidate);
        let Some(lineup) = self.slot.try_out(&self.lineup, &lineup) else {
            return false;
        };
        if canary.ended().is_some() {
            // The abort came before this line-up, so that it could not take the candidate out of
            // it.
            self.slot.take_out(canary);
        }
        self.lineup.started().await;
        self.lineup = lineup;
        let mut count = 0;
        for (wired, names) in taken {
            count += names.len();
            wired.controller.take_over(names);
        }
        let every = canary.steps.every();
        let stays = canary.steps.next(self.step) == Next::Stay;
        let every = every.filter(|_| !stays);
        self.due = every.map(|every| Instant::now() + every);
        canary.steps_to(Step {
            permille,
            next: every.and_then(|every| SystemTime::now().checked_add(every)),
        });
        tracing::info!(
            target: TARGET,
            plugin = self.slot.name,
            generation = self.generation.number,
            "canary {}: generation {} runs {} of the objects (keys requeued: {count}), generation {} the others",
            self.slot.name,
            self.generation.number,
            percent(permille),
            self.lineup.live.number
        );
        true
    }
}

/// Returns the names of the objects that this share contains and the one before did not.
fn objects(wired: &Wired, weight: &Weight, before: Option<&Weight>) -> Vec<ObjectName> {
    let mut names = wired.sources.names();
    names.retain(|name| {
        wired.sources.snapshot(name).is_some_and(|object| {
            let uid = object.uid();
            weight.takes(uid) && before.is_none_or(|before| !before.takes(uid))
        })
    });
    names
}
