//! What becomes of a key when its turn is over: exactly one queue decision. The only place that puts a key back.
//!
//! Synchronous, and without a cluster: it sees the controller, the key, and how the turn ended.

use std::sync::Arc;
use std::time::Duration;

use vmhost_core::{Next, ObjectName, Refusal};
use vmhost_engine::CallError;

use crate::controller::{Awaited, COLLISIONS, Controller};
use crate::hot::{HOLD, TURNS};
use crate::permissions::Required;
use crate::telemetry::TurnResult;
use crate::verdict::Verdict;

/// A policy's message is cut behind so many bytes.
const MESSAGE: usize = 4096;

/// The effect that ended a turn.
#[derive(Clone, Debug)]
pub struct Stop {
    /// What its refusal means.
    pub verdict: Verdict,
    /// How long the API server asks to wait (`Retry-After`).
    pub wait: Duration,
    /// What the policy is told.
    pub refusal: Refusal,
    /// `patch VirtualMachine.v1.cloud.waibizi.com default/public-wx`.
    pub what: String,
    /// The rights that it takes, if the API server did not allow it.
    pub required: Required,
}

/// What a person is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The Event's reason. Events of one reason about one object are one series, which keeps the
    /// note of its first: what is to be read by itself has a reason of its own.
    pub reason: &'static str,
    /// What happened.
    pub note: String,
}

impl Report {
    /// The key rests, or is given up.
    const FAILED: &str = "ReconcileFailed";
    /// What others write and what the policy wants do not go together.
    const COLLIDES: &str = "WriteCollides";
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// How the turn is counted.
    pub result: TurnResult,
    /// What a person is to be told, in an Event.
    pub report: Option<Report>,
    /// The rights that are to be asked for, and whose grant wakes the key.
    pub ask: Option<Arc<Required>>,
}

impl From<TurnResult> for Decided {
    fn from(result: TurnResult) -> Self {
        Self {
            result,
            report: None,
            ask: None,
        }
    }
}

/// The call returned no outcome.
pub fn call_failed(controller: &Controller, key: &ObjectName, error: &CallError) -> Decided {
    controller.metrics.call_error(error);
    if let CallError::Busy(_) = error {
        tracing::warn!("reconcile waits: {error}");
        controller.queue.add_rate_limited(key.clone());
        return TurnResult::Requeue.into();
    }
    tracing::error!("reconcile failed: {error}");
    retry(controller, key, None, Duration::ZERO, &error.to_string())
}

/// The host has prepared the object: the policy's turn comes now.
pub fn again(controller: &Controller, key: &ObjectName) -> Decided {
    controller.requeued(key);
    controller.queue.add(key.clone());
    TurnResult::Requeue.into()
}

/// A timer's key comes up by the clock, however its turn ended.
pub fn by_clock(controller: &Controller, key: &ObjectName) {
    if let Some(tick) = controller.until_tick() {
        controller.queue.add_after(key.clone(), tick);
    }
}

/// A key is too busy with itself: how long it rests, as a sentence for people. Whatever wakes it meanwhile waits that long.
pub fn hold(controller: &Controller) -> String {
    controller.metrics.wakes.hot.inc();
    let note = format!(
        "{TURNS} turns within a minute each wrote something or came back at once: the key rests for {HOLD:?}"
    );
    tracing::warn!("{note}");
    note
}

/// All effects were carried out: what the policy wants next.
pub fn follow(controller: &Controller, key: &ObjectName, next: Next) -> Decided {
    match next {
        Next::AwaitChange | Next::Finalized => {
            controller.forget(key);
            TurnResult::Success.into()
        }
        Next::RequeueAfterMs(ms) => {
            controller.forget(key);
            controller
                .queue
                .add_after(key.clone(), Duration::from_millis(ms.into()));
            TurnResult::RequeueAfter.into()
        }
        Next::Requeue => {
            controller.requeued(key);
            controller.queue.add_rate_limited(key.clone());
            TurnResult::Requeue.into()
        }
        Next::Retry(message) => {
            let message = vmhost_core::cut(&message, MESSAGE);
            tracing::error!("reconcile failed, will be retried: {message}");
            retry(controller, key, None, Duration::ZERO, message)
        }
        Next::Fail(message) => {
            let message = vmhost_core::cut(&message, MESSAGE);
            tracing::error!("reconcile failed for good: {message}");
            terminal(controller, key, None, message.to_owned())
        }
    }
}

/// An effect was refused: what that means for the key.
pub fn refused(controller: &Controller, key: &ObjectName, stop: Stop) -> Decided {
    let Stop {
        verdict,
        wait,
        refusal,
        what,
        required,
    } = stop;
    let message = refusal.message.clone();
    match verdict {
        Verdict::Done | Verdict::Gone | Verdict::Ended => {
            tracing::debug!("cannot {what}, nothing more to do: {message}");
            controller.forget(key);
            TurnResult::Success.into()
        }
        Verdict::Conflict | Verdict::Exists => collided(controller, key, refusal, wait, &what),
        Verdict::Retry => {
            tracing::warn!("cannot {what}, will be retried: {message}");
            let note = format!("cannot {what}: {message}");
            retry(controller, key, Some(refusal), wait, &note)
        }
        Verdict::NotLeading => {
            tracing::debug!("cannot {what}, another host may lead: {message}");
            controller.queue.add_rate_limited(key.clone());
            TurnResult::Requeue.into()
        }
        Verdict::Unauthorized => {
            tracing::error!(
                "cannot {what}: the API server does not know who this is (401), check the credentials: {message}"
            );
            controller.queue.add_rate_limited(key.clone());
            TurnResult::Error.into()
        }
        Verdict::Forbidden => forbidden(controller, key, refusal, &what, required),
        Verdict::Terminal => {
            tracing::error!(
                "cannot {what}, rests until the object or the plugin changes: {message}"
            );
            terminal(
                controller,
                key,
                Some(refusal),
                format!("cannot {what}: {message}"),
            )
        }
    }
}

/// Others have written what the policy did not see. Nobody's failure: tried again from the first
/// step of the back-off. One time too many in a row is an error, which is reported once.
fn collided(
    controller: &Controller,
    key: &ObjectName,
    refusal: Refusal,
    wait: Duration,
    what: &str,
) -> Decided {
    let before = controller
        .failing(key)
        .map_or(0, |failing| failing.collisions);
    if before == 0 {
        controller.queue.forget(key);
    }
    let message = refusal.message.clone();
    let retries = controller.remember(key, Some(refusal), true);
    if before < COLLISIONS {
        tracing::debug!("cannot {what}, will look again: {message}");
        controller
            .queue
            .add_rate_limited_not_before(key.clone(), wait);
        return TurnResult::Requeue.into();
    }
    let times = before + 1;
    let note = format!("cannot {what} for the {times}th time in a row: {message}");
    tracing::warn!("{note}; will look again");
    let mut decided = again_or_not(controller, key, retries, wait, &note);
    if before == COLLISIONS {
        let reason = Report::COLLIDES;
        decided.report.get_or_insert(Report { reason, note });
    }
    decided
}

/// The API server does not allow it. Counted and reported, and the key waits until it does. If the
/// rights are granted, it was refused for another reason (admission, a quota), and the key rests as
/// after any terminal failure.
fn forbidden(
    controller: &Controller,
    key: &ObjectName,
    refusal: Refusal,
    what: &str,
    required: Required,
) -> Decided {
    let known = controller.failing(key).unwrap_or_default().rights;
    let mut note = format!("cannot {what}: {}", refusal.message);
    if known == Awaited::Granted || required.rights.is_empty() {
        if known == Awaited::Granted {
            note.push_str("; the right to do it is granted, so that it is not for want of that");
        }
        tracing::error!("{note}; rests until the object or the plugin changes");
        return terminal(controller, key, Some(refusal), note);
    }
    tracing::debug!("{note}; waits for the right");
    note.push_str("; waits until vmhost is granted the right");
    let decided = terminal(controller, key, Some(refusal), note);
    let awaited = match known {
        // A change has woken the key, and it waits as before.
        Awaited::Missing(before) if *before == required => before,
        _ => Arc::new(required),
    };
    controller.await_rights(key, awaited.clone());
    // Also if it waited before: its wait may have ended in between.
    Decided {
        ask: Some(awaited),
        ..decided
    }
}

/// Counted, and tried again unless it was tried often enough, but not before the API server's wait
/// is over.
fn retry(
    controller: &Controller,
    key: &ObjectName,
    refusal: Option<Refusal>,
    wait: Duration,
    message: &str,
) -> Decided {
    let retries = controller.remember(key, refusal, false);
    again_or_not(controller, key, retries, wait, message)
}

/// Tried again, unless it was often enough.
fn again_or_not(
    controller: &Controller,
    key: &ObjectName,
    retries: u32,
    wait: Duration,
    message: &str,
) -> Decided {
    match controller.max_retries {
        Some(most) if retries > most => {
            let note = format!("given up after {most} retries, until something changes: {message}");
            tracing::error!("{note}");
            controller.metrics.wakes.dropped.inc();
            controller.forget(key);
            Decided {
                report: Some(Report {
                    reason: Report::FAILED,
                    note,
                }),
                ..TurnResult::Terminal.into()
            }
        }
        _ => {
            controller
                .queue
                .add_rate_limited_not_before(key.clone(), wait);
            TurnResult::Error.into()
        }
    }
}

/// Counted and reported. The key rests until it changes, or for the longest back-off.
fn terminal(
    controller: &Controller,
    key: &ObjectName,
    refusal: Option<Refusal>,
    note: String,
) -> Decided {
    controller.remember(key, refusal, false);
    controller
        .queue
        .add_rate_limited_at_least(key.clone(), controller.cap);
    Decided {
        report: Some(Report {
            reason: Report::FAILED,
            note,
        }),
        ..TurnResult::Terminal.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapper::MapBuffer;
    use tokio::time::{advance, timeout};
    use vmhost_cluster::Cause;
    use vmhost_core::Description;

    use crate::permissions::{Access, Right};
    use crate::telemetry::Metrics;

    fn controller() -> Arc<Controller> {
        controller_of("")
    }

    fn controller_of(more: &str) -> Arc<Controller> {
        controller_of_trigger(&format!(
            r#""primary":{{"version":"v1","kind":"Pod"}}{more}"#
        ))
    }

    fn controller_of_trigger(fields: &str) -> Arc<Controller> {
        let description = Description::parse(&format!(
            r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{{"name":"c",{fields}}}]}}"#
        ))
        .unwrap();
        Controller::new(
            &description,
            &description.controllers[0],
            None,
            &Metrics::new().unwrap(),
            &MapBuffer::new(1 << 20),
            None,
        )
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

    /// One turn of the key: take it, decide, done.
    async fn turn(
        controller: &Controller,
        decide: impl FnOnce(&Controller, &ObjectName) -> Decided,
    ) -> Decided {
        let lease = controller.queue.get().await.unwrap();
        decide(controller, lease.key())
    }

    /// After how long the key comes back; `None`: not within an hour.
    async fn comes_back(controller: &Controller) -> Option<Duration> {
        let start = tokio::time::Instant::now();
        let lease = timeout(Duration::from_secs(3600), controller.queue.get())
            .await
            .ok()??;
        // Taken, not settled: put it back for the next turn.
        controller.queue.add(lease.key().clone());
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
            turn(&controller, |controller, key| {
                follow(controller, key, next.clone())
            })
            .await;
            assert_eq!(comes_back(&controller).await, back, "{next:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_refusal_has_its_way_back() {
        let ms = Duration::from_millis;
        for (verdict, back) in [
            (Verdict::Gone, None),
            (Verdict::Ended, None),
            (Verdict::Conflict, Some(ms(5))),
            (Verdict::Exists, Some(ms(5))),
            (Verdict::Retry, Some(ms(5))),
            (Verdict::NotLeading, Some(ms(5))),
            (Verdict::Unauthorized, Some(ms(5))),
            (Verdict::Forbidden, Some(ms(1_000_000))),
            (Verdict::Terminal, Some(ms(1_000_000))),
        ] {
            let controller = controller();
            controller.queue.add(key());
            let decided = turn(&controller, |controller, key| {
                refused(controller, key, stop(verdict.clone()))
            })
            .await;
            let told = [Verdict::Forbidden, Verdict::Terminal].contains(&verdict);
            assert_eq!(decided.report.is_some(), told);
            assert_eq!(comes_back(&controller).await, back, "{verdict:?}");
        }
    }

    /// A back-off of this host's own gives way to somebody's change, the API server's word does
    /// not.
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
            turn(&controller, |controller, key| {
                let stop = stop(verdict.clone());
                refused(
                    controller,
                    key,
                    Stop {
                        wait: asked,
                        ..stop
                    },
                )
            })
            .await;
            controller.wake(&key(), 0, Cause::Changed, 9);
            controller.renew(vec![key()]);
            assert_eq!(comes_back(&controller).await, Some(back), "{verdict:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_conflict_starts_at_the_first_step_and_a_row_of_them_backs_off() {
        let controller = controller();
        controller.queue.add(key());
        for _ in 0..5 {
            turn(&controller, |controller, key| {
                follow(controller, key, Next::Retry("x".into()))
            })
            .await;
        }
        let mut waits = Vec::new();
        for _ in 0..3 {
            turn(&controller, |controller, key| {
                refused(controller, key, stop(Verdict::Conflict))
            })
            .await;
            waits.push(comes_back(&controller).await.unwrap().as_millis());
        }
        assert_eq!(waits, [5, 10, 20]);
        assert_eq!(
            controller.failing(&key()).unwrap().attempt,
            5,
            "a conflict is nobody's failure"
        );
    }

    /// A name that is taken, a patch that never fits.
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
                    let decided = turn(&controller, |controller, key| {
                        refused(controller, key, stop(verdict.clone()))
                    })
                    .await;
                    let was = (decided.result, decided.report.is_some());
                    assert_eq!(was, *ending, "{more} {verdict:?} {round}");
                    if let Some(failing) = controller.failing(&key()) {
                        assert_eq!(failing.attempt, 0, "nobody's failure");
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
        turn(&controller, |controller, key| {
            refused(controller, key, stop(Verdict::Exists))
        })
        .await;
        assert_eq!(
            controller.failing(&key()).unwrap().last.unwrap().reason,
            "r"
        );
        turn(&controller, |controller, key| {
            follow(controller, key, Next::Requeue)
        })
        .await;
        let failing = controller.failing(&key()).unwrap();
        assert!(failing.last.is_none(), "its effects were carried out");
        assert_eq!(failing.attempt, 0, "neither is a failure");
        turn(&controller, |controller, key| {
            follow(controller, key, Next::AwaitChange)
        })
        .await;
        assert!(controller.failing(&key()).is_none());
    }

    /// Effect 1 stamps a status, effect 2 gets 403: the stamp's event must not wake the key.
    #[tokio::test(start_paused = true)]
    async fn an_own_write_does_not_shorten_a_back_off() {
        for (event, write, back) in [
            (7, 7, Some(Duration::from_secs(1000))),
            (8, 7, Some(Duration::ZERO)),
        ] {
            let controller = controller();
            controller.queue.add(key());
            let lease = controller.queue.get().await.unwrap();
            controller.own_writes.begin(&key());
            // The event is faster than the write's answer.
            controller.wake(&key(), 0, Cause::Changed, event);
            controller.own_writes.wrote(&key(), 0, write);
            refused(&controller, &key(), stop(Verdict::Terminal));
            controller.end_writes(&key());
            drop(lease);
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
        let decided = turn(&controller, |controller, key| {
            refused(controller, key, forbidden())
        })
        .await;
        let asked = decided.ask.unwrap();
        assert!(controller.awaits(&key(), &asked));
        assert!(decided.report.unwrap().note.contains("waits until"));
        // Somebody changes the object, and the right is still missing.
        controller.wake(&key(), 0, Cause::Changed, 9);
        let decided = turn(&controller, |controller, key| {
            refused(controller, key, forbidden())
        })
        .await;
        assert_eq!(decided.ask.as_ref(), Some(&asked), "the same wait");
        assert!(controller.awaits(&key(), &asked));
        controller.granted_before(&key(), &asked, Duration::from_secs(5));
        assert_eq!(comes_back(&controller).await, Some(Duration::from_secs(5)));
        let decided = turn(&controller, |controller, key| {
            refused(controller, key, forbidden())
        })
        .await;
        assert_eq!(decided.ask, None, "it is not for want of a right");
        assert!(decided.report.unwrap().note.contains("is granted"));
        assert_eq!(comes_back(&controller).await, Some(controller.cap));
        // By then the right may be gone.
        let decided = turn(&controller, |controller, key| {
            refused(controller, key, forbidden())
        })
        .await;
        assert!(decided.ask.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_swap_gives_every_key_its_chance_at_once() {
        let controller = controller();
        controller.queue.add(key());
        turn(&controller, |controller, key| {
            follow(controller, key, Next::Fail("x".into()))
        })
        .await;
        advance(Duration::from_secs(1)).await;
        assert_eq!(controller.renew(vec![key()]), 1);
        assert_eq!(comes_back(&controller).await, Some(Duration::ZERO));
        assert!(controller.failing(&key()).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_given_up_after_its_last_retry() {
        let controller = controller_of(r#","retry":{"maxRetries":5}"#);
        controller.queue.add(key());
        for round in 0..6 {
            let decided = turn(&controller, |controller, key| {
                follow(controller, key, Next::Retry("x".into()))
            })
            .await;
            assert_eq!(decided.report.is_some(), round == 5, "round {round}");
        }
        assert_eq!(comes_back(&controller).await, None);
        assert!(
            controller.failing(&key()).is_none(),
            "the next change starts anew"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_keeps_its_time() {
        let controller = controller_of_trigger(r#""timer":{"everyMs":1000}"#);
        controller.queue.add(key());
        for (took, next) in [
            (300, Next::AwaitChange),
            (2100, Next::Fail("x".into())),
            (0, Next::AwaitChange),
        ] {
            let lease = controller.queue.get().await.unwrap();
            advance(Duration::from_millis(took)).await;
            follow(&controller, lease.key(), next);
            by_clock(&controller, lease.key());
            drop(lease);
            let into = comes_back(&controller).await.unwrap();
            assert_eq!(
                (took + into.as_millis() as u64) % 1000,
                0,
                "a multiple of the period"
            );
            assert!(into <= Duration::from_secs(1));
        }
    }
}
