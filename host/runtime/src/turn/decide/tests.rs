//! The decision table: the ending of a turn, the key's failure state, and the decision.

use super::*;

const LIMITS: Limits = Limits {
    max_retries: None,
    cap: Duration::from_secs(1000),
};

fn stop(verdict: Verdict) -> Ended {
    Ended::Refused(Stop {
        verdict,
        wait: Duration::ZERO,
        refusal: refusal(),
        what: "patch x".into(),
        required: Required::default(),
    })
}

fn refusal() -> Refusal {
    Refusal {
        effect: 0,
        code: 409,
        reason: "r".into(),
        message: "m".into(),
    }
}

fn busy() -> Ended {
    Ended::NoOutcome(CallError::Busy("1".into()))
}

fn deadline() -> Ended {
    Ended::NoOutcome(CallError::Deadline(Duration::from_secs(1)))
}

/// A failure state with two failures, the last one without a refusal.
fn known() -> Option<Failing> {
    Some(Failing {
        attempt: 2,
        ..Failing::default()
    })
}

fn rests() -> Decision {
    Decision::RateLimited {
        at_least: LIMITS.cap,
        not_before: Duration::ZERO,
        anew: false,
    }
}

#[test]
fn credentials_that_a_member_refuses_are_waited_for() {
    let Ended::Refused(stop) = stop(Verdict::Unauthorized) else {
        panic!()
    };
    let wait = Duration::from_secs(1);
    let decided = refused(Stop { wait, ..stop }, known(), LIMITS);
    let Decision::RateLimited { not_before, .. } = decided.decision else {
        panic!("{:?}", decided.decision)
    };
    assert_eq!(not_before, wait);
}

#[test]
fn every_ending_has_its_row() {
    use TurnResult::{Error, Requeue, RequeueAfter, Success, Terminal};
    let again = Decision::RATE_LIMITED;
    let collided = Decision::RateLimited {
        at_least: Duration::ZERO,
        not_before: Duration::ZERO,
        anew: true,
    };
    let missing = Decision::RateLimited {
        at_least: Duration::from_secs(1),
        not_before: Duration::ZERO,
        anew: true,
    };
    let after = Decision::After(Duration::from_millis(700));
    // The fourth column is the new number of attempts: `None` if the failure state is kept, 0 if it
    // is cleared.
    for (ended, decision, result, attempt, told) in [
        (
            Ended::Done(Next::AwaitChange),
            Decision::Forget,
            Success,
            Some(0),
            false,
        ),
        (
            Ended::Done(Next::Finalized),
            Decision::Forget,
            Success,
            Some(0),
            false,
        ),
        (
            Ended::Done(Next::RequeueAfterMs(700)),
            after,
            RequeueAfter,
            Some(0),
            false,
        ),
        (Ended::Done(Next::Requeue), again, Requeue, Some(2), false),
        (
            Ended::Done(Next::Retry("x".into())),
            again,
            Error,
            Some(3),
            false,
        ),
        (
            Ended::Done(Next::Fail("x".into())),
            rests(),
            Terminal,
            Some(3),
            true,
        ),
        (Ended::Prepared, Decision::Now, Requeue, Some(2), false),
        (busy(), again, Requeue, None, false),
        (deadline(), again, Error, Some(3), false),
        (
            stop(Verdict::Gone),
            Decision::Forget,
            Success,
            Some(0),
            false,
        ),
        (
            stop(Verdict::Ended),
            Decision::Forget,
            Success,
            Some(0),
            false,
        ),
        (stop(Verdict::Conflict), collided, Requeue, Some(2), false),
        (stop(Verdict::Missing), missing, Requeue, Some(2), false),
        (stop(Verdict::Exists), collided, Requeue, Some(2), false),
        (stop(Verdict::Retry), again, Error, Some(3), false),
        (stop(Verdict::NotLeading), again, Requeue, None, false),
        (
            stop(Verdict::TakenBack),
            Decision::ANEW,
            Requeue,
            Some(0),
            false,
        ),
        (stop(Verdict::Unauthorized), again, Error, None, false),
        (stop(Verdict::Forbidden), rests(), Terminal, Some(3), true),
        (stop(Verdict::Terminal), rests(), Terminal, Some(3), true),
    ] {
        let row = format!("{ended:?}");
        let decided = decide(ended, known(), LIMITS);
        let remembered = match &decided.remember {
            Remember::AsBefore => None,
            Remember::Nothing => Some(0),
            Remember::Failing(failing) => Some(failing.attempt),
        };
        let seen = (decided.decision, decided.result, remembered);
        assert_eq!(seen, (decision, result, attempt), "{row}");
        assert_eq!(decided.report.is_some(), told, "{row}");
    }
}

#[test]
fn the_last_retry_is_the_last() {
    let limits = Limits {
        max_retries: Some(2),
        ..LIMITS
    };
    let failed = |attempt| {
        let known = Failing {
            attempt,
            ..Failing::default()
        };
        decide(Ended::Done(Next::Retry("x".into())), Some(known), limits)
    };
    assert!(!failed(1).is_given_up());
    let last = failed(2);
    assert!(last.is_given_up());
    assert_eq!(last.decision, Decision::Forget);
    let (_, line) = last.log.unwrap();
    assert_eq!(line, "given up after 2 retries, until something changes: x");
    assert_eq!(last.report.unwrap().note, line);
}
