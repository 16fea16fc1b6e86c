//! Why a canary is aborted by its score, as people read it. This module must not know how keys are
//! counted.

use std::fmt;

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

impl Counts {
    /// The share of the keys that fail.
    pub(crate) fn share(self) -> f64 {
        match self.ran {
            0 => 0.0,
            ran => self.failing as f64 / ran as f64,
        }
    }
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
