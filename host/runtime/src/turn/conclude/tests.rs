//! Tests of decisions with a controller and its queue, in paused time.

use std::time::Duration;

use tokio::time::{advance, timeout};
use vmhost_cluster::{Notice, NoticeCause};
use vmhost_core::Refusal;

use super::*;
use crate::controller::tests::{controller, controller_with};
use crate::journal::tag::Cause;
use crate::rights::access::{Access, Required, Right};
use crate::turn::verdict::{Stop, Verdict};
use crate::wake::triggers::{Wake, WatchId};

/// A controller of Pods with further fields.
fn controller_of(more: &str) -> Arc<Controller> {
    controller_with(&format!(
        r#""primary":{{"version":"v1","kind":"Pod"}}{more}"#
    ))
}

fn key() -> ObjectName {
    ObjectName::new(Some("a"), "x")
}

fn stop(verdict: Verdict) -> Stop {
    let refusal = Refusal {
        effect: 0,
        code: 409,
        reason: "r".into(),
        message: "m".into(),
    };
    Stop {
        verdict,
        wait: Duration::ZERO,
        refusal,
        what: "patch".into(),
        required: Required::default(),
    }
}

/// Another writer changes the key's object, which gets this version.
fn changed(controller: &Controller, version: u64) {
    let watch = WatchId {
        number: 0,
        kind: Arc::new(controller.kind.clone()),
    };
    let notice = Notice {
        name: &key(),
        cause: NoticeCause::Changed,
        version,
        uid: "u",
        old: None,
        new: None,
        managed: None,
    };
    controller.wake(&key(), &watch, &notice);
}

/// Runs one turn of the key: get, decide, done.
async fn turn(controller: &Controller, ended: Ended) -> Decided {
    let lease = controller.queue.get().await.unwrap();
    let decided = record(controller, lease.key(), ended);
    lease.finish(decided.decision);
    decided
}

/// How long the key takes to come back. `None` if it does not within an hour.
async fn comes_back(controller: &Controller) -> Option<Duration> {
    let start = tokio::time::Instant::now();
    let lease = timeout(Duration::from_secs(3600), controller.queue.get())
        .await
        .ok()??;
    lease.finish(Decision::Postpone(Duration::ZERO));
    Some(start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn each_ending_has_its_way_back() {
    let ms = Duration::from_millis;
    for (next, back) in [
        (Next::AwaitChange, None),
        (Next::RequeueAfterMs(700), Some(ms(700))),
        (Next::Requeue, Some(ms(5))),
        (Next::Retry("x".into()), Some(ms(5))),
        (Next::Fail("x".into()), Some(ms(1_000_000))),
    ] {
        let controller = controller();
        controller.queue.add(key());
        turn(&controller, Ended::Done(next.clone())).await;
        assert_eq!(comes_back(&controller).await, back, "{next:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_refusal_has_its_way_back() {
    let ms = Duration::from_millis;
    for (verdict, back) in [
        (Verdict::Gone, None),
        (Verdict::Ended, None),
        (Verdict::Missing, Some(ms(1000))),
        (Verdict::Conflict, Some(ms(5))),
        (Verdict::Exists, Some(ms(5))),
        (Verdict::Retry, Some(ms(5))),
        (Verdict::NotLeading, Some(ms(5))),
        (Verdict::TakenBack, Some(ms(0))),
        (Verdict::Unauthorized, Some(ms(5))),
        (Verdict::Forbidden, Some(ms(1_000_000))),
        (Verdict::Terminal, Some(ms(1_000_000))),
    ] {
        let controller = controller();
        controller.queue.add(key());
        let decided = turn(&controller, Ended::Refused(stop(verdict.clone()))).await;
        let told = [Verdict::Forbidden, Verdict::Terminal].contains(&verdict);
        assert_eq!(decided.report.is_some(), told);
        assert_eq!(comes_back(&controller).await, back, "{verdict:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_another_version_takes_over_start_anew() {
    let controller = controller();
    let other = ObjectName::new(Some("a"), "y");
    controller.queue.add(key());
    turn(&controller, Ended::Done(Next::Fail("x".into()))).await;
    controller.queue.add(other.clone());
    turn(&controller, Ended::Done(Next::Fail("x".into()))).await;
    assert!(controller.memory.failing(&key()).is_some());
    controller.take_over(vec![key()]);
    assert_eq!(controller.memory.failing(&key()), None);
    assert!(
        controller.memory.failing(&other).is_some(),
        "only these keys"
    );
    let lease = controller.queue.try_get().unwrap();
    assert_eq!((lease.key(), lease.attempt()), (&key(), 0));
    assert!(lease.tag().has(Cause::Canary));
    lease.finish(Decision::Forget);
    assert!(controller.queue.try_get().is_none());
    assert_eq!(
        controller.memory.forgive_these(&[key(), other.clone()]),
        [other]
    );
}

#[test]
fn busy_turns_of_one_version_are_not_counted_against_the_other() {
    let controller = controller();
    let is_held = || controller.memory.was_busy(&key());
    for _ in 1..TURNS {
        assert!(!is_held());
    }
    controller.forgive_these(&[key()]);
    for _ in 1..TURNS {
        assert!(!is_held());
    }
    assert!(is_held());
}

/// The third key that breaks aborts the canary itself, after the end of its own turn was decided.
#[tokio::test(start_paused = true)]
async fn a_back_off_that_begins_after_the_key_was_put_back_is_over() {
    let controller = controller();
    controller.queue.add(key());
    let lease = controller.queue.get().await.unwrap();
    let decided = record(
        &controller,
        lease.key(),
        Ended::Done(Next::Fail("x".into())),
    );
    controller.take_over(vec![key()]);
    lease.finish(decided.decision);
    controller.forgive_these(&[key()]);
    // This is the live version's first failure.
    turn(&controller, Ended::Done(Next::Retry("x".into()))).await;
    let first = Some(Duration::from_millis(5));
    assert_eq!(comes_back(&controller).await, first);
}

/// A change by another writer cuts a back-off of this host short, but not a wait that the API
/// server asks for.
#[tokio::test(start_paused = true)]
async fn nothing_comes_back_before_the_servers_wait_is_over() {
    let wait = Duration::from_secs(3);
    for (verdict, asked, back) in [
        (Verdict::Retry, Duration::ZERO, Duration::ZERO),
        (Verdict::Retry, wait, wait),
        (Verdict::Conflict, wait, wait),
        (Verdict::Exists, wait, wait),
    ] {
        let controller = controller();
        controller.queue.add(key());
        turn(
            &controller,
            Ended::Refused(Stop {
                wait: asked,
                ..stop(verdict.clone())
            }),
        )
        .await;
        changed(&controller, 9);
        controller.renew(vec![key()]);
        assert_eq!(comes_back(&controller).await, Some(back), "{verdict:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_conflict_starts_at_the_first_step_and_a_row_of_them_backs_off() {
    let controller = controller();
    controller.queue.add(key());
    for _ in 0..5 {
        turn(&controller, Ended::Done(Next::Retry("x".into()))).await;
    }
    let mut waits = Vec::new();
    for _ in 0..3 {
        turn(&controller, Ended::Refused(stop(Verdict::Conflict))).await;
        waits.push(comes_back(&controller).await.unwrap().as_millis());
    }
    assert_eq!(waits, [5, 10, 20]);
    assert_eq!(
        controller.memory.failing(&key()).unwrap().attempt,
        5,
        "a conflict is no failure"
    );
}

/// Such as a name that is taken, or a patch that never applies.
#[tokio::test(start_paused = true)]
async fn the_fourth_collision_in_a_row_is_an_error_and_told_once() {
    let free = (TurnResult::Requeue, false);
    let told = (TurnResult::Error, true);
    let counted = (TurnResult::Error, false);
    let given_up = (TurnResult::Terminal, true);
    for (more, endings) in [
        ("", vec![free, free, free, told, counted, counted, counted]),
        (
            r#","retry":{"maxRetries":2}"#,
            vec![free, free, free, told, counted, given_up],
        ),
        (
            r#","retry":{"maxRetries":0}"#,
            vec![free, free, free, given_up],
        ),
    ] {
        for verdict in [Verdict::Conflict, Verdict::Exists] {
            let controller = controller_of(more);
            controller.queue.add(key());
            for (round, ending) in endings.iter().enumerate() {
                let decided = turn(&controller, Ended::Refused(stop(verdict.clone()))).await;
                let was = (decided.result, decided.report.is_some());
                assert_eq!(was, *ending, "{more} {verdict:?} {round}");
                if let Some(failing) = controller.memory.failing(&key()) {
                    assert_eq!(failing.attempt, 0, "a collision is no failure");
                }
            }
            let gone = endings.last() == Some(&given_up);
            assert_eq!(comes_back(&controller).await.is_none(), gone);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_policy_is_told_what_was_refused_until_a_turn_succeeds() {
    let controller = controller();
    controller.queue.add(key());
    turn(&controller, Ended::Refused(stop(Verdict::Exists))).await;
    assert_eq!(
        controller
            .memory
            .failing(&key())
            .unwrap()
            .last
            .unwrap()
            .reason,
        "r"
    );
    turn(&controller, Ended::Done(Next::Requeue)).await;
    let failing = controller.memory.failing(&key()).unwrap();
    assert!(failing.last.is_none(), "its effects were carried out");
    assert_eq!(failing.attempt, 0, "neither is a failure");
    turn(&controller, Ended::Done(Next::AwaitChange)).await;
    assert!(controller.memory.failing(&key()).is_none());
}

/// Effect 1 changes the status, effect 2 gets a 403: the event of the status change must not wake
/// the key.
#[tokio::test(start_paused = true)]
async fn an_own_write_does_not_shorten_a_back_off() {
    for (event, write, back) in [
        (7, 7, Some(Duration::from_secs(1000))),
        (8, 7, Some(Duration::ZERO)),
    ] {
        let controller = controller();
        controller.queue.add(key());
        let lease = controller.queue.get().await.unwrap();
        controller.memory.begin_writes(&key());
        // The event arrives before the response to the write.
        changed(&controller, event);
        controller.memory.wrote(&key(), [0].into_iter(), write);
        controller.end_writes(&key());
        let ended = Ended::Refused(stop(Verdict::Terminal));
        lease.finish(record(&controller, &key(), ended).decision);
        assert_eq!(
            comes_back(&controller).await,
            back,
            "event {event}, write {write}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_a_right_once_and_rests_when_it_is_not_that() {
    let right = Right {
        access: Access {
            group: String::new(),
            resource: "pods".into(),
            name: None,
            verb: "patch".into(),
        },
        namespace: None,
        user: None,
    };
    let forbidden = || Stop {
        required: Required {
            rights: vec![right.clone()],
            name: Some("x".into()),
        },
        ..stop(Verdict::Forbidden)
    };
    let controller = controller();
    controller.queue.add(key());
    let decided = turn(&controller, Ended::Refused(forbidden())).await;
    let asked = decided.ask.unwrap();
    assert!(controller.memory.awaits(&key(), &asked));
    assert!(decided.report.unwrap().note.contains("waits until"));
    // Another writer changes the object, and the right is still missing.
    changed(&controller, 9);
    let decided = turn(&controller, Ended::Refused(forbidden())).await;
    assert_eq!(decided.ask.as_ref(), Some(&asked), "the same wait");
    assert!(controller.memory.awaits(&key(), &asked));
    controller.granted_before(&key(), &asked, Duration::from_secs(5));
    assert_eq!(comes_back(&controller).await, Some(Duration::from_secs(5)));
    let decided = turn(&controller, Ended::Refused(forbidden())).await;
    assert_eq!(decided.ask, None, "no right is missing");
    assert!(decided.report.unwrap().note.contains("is granted"));
    assert_eq!(comes_back(&controller).await, Some(controller.limits.cap));
    // By then the right may have been revoked.
    let decided = turn(&controller, Ended::Refused(forbidden())).await;
    assert!(decided.ask.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_swap_gives_every_key_its_chance_at_once() {
    let controller = controller();
    controller.queue.add(key());
    turn(&controller, Ended::Done(Next::Fail("x".into()))).await;
    advance(Duration::from_secs(1)).await;
    assert_eq!(controller.renew(vec![key()]), 1);
    assert_eq!(comes_back(&controller).await, Some(Duration::ZERO));
    assert!(controller.memory.failing(&key()).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_key_is_given_up_after_its_last_retry() {
    let controller = controller_of(r#","retry":{"maxRetries":5}"#);
    controller.queue.add(key());
    for round in 0..6 {
        let decided = turn(&controller, Ended::Done(Next::Retry("x".into()))).await;
        assert_eq!(decided.report.is_some(), round == 5, "round {round}");
    }
    assert_eq!(comes_back(&controller).await, None);
    assert!(
        controller.memory.failing(&key()).is_none(),
        "the next change starts anew"
    );
}

#[tokio::test(start_paused = true)]
async fn a_timer_keeps_its_time() {
    let controller = controller_with(r#""timer":{"everyMs":1000}"#);
    controller.queue.add(key());
    for (took, next) in [
        (300, Next::AwaitChange),
        (2100, Next::Fail("x".into())),
        (0, Next::AwaitChange),
    ] {
        let lease = controller.queue.get().await.unwrap();
        advance(Duration::from_millis(took)).await;
        let decided = record(&controller, lease.key(), Ended::Done(next));
        controller.arm_timer(lease.key());
        lease.finish(decided.decision);
        let into = comes_back(&controller).await.unwrap();
        assert_eq!(
            (took + into.as_millis() as u64) % 1000,
            0,
            "a multiple of the period"
        );
        assert!(into <= Duration::from_secs(1));
    }
}
