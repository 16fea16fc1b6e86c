//! Decides whether a candidate is worse than the live version. It counts keys and not turns: a key
//! that is retried a thousand times counts once.
//!
//! This module owns the counts and the rules, which are pure functions. It must not know what is
//! done about a breach.

use std::collections::HashSet;

use vmhost_core::ObjectName;

use crate::canary::breach::{Breach, Counts};
use crate::canary::rules::Rules;

/// The canary is aborted if the failing share of the candidate's keys is more than this many times
/// that of the live version's, and also exceeds it by what the rules say.
const TIMES: f64 = 2.0;

/// The number of keys that are counted on each side. Further keys are not counted at all, so that
/// the shares stay right.
const MOST: usize = 1 << 16;

/// What the end of a turn shows about the version that ran it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    /// Whether the turn failed, and is retried or waits for a change.
    pub(crate) failed: bool,
    /// How the call broke, if it did: `trap`, `deadline`, `memory`, `malformed` or
    /// `terminal failure`.
    pub(crate) broke: Option<&'static str>,
    /// Whether the key is held, because its own turns keep waking it.
    pub(crate) hot: bool,
}

/// The score of a canary.
#[derive(Debug, Default)]
pub(crate) struct Score {
    rules: Rules,
    candidate: Side,
    live: Side,
    /// The candidate's keys that broke, each with what happened.
    broken: Vec<(u64, String, &'static str)>,
}

/// The keys of one side, as hashes.
#[derive(Debug, Default)]
struct Side {
    ran: HashSet<u64>,
    failing: HashSet<u64>,
    /// Whether a key was held because it kept waking itself.
    hot: bool,
}

impl Score {
    /// A score under these rules.
    pub(crate) fn under(rules: Rules) -> Self {
        Self {
            rules,
            ..Self::default()
        }
    }

    /// Counts a turn on the live version. `id` stands for the key.
    pub(crate) fn live(&mut self, id: u64, noted: Noted) {
        self.live.note(id, noted);
    }

    /// Counts a turn on the candidate. Returns a breach if the canary has to be aborted.
    pub(crate) fn candidate(&mut self, id: u64, key: &ObjectName, noted: Noted) -> Option<Breach> {
        self.candidate.note(id, noted);
        // The list ends with the breach: turns that end later, before the abort, add nothing to it.
        if let Some(how) = noted.broke
            && self.broken.len() < self.rules.broken
            && self.broken.iter().all(|(known, ..)| *known != id)
        {
            self.broken.push((id, key.to_string(), how));
        }
        if self.broken.len() >= self.rules.broken {
            let broken = self.broken.iter().map(|(_, key, how)| (key.clone(), *how));
            return Some(Breach::Broken(broken.collect()));
        }
        if self.rules.hot && noted.hot && !self.live.hot {
            return Some(Breach::Hot(key.to_string()));
        }
        let [candidate, live] = self.counts();
        fails_more(&self.rules, candidate, live).then_some(Breach::Fails { candidate, live })
    }

    /// The keys of the candidate, and those of the live version.
    pub(crate) fn counts(&self) -> [Counts; 2] {
        [self.candidate.counts(), self.live.counts()]
    }

    /// The number of candidate keys that ended in a trap, a deadline or a terminal failure.
    pub(crate) fn broken(&self) -> usize {
        self.broken.len()
    }
}

impl Side {
    fn note(&mut self, id: u64, noted: Noted) {
        self.hot |= noted.hot;
        if self.ran.len() >= MOST && !self.ran.contains(&id) {
            return;
        }
        self.ran.insert(id);
        if noted.failed {
            self.failing.insert(id);
        } else {
            self.failing.remove(&id);
        }
    }

    fn counts(&self) -> Counts {
        Counts {
            ran: self.ran.len(),
            failing: self.failing.len(),
        }
    }
}

/// Returns whether so many more keys fail on the candidate than on the live version that chance is
/// no explanation.
fn fails_more(rules: &Rules, candidate: Counts, live: Counts) -> bool {
    let (candidate_share, live_share) = (candidate.share(), live.share());
    candidate.ran >= rules.enough
        && candidate_share > TIMES * live_share
        && candidate_share > live_share + f64::from(rules.above) / 100.0
}

#[cfg(test)]
mod tests;
