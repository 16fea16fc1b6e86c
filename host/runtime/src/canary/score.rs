//! Decides whether a candidate is worse than the live version. It counts keys and not turns: one
//! key that is retried a thousand times is one key.
//!
//! The rules are pure functions. This module must not know what happens after a breach.

use std::collections::HashSet;
use std::fmt;

use vmhost_core::ObjectName;

/// The number of candidate keys that end in a trap, a deadline or a terminal failure before the
/// canary is aborted.
const BROKEN: usize = 3;

/// The number of candidate keys from which on the share of failing keys is compared.
const ENOUGH: usize = 50;

/// The failing share of the candidate's keys has to be more than this many times the live one ...
const TIMES: f64 = 2.0;

/// ... and this much above it.
const ABOVE: f64 = 0.05;

/// The number of keys that are counted on each side. Later keys are not counted at all, so that the
/// shares stay right.
const MOST: usize = 1 << 16;

/// What a turn of a key says about its version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    /// The turn failed, and is retried or waits for a change.
    pub(crate) failed: bool,
    /// How the turn broke, if it did: `trap`, `deadline`, `memory`, `malformed` or
    /// `terminal failure`.
    pub(crate) broke: Option<&'static str>,
    /// The key's own turns keep waking it, so that it is held.
    pub(crate) hot: bool,
}

/// Why a canary is aborted.
#[derive(Clone, Debug, PartialEq)]
pub enum Breach {
    /// Keys ended in a trap, a deadline or a terminal failure: each with how.
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

/// Keys of one side.
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
    /// The candidate's keys that broke, each with how.
    broken: Vec<(u64, String, &'static str)>,
}

/// The keys of one side, as hashes.
#[derive(Debug, Default)]
struct Side {
    ran: HashSet<u64>,
    failing: HashSet<u64>,
    /// A key was hot.
    hot: bool,
}

impl Score {
    /// Notes a turn on the live version. `id` stands for the key.
    pub(crate) fn live(&mut self, id: u64, noted: Noted) {
        self.live.note(id, noted);
    }

    /// Notes a turn on the candidate. Returns why the canary has to be aborted, if it has to.
    pub(crate) fn candidate(&mut self, id: u64, key: &ObjectName, noted: Noted) -> Option<Breach> {
        self.candidate.note(id, noted);
        // Turns that end before the abort takes effect add no keys to the reason.
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

/// Returns whether so many more of the candidate's keys fail that chance does not explain it.
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
mod tests {
    use super::*;

    const FINE: Noted = Noted {
        failed: false,
        broke: None,
        hot: false,
    };
    const FAILED: Noted = Noted {
        failed: true,
        broke: None,
        hot: false,
    };

    fn broke(how: &'static str) -> Noted {
        Noted {
            broke: Some(how),
            ..FAILED
        }
    }

    fn key(id: u64) -> ObjectName {
        ObjectName::new(Some("a"), &format!("x{id}"))
    }

    /// Notes this many keys of which the first `failing` fail, on the candidate.
    fn run(score: &mut Score, ran: u64, failing: u64) -> Option<Breach> {
        let note = |id| if id < failing { FAILED } else { FINE };
        let mut found = None;
        // The failing keys come last, so that the shares are those of all keys.
        for id in (0..ran).rev() {
            found = score.candidate(id, &key(id), note(id));
        }
        found
    }

    #[test]
    fn three_keys_that_break_are_enough_and_one_key_is_not() {
        let mut score = Score::default();
        for _ in 0..1000 {
            assert_eq!(score.candidate(1, &key(1), broke("trap")), None);
        }
        assert_eq!(score.candidate(2, &key(2), broke("deadline")), None);
        assert_eq!(score.candidate(2, &key(2), FINE), None, "it stays counted");
        let breach = score.candidate(3, &key(3), broke("terminal failure"));
        assert_eq!(
            breach.unwrap().to_string(),
            "3 keys of the candidate broke: a/x1 (trap), a/x2 (deadline), a/x3 (terminal failure)"
        );
        assert_eq!(score.broken(), 3);
    }

    #[test]
    fn live_keys_that_break_abort_nothing() {
        let mut score = Score::default();
        for id in 0..10 {
            score.live(id, broke("trap"));
        }
        assert_eq!(score.candidate(1, &key(1), FINE), None);
    }

    #[test]
    fn shares_are_compared_from_fifty_keys_on() {
        let counts = |ran, failing| Counts { ran, failing };
        for (candidate, live, expected) in [
            // Too few keys, whatever they do.
            (counts(49, 49), counts(1000, 0), false),
            (counts(50, 50), counts(1000, 0), true),
            // More than five points, with nothing on the live side.
            (counts(100, 5), counts(1000, 0), false),
            (counts(100, 6), counts(1000, 0), true),
            (counts(100, 6), counts(0, 0), true),
            // Above twice the live share, and not five points above it.
            (counts(1000, 41), counts(1000, 20), false),
            // Five points above it, and not above twice the live share.
            (counts(1000, 300), counts(1000, 200), false),
            (counts(1000, 400), counts(1000, 200), false),
            (counts(1000, 401), counts(1000, 200), true),
            (counts(1000, 0), counts(1000, 500), false),
        ] {
            assert_eq!(
                fails_more(candidate, live),
                expected,
                "{candidate:?} {live:?}"
            );
        }
    }

    #[test]
    fn a_key_that_recovers_does_not_fail_any_more() {
        let mut score = Score::default();
        assert_eq!(run(&mut score, 100, 5), None);
        for id in 0..5 {
            assert_eq!(score.candidate(id, &key(id), FINE), None);
        }
        let [candidate, live] = score.counts();
        assert_eq!((candidate.ran, candidate.failing), (100, 0));
        assert_eq!(live, Counts::default());
    }

    #[test]
    fn one_retried_key_is_one_key() {
        let mut score = Score::default();
        assert_eq!(run(&mut score, 100, 0), None);
        for _ in 0..1000 {
            assert_eq!(score.candidate(7, &key(7), FAILED), None);
        }
    }

    #[test]
    fn many_failing_keys_abort_unless_they_fail_on_the_live_version_too() {
        let mut score = Score::default();
        let breach = run(&mut score, 60, 12).unwrap().to_string();
        assert!(
            breach.contains("of 60 keys of the candidate fail"),
            "{breach}"
        );
        let mut score = Score::default();
        for id in 1000..1100 {
            score.live(id, if id < 1015 { FAILED } else { FINE });
        }
        assert_eq!(run(&mut score, 60, 12), None);
    }

    #[test]
    fn a_hot_key_aborts_unless_the_live_version_has_one() {
        let hot = Noted { hot: true, ..FINE };
        let mut score = Score::default();
        let breach = score.candidate(1, &key(1), hot);
        assert_eq!(breach, Some(Breach::Hot("a/x1".into())));
        let mut score = Score::default();
        score.live(2, hot);
        assert_eq!(score.candidate(1, &key(1), hot), None);
    }

    #[test]
    fn the_sets_are_bounded_and_the_shares_stay_right() {
        let mut score = Score::default();
        let most = MOST as u64;
        for id in 0..most + 1000 {
            score.live(id, if id % 2 == 0 { FAILED } else { FINE });
        }
        let [_, live] = score.counts();
        assert_eq!((live.ran, live.failing), (MOST, MOST / 2));
        // A key that is counted still changes sides.
        score.live(0, FINE);
        assert_eq!(score.counts()[1].failing, MOST / 2 - 1);
    }
}
