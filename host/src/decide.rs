//! What becomes of a key when its turn is over: exactly one queue decision. The only place that puts a key back.
//!
//! Synchronous, and without a cluster: it sees the controller, the key, and how the turn ended.

use std::time::Duration;

use vmhost_core::{Next, ObjectName, Refusal};
use vmhost_engine::CallError;

use crate::controller::Controller;
use crate::hot::{HOLD, TURNS};
use crate::telemetry::TurnResult;
use crate::verdict::Verdict;

/// A policy's message is cut behind so many bytes.
const MESSAGE: usize = 4096;

/// Conflicts in a row that are nobody's business. More look like a patch that never fits.
const CONFLICTS: u32 = 3;

/// The effect that ended a turn.
#[derive(Clone, Debug)]
pub struct Stop {
    /// What its refusal means.
    pub verdict: Verdict,
    /// What the policy is told.
    pub refusal: Refusal,
    /// `patch VirtualMachine.v1.cloud.waibizi.com default/public-wx`.
    pub what: String,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// How the turn is counted.
    pub result: TurnResult,
    /// What a person is to be told, in an Event.
    pub report: Option<String>,
}

impl From<TurnResult> for Decided {
    fn from(result: TurnResult) -> Self {
        Self {
            result,
            report: None,
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
        refusal,
        what,
    } = stop;
    let message = refusal.message.clone();
    match verdict {
        Verdict::Done | Verdict::Gone | Verdict::Ended => {
            tracing::debug!("cannot {what}, nothing more to do: {message}");
            controller.forget(key);
            TurnResult::Success.into()
        }
        Verdict::Conflict => {
            // From the first step, unless the last turn ended like this too.
            let conflicts = controller
                .failing(key)
                .map_or(0, |failing| failing.conflicts);
            if conflicts == 0 {
                controller.queue.forget(key);
            }
            if conflicts < CONFLICTS {
                tracing::debug!("cannot {what}, will look again: {message}");
            } else {
                tracing::warn!(
                    "cannot {what} for the {}th time in a row, will look again: {message}",
                    conflicts + 1
                );
            }
            controller.remember(key, Some(refusal), true);
            controller.queue.add_rate_limited(key.clone());
            TurnResult::Requeue.into()
        }
        Verdict::Exists => {
            tracing::debug!("cannot {what}, will look again: {message}");
            controller.remember(key, Some(refusal), false);
            controller.queue.add_rate_limited(key.clone());
            TurnResult::Requeue.into()
        }
        Verdict::Retry(at_least) => {
            tracing::warn!("cannot {what}, will be retried: {message}");
            let note = format!("cannot {what}: {message}");
            retry(controller, key, Some(refusal), at_least, &note)
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

/// Counted, and tried again unless it was tried often enough.
fn retry(
    controller: &Controller,
    key: &ObjectName,
    refusal: Option<Refusal>,
    at_least: Duration,
    message: &str,
) -> Decided {
    let failures = controller.remember(key, refusal, false);
    match controller.max_retries {
        Some(most) if failures > most => {
            let note = format!("given up after {most} retries, until something changes: {message}");
            tracing::error!("{note}");
            controller.metrics.wakes.dropped.inc();
            controller.forget(key);
            Decided {
                result: TurnResult::Terminal,
                report: Some(note),
            }
        }
        _ => {
            controller
                .queue
                .add_rate_limited_at_least(key.clone(), at_least);
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
        result: TurnResult::Terminal,
        report: Some(note),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapper::MapBuffer;
    use std::sync::Arc;
    use tokio::time::{advance, timeout};
    use vmhost_cluster::Cause;
    use vmhost_core::Description;

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
            refusal,
            what: "patch".into(),
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
            (Verdict::Retry(ms(3000)), Some(ms(3000))),
            (Verdict::NotLeading, Some(ms(5))),
            (Verdict::Unauthorized, Some(ms(5))),
            (Verdict::Terminal, Some(ms(1_000_000))),
        ] {
            let controller = controller();
            controller.queue.add(key());
            let decided = turn(&controller, |controller, key| {
                refused(controller, key, stop(verdict.clone()))
            })
            .await;
            assert_eq!(decided.report.is_some(), verdict == Verdict::Terminal);
            assert_eq!(comes_back(&controller).await, back, "{verdict:?}");
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
        assert_eq!(failing.attempt, 1, "requeue is no failure, and no success");
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
