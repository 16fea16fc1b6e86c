//! Tests of a canary's end and of its report. Other tests use the canary that is built here.

use std::time::{Duration, Instant};

use vmhost_core::{Gvk, Next, ObjectKey, Trace};
use vmhost_queue::{Decision, Lane};

use super::*;
use crate::canary::end::Abort;
use crate::journal::record::{Act, Answer, AnswerEnd, Origin};
use crate::journal::tag::WakeTag;
use crate::observe::metrics::controller::TurnResult;

impl Canary {
    /// Aborts the canary. Nothing puts the candidate's keys back here.
    pub(crate) fn abort(&self, why: Abort) -> bool {
        self.end(End::Aborted(why))
    }
}

/// Returns a canary of a controller `c`, which takes all objects.
pub(crate) fn canary() -> Arc<Canary> {
    let about = About {
        plugin: "p".into(),
        version: "2".into(),
        generation: 2,
        digest: "22".into(),
        live: 1,
        live_digest: "11".into(),
        since: SystemTime::now(),
    };
    let keys = Arc::new(CandidateKeys::new("p/c".into()));
    let keys = BTreeMap::from([("c".to_owned(), keys)]);
    let steps = Steps::parse(Some("100"), None, None).unwrap();
    Canary::new(about, steps, Tuning::default(), keys, Vec::new())
}

fn answer(name: &str, end: AnswerEnd) -> Answer {
    Answer {
        effect: 0,
        object: ObjectKey {
            kind: Gvk::new("", "v1", "Pod"),
            name: ObjectName::new(Some("a"), name),
        },
        before: Some(7),
        end,
    }
}

/// Returns the record of a turn with these answers of the API server.
fn record(answers: Vec<Answer>) -> TurnRecord {
    TurnRecord {
        origin: Arc::new(Origin {
            controller: "p/c".into(),
            kind: Gvk::new("", "v1", "Pod"),
            field_manager: "vmhost/p/c".into(),
            finalizer: None,
            generation: 2,
            digest: "22".into(),
            cluster: BTreeMap::new(),
            settings: Default::default(),
        }),
        key: ObjectName::new(Some("a"), "x"),
        began: Instant::now(),
        took: Duration::ZERO,
        call: Duration::ZERO,
        wait: Duration::ZERO,
        lane: Lane::High,
        tag: WakeTag::default(),
        attempt: 0,
        last: None,
        deleting: false,
        version: Some(7),
        object: None,
        previous: None,
        trace: Trace::default(),
        act: Act::Returned(Next::AwaitChange),
        effects: Vec::new(),
        answers,
        result: TurnResult::Success,
        decision: Decision::Forget,
        message: None,
        cut: None,
    }
}

#[tokio::test]
async fn only_the_first_end_counts() {
    let canary = canary();
    assert!(!canary.is_aborted() && canary.fence().is_ok());
    assert!(canary.abort(Abort::Operator));
    canary.until(Stage::Ending).await;
    assert!(!canary.end(End::Promoted), "it was aborted");
    assert!(canary.is_aborted());
    assert!(end::is_taken_back(&canary.fence().unwrap_err()));

    assert_eq!(canary.to_count(), Some(&End::Aborted(Abort::Operator)));
    assert_eq!(canary.to_count(), None, "it is counted");

    let canary = super::tests::canary();
    assert_eq!(canary.to_count(), None, "it runs");
    assert!(canary.end(End::Promoted));
    assert!(!canary.abort(Abort::LeaderLost));
    assert!(
        canary.fence().is_ok(),
        "its writes are those of the live version"
    );
    canary.finish();
    canary.until(Stage::Over).await;
}

#[test]
fn each_canary_counts_keys_by_other_hashes() {
    let (one, other) = (canary(), canary());
    let key = ObjectName::new(Some("a"), "x");
    assert_eq!(one.id("p/c", &key), one.id("p/c", &key));
    assert_ne!(one.id("p/c", &key), one.id("p/d", &key));
    assert_ne!(one.id("p/c", &key), other.id("p/c", &key));
}

#[test]
fn nothing_counts_after_the_end() {
    let canary = canary();
    let key = ObjectName::new(Some("a"), "x");
    let broke = Noted {
        failed: true,
        broke: Some("trap"),
        hot: false,
    };
    canary.note_live(9, broke);
    canary.abort(Abort::Operator);
    for id in 0..9 {
        assert_eq!(canary.note_candidate(id, &key, broke), None);
    }
    let ([candidate, live], broken) = canary.counts();
    assert_eq!((candidate.ran, live.ran, broken), (0, 1, 0));
}

#[test]
fn what_the_candidate_changed_is_reported() {
    let canary = canary();
    canary.wrote(&record(vec![
        answer("changed", AnswerEnd::Written(8)),
        answer("unchanged", AnswerEnd::Written(7)),
        answer("gone", AnswerEnd::Gone),
        answer("refused", AnswerEnd::Refused(409, "conflict".into())),
        answer("repeated", AnswerEnd::Repeated),
        answer("unanswered", AnswerEnd::Unanswered("timed out".into())),
    ]));
    canary.wrote(&record(vec![answer("unchanged", AnswerEnd::NoObject)]));
    let (written, unlisted) = canary.written(0, 9);
    let names: Vec<&str> = written
        .iter()
        .map(|written| written.object.name.name())
        .collect();
    assert_eq!(
        (names, unlisted),
        (vec!["changed", "gone", "unanswered"], 0)
    );
    let turns: Vec<u64> = written.iter().map(|written| written.turns).collect();
    assert_eq!(turns, [1, 1, 0], "nobody knows of the last");
    assert_eq!(canary.written_count(), 3);
}
