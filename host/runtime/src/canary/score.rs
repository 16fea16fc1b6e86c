//! Decides whether a candidate is worse than the live version. It counts keys and not turns: a key
//! that is retried a thousand times counts once.
//!
//! This module owns the counts and the rules, which are pure functions. It must not know what is
//! done about a breach.

use std::collections::HashSet;
use std::fmt;

use vmhost_core::ObjectName;

/// The canary is aborted when this many of the candidate's keys have ended in a trap, a deadline or
/// a terminal failure.
const BROKEN: usize = 3;

/// The shares of failing keys are compared once the candidate has run this many keys.
const ENOUGH: usize = 50;

/// The canary is aborted if the failing share of the candidate's keys is more than this many times
/// that of the live version's ...
const TIMES: f64 = 2.0;

/// ... and also exceeds it by more than this.
const ABOVE: f64 = 0.05;

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

/// Why a canary is aborted.
#[derive(Clone, Debug, PartialEq)]
pub enum Breach {
    /// Keys ended in a trap, a deadline or a terminal failure; each key with what happened.
    Broken(Vec<(String, &'static str)>),
    /// More keys fail than on the live version.
    Fails {
        /// The keys of the candidate.
        candidate: Counts,
        /// The keys of the live version.
        live: Counts,
    },
    /// A key keeps waking itself.
    Hot(String),
    /// The turns of a key show a warning that the live version does not have.
    Warning {
        /// The warning's name.
        name: String,
        /// The key.
        key: String,
    },
}

/// The keys that one side has run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Keys that had a turn.
    pub ran: usize,
    /// Keys whose last turn failed.
    pub failing: usize,
}

/// The score of a canary.
#[derive(Debug, Default)]
pub(crate) struct Score {
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
    /// Counts a turn on the live version. `id` stands for the key.
    pub(crate) fn live(&mut self, id: u64, noted: Noted) {
        self.live.note(id, noted);
    }

    /// Counts a turn on the candidate. Returns a breach if the canary has to be aborted.
    pub(crate) fn candidate(&mut self, id: u64, key: &ObjectName, noted: Noted) -> Option<Breach> {
        self.candidate.note(id, noted);
        // The list ends with the breach: turns that end later, before the abort, add nothing to it.
        if let Some(how) = noted.broke
            && self.broken.len() < BROKEN
            && self.broken.iter().all(|(known, ..)| *known != id)
        {
            self.broken.push((id, key.to_string(), how));
        }
        if self.broken.len() >= BROKEN {
            let broken = self.broken.iter().map(|(_, key, how)| (key.clone(), *how));
            return Some(Breach::Broken(broken.collect()));
        }
        if noted.hot && !self.live.hot {
            return Some(Breach::Hot(key.to_string()));
        }
        let [candidate, live] = self.counts();
        fails_more(candidate, live).then_some(Breach::Fails { candidate, live })
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

impl Counts {
    /// The share of the keys that fail.
    fn share(self) -> f64 {
        match self.ran {
            0 => 0.0,
            ran => self.failing as f64 / ran as f64,
        }
    }
}

/// Returns whether so many more keys fail on the candidate than on the live version that chance is
/// no explanation.
fn fails_more(candidate: Counts, live: Counts) -> bool {
    let (candidate_share, live_share) = (candidate.share(), live.share());
    candidate.ran >= ENOUGH
        && candidate_share > TIMES * live_share
        && candidate_share > live_share + ABOVE
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(keys) => {
                let keys: Vec<String> = keys
                    .iter()
                    .map(|(key, how)| format!("{key} ({how})"))
                    .collect();
                let (count, keys) = (keys.len(), keys.join(", "));
                write!(f, "{count} keys of the candidate broke: {keys}")
            }
            Self::Fails { candidate, live } => write!(
                f,
                "{} of {} keys of the candidate fail ({:.1} %), and {} of {} of the live version ({:.1} %)",
                candidate.failing,
                candidate.ran,
                candidate.share() * 100.0,
                live.failing,
                live.ran,
                live.share() * 100.0
            ),
            Self::Hot(key) => write!(
                f,
                "the candidate's own turns keep waking the key {key}, so that it was held"
            ),
            Self::Warning { name, key } => write!(
                f,
                "turns of the key {key} on the candidate show the warning {name}, which the live version does not have"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
