//! A canary as a document: `/plugins/PLUGIN/canary` answers it, `vmhost canary` reads it, and the
//! state contains it without the objects. Plain data, made of a [`Canary`]. Fields are only ever
//! added, and readers ignore unknown ones. It must not know how a document is served or printed.

use std::time::SystemTime;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::canary::breach::Counts;
use crate::canary::end::End;
use crate::canary::steps::percent;
use crate::canary::{Canary, Stage};
use crate::journal::story::Field;

/// A canary without the objects that the candidate wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CanaryState {
    /// The plugin.
    pub plugin: String,
    /// `running`, `promoted` or `aborted`.
    pub state: String,
    /// How it ended, as one word: `promoted`, `operator`, `score`, `leader`, `new-bytes` or
    /// `shutdown`.
    pub end: Option<String>,
    /// How it ended, as a sentence.
    pub reason: Option<String>,
    /// Whether the candidate's keys are put back, or the candidate is the live version.
    pub over: bool,
    /// The candidate's version in its description. Empty if there is none.
    pub version: String,
    /// The candidate's generation.
    pub generation: u64,
    /// `sha256:` and the digest of the candidate's component in hex.
    pub digest: String,
    /// The live generation when the canary began.
    pub live_generation: u64,
    /// `sha256:` and the digest of the live version's component in hex.
    pub live_digest: String,
    /// The candidate's share of the objects: `5%`. After the end, its last share.
    pub weight: String,
    /// The shares of all steps, in order.
    pub steps: Vec<String>,
    /// Milliseconds of a step. Absent if an operator decides.
    pub every_ms: Option<u64>,
    /// When the next step comes.
    pub next_step: Option<String>,
    /// When the canary began, in RFC 3339.
    pub since: String,
    /// When it ended.
    pub ended: Option<String>,
    /// Keys that had a turn on the candidate.
    pub candidate: CanaryKeys,
    /// Keys that had a turn on the live version since the canary began.
    pub live: CanaryKeys,
    /// Candidate keys that ended in a trap, a deadline or a terminal failure.
    pub broken: u64,
    /// Objects that the candidate wrote, or may have written.
    pub written: u64,
}

/// Keys of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CanaryKeys {
    /// Keys that had a turn.
    pub ran: u64,
    /// Keys whose last turn failed.
    pub failing: u64,
}

/// A canary with the objects that the candidate wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CanaryReport {
    /// The canary.
    pub canary: CanaryState,
    /// A page of the objects, in the order in which the candidate wrote them first.
    pub objects: Vec<CanaryObject>,
    /// `from` of the next page; absent on the last.
    pub next: Option<usize>,
    /// Number of further objects, which are on no page because there are too many; 100,000 at most.
    pub unlisted: u64,
}

/// An object that the candidate wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CanaryObject {
    /// `VirtualMachine default/x`.
    pub object: String,
    /// Number of turns that changed it. 0 if no answer came to the candidate's writes, which may
    /// have been carried out.
    pub turns: u64,
    /// The effects of the first of these turns: `patch`, `apply`, `create`, `delete`.
    pub verbs: Vec<String>,
    /// What the first of these turns changed, as far as the object before is known. The old values
    /// are those that the live version left.
    pub fields: Vec<Field>,
    /// Whether the first turn's record was too large to keep, so that verbs and fields are missing.
    pub cut: bool,
}

impl CanaryState {
    /// Describes a canary as it is now.
    pub(crate) fn of(canary: &Canary) -> Self {
        let (about, step, ended) = (&canary.about, canary.step(), canary.ended());
        let ([candidate, live], broken) = canary.counts();
        let is_running = ended.is_none();
        Self {
            plugin: about.plugin.clone(),
            state: match ended.map(|ended| &ended.how) {
                None => "running",
                Some(End::Promoted) => "promoted",
                Some(End::Aborted(_)) => "aborted",
            }
            .to_owned(),
            end: ended.map(|ended| ended.how.word().to_owned()),
            reason: ended.map(|ended| ended.how.to_string()),
            over: canary.stage() == Stage::Over,
            version: about.version.clone(),
            generation: about.generation,
            digest: format!("sha256:{}", about.digest),
            live_generation: about.live,
            live_digest: format!("sha256:{}", about.live_digest),
            weight: percent(step.permille),
            steps: canary
                .steps
                .weights()
                .iter()
                .copied()
                .map(percent)
                .collect(),
            every_ms: canary.steps.every().map(|every| every.as_millis() as u64),
            next_step: step.next.filter(|_| is_running).map(time),
            since: time(about.since),
            ended: ended.map(|ended| time(ended.at)),
            candidate: candidate.into(),
            live: live.into(),
            broken: broken as u64,
            written: canary.written_count(),
        }
    }
}

impl From<Counts> for CanaryKeys {
    fn from(counts: Counts) -> Self {
        Self {
            ran: counts.ran as u64,
            failing: counts.failing as u64,
        }
    }
}

/// Formats a time as RFC 3339 with milliseconds.
fn time(at: SystemTime) -> String {
    Timestamp::try_from(at).map_or_else(|_| String::new(), |at| format!("{at:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canary::end::Abort;
    use crate::canary::tests::canary;

    #[test]
    fn a_state_tells_how_the_canary_ended() {
        let canary = canary();
        let running = CanaryState::of(&canary);
        assert_eq!(
            (running.state.as_str(), running.weight.as_str()),
            ("running", "100%")
        );
        assert_eq!(
            (running.end, running.ended, running.over),
            (None, None, false)
        );
        canary.abort(Abort::NewBytes);
        canary.finish();
        let aborted = CanaryState::of(&canary);
        assert_eq!((aborted.state.as_str(), aborted.over), ("aborted", true));
        assert_eq!(aborted.end.as_deref(), Some("new-bytes"));
        assert!(aborted.ended.is_some_and(|at| at.ends_with('Z')));
        let digests = [aborted.digest, aborted.live_digest];
        assert_eq!(digests, ["sha256:22", "sha256:11"]);
    }
}
