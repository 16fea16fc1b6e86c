//! What becomes of a key when its turn is over: a pure function from how the turn ended, and what is
//! known of the key, to the queue's decision and what is told.
//!
//! It has no clock, no queue and no log; [`crate::turn::conclude`] does what it says.

use std::sync::Arc;
use std::time::Duration;

use tracing::Level;
use vmhost_core::{Next, Refusal};
use vmhost_engine::CallError;
use vmhost_queue::Decision;

use crate::controller::Limits;
use crate::controller::memory::{Awaited, COLLISIONS, Failing};
use crate::observe::metrics::controller::TurnResult;
use crate::rights::access::Required;
use crate::turn::verdict::{Stop, Verdict};

/// A policy's message is cut behind so many bytes.
const MESSAGE: usize = 4096;

/// How a turn ended.
#[derive(Debug)]
pub enum Ended {
    /// All effects were carried out; the policy says what comes next.
    Done(Next),
    /// The host has prepared the object: the policy's turn comes now.
    Prepared,
    /// The call returned no outcome.
    NoOutcome(CallError),
    /// An effect was refused.
    Refused(Stop),
}

/// What a person is to be told, in an Event.
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

    fn failed(note: String) -> Self {
        Self {
            reason: Self::FAILED,
            note,
        }
    }
}

/// What is remembered of the key from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remember {
    /// What was remembered before.
    AsBefore,
    /// Nothing: it does not fail, or is given up.
    Nothing,
    /// That it fails.
    Failing(Failing),
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// What the queue does with the key.
    pub decision: Decision,
    /// How the turn is counted.
    pub result: TurnResult,
    /// What the controller's memory keeps.
    pub remember: Remember,
    /// A log line.
    pub log: Option<(Level, String)>,
    /// An Event.
    pub report: Option<Report>,
    /// The rights that are to be asked for, and whose grant wakes the key.
    pub ask: Option<Arc<Required>>,
}

impl Decided {
    fn new(decision: Decision, result: TurnResult, remember: Remember) -> Self {
        Self {
            decision,
            result,
            remember,
            log: None,
            report: None,
            ask: None,
        }
    }

    fn logged(self, level: Level, text: String) -> Self {
        Self {
            log: Some((level, text)),
            ..self
        }
    }

    /// Logs this, unless that the key is given up is logged already.
    fn or_logged(self, level: Level, text: impl FnOnce() -> String) -> Self {
        if self.log.is_some() {
            return self;
        }
        self.logged(level, text())
    }

    fn reported(self, report: Report) -> Self {
        Self {
            report: Some(report),
            ..self
        }
    }

    /// Returns whether the key is not tried again until something changes, and nothing is
    /// remembered of why.
    pub fn is_given_up(&self) -> bool {
        self.result == TurnResult::Terminal && self.remember == Remember::Nothing
    }
}

/// What becomes of a key of which this is known, at the end of a turn.
pub fn decide(ended: Ended, known: Option<Failing>, limits: Limits) -> Decided {
    match ended {
        Ended::Done(next) => follow(next, known, limits),
        Ended::Prepared => Decided::new(Decision::Now, TurnResult::Requeue, requeued(known)),
        Ended::NoOutcome(error @ CallError::Busy(_)) => {
            let text = format!("reconcile waits: {error}");
            rate_limited(TurnResult::Requeue, Remember::AsBefore).logged(Level::WARN, text)
        }
        Ended::NoOutcome(error) => {
            let failing = failed(known, None);
            retry(failing, Duration::ZERO, &error.to_string(), limits)
                .or_logged(Level::ERROR, || format!("reconcile failed: {error}"))
        }
        Ended::Refused(stop) => refused(stop, known, limits),
    }
}

/// All effects were carried out: what the policy wants next.
fn follow(next: Next, known: Option<Failing>, limits: Limits) -> Decided {
    match next {
        Next::AwaitChange | Next::Finalized => {
            Decided::new(Decision::Forget, TurnResult::Success, Remember::Nothing)
        }
        Next::RequeueAfterMs(ms) => {
            let after = Decision::After(Duration::from_millis(ms.into()));
            Decided::new(after, TurnResult::RequeueAfter, Remember::Nothing)
        }
        Next::Requeue => rate_limited(TurnResult::Requeue, requeued(known)),
        Next::Retry(message) => {
            let message = vmhost_core::cut(&message, MESSAGE);
            retry(failed(known, None), Duration::ZERO, message, limits)
                .or_logged(Level::ERROR, || {
                    format!("reconcile failed, will be retried: {message}")
                })
        }
        Next::Fail(message) => {
            let message = vmhost_core::cut(&message, MESSAGE);
            let text = format!("reconcile failed for good: {message}");
            terminal(failed(known, None), message.to_owned(), limits).logged(Level::ERROR, text)
        }
    }
}

/// An effect was refused: what that means for the key.
fn refused(stop: Stop, known: Option<Failing>, limits: Limits) -> Decided {
    let (what, message) = (&stop.what, &stop.refusal.message);
    match stop.verdict {
        Verdict::Done | Verdict::Gone | Verdict::Ended => {
            Decided::new(Decision::Forget, TurnResult::Success, Remember::Nothing).logged(
                Level::DEBUG,
                format!("cannot {what}, nothing more to do: {message}"),
            )
        }
        Verdict::Conflict | Verdict::Exists => collided(stop, known, limits),
        Verdict::Retry => {
            let note = format!("cannot {what}: {message}");
            let text = format!("cannot {what}, will be retried: {message}");
            let wait = stop.wait;
            retry(failed(known, Some(stop.refusal)), wait, &note, limits)
                .or_logged(Level::WARN, || text)
        }
        Verdict::NotLeading => rate_limited(TurnResult::Requeue, Remember::AsBefore).logged(
            Level::DEBUG,
            format!("cannot {what}, another host may lead: {message}"),
        ),
        Verdict::Unauthorized => rate_limited(TurnResult::Error, Remember::AsBefore).logged(
            Level::ERROR,
            format!(
                "cannot {what}: the API server does not know who this is (401), check the credentials: {message}"
            ),
        ),
        Verdict::Forbidden => forbidden(stop, known, limits),
        Verdict::Terminal => {
            let text = format!(
                "cannot {what}, rests until the object or the plugin changes: {message}"
            );
            let note = format!("cannot {what}: {message}");
            terminal(failed(known, Some(stop.refusal)), note, limits).logged(Level::ERROR, text)
        }
    }
}

/// Others have written what the policy did not see. Nobody's failure: tried again from the first
/// step of the back-off. One time too many in a row is an error, which is reported once.
fn collided(stop: Stop, known: Option<Failing>, limits: Limits) -> Decided {
    let (what, message) = (stop.what, stop.refusal.message.clone());
    let known = known.unwrap_or_default();
    let before = known.collisions;
    let failing = Failing {
        attempt: known.attempt,
        collisions: before.saturating_add(1),
        last: Some(stop.refusal),
        rights: Awaited::None,
    };
    if before < COLLISIONS {
        let decision = Decision::RateLimited {
            at_least: Duration::ZERO,
            not_before: stop.wait,
            anew: before == 0,
        };
        return Decided::new(decision, TurnResult::Requeue, Remember::Failing(failing)).logged(
            Level::DEBUG,
            format!("cannot {what}, will look again: {message}"),
        );
    }
    let times = before + 1;
    let note = format!("cannot {what} for the {times}th time in a row: {message}");
    let decided = retry(failing, stop.wait, &note, limits)
        .or_logged(Level::WARN, || format!("{note}; will look again"));
    if before == COLLISIONS && decided.report.is_none() {
        let reason = Report::COLLIDES;
        return decided.reported(Report { reason, note });
    }
    decided
}

/// The API server does not allow it. Counted and reported, and the key waits until it does. If the
/// rights are granted, it was refused for another reason (admission, a quota), and the key rests as
/// after any terminal failure.
fn forbidden(stop: Stop, known: Option<Failing>, limits: Limits) -> Decided {
    let awaited = known.as_ref().map(|known| known.rights.clone());
    let awaited = awaited.unwrap_or_default();
    let mut note = format!("cannot {}: {}", stop.what, stop.refusal.message);
    let mut failing = failed(known, Some(stop.refusal));
    if awaited == Awaited::Granted || stop.required.rights.is_empty() {
        if awaited == Awaited::Granted {
            note.push_str("; the right to do it is granted, so that it is not for want of that");
        }
        let text = format!("{note}; rests until the object or the plugin changes");
        return terminal(failing, note, limits).logged(Level::ERROR, text);
    }
    let text = format!("{note}; waits for the right");
    note.push_str("; waits until vmhost is granted the right");
    let required = match awaited {
        // A change has woken the key, and it waits as before.
        Awaited::Missing(before) if *before == stop.required => before,
        _ => Arc::new(stop.required),
    };
    failing.rights = Awaited::Missing(required.clone());
    Decided {
        // Also if it waited before: its wait may have ended in between.
        ask: Some(required),
        ..terminal(failing, note, limits).logged(Level::DEBUG, text)
    }
}

/// Rate limited, and nothing else.
fn rate_limited(result: TurnResult, remember: Remember) -> Decided {
    Decided::new(Decision::RATE_LIMITED, result, remember)
}

/// The policy asked for another turn, and all effects were carried out.
fn requeued(known: Option<Failing>) -> Remember {
    known.map_or(Remember::AsBefore, |known| {
        Remember::Failing(Failing {
            attempt: known.attempt,
            ..Failing::default()
        })
    })
}

/// One failure more.
fn failed(known: Option<Failing>, last: Option<Refusal>) -> Failing {
    Failing {
        attempt: known.unwrap_or_default().attempt.saturating_add(1),
        last,
        ..Failing::default()
    }
}

/// Tried again unless it was tried often enough, but not before the API server's wait is over.
fn retry(failing: Failing, wait: Duration, message: &str, limits: Limits) -> Decided {
    match limits.max_retries {
        Some(most) if failing.retries() > most => {
            let note = format!("given up after {most} retries, until something changes: {message}");
            Decided::new(Decision::Forget, TurnResult::Terminal, Remember::Nothing)
                .logged(Level::ERROR, note.clone())
                .reported(Report::failed(note))
        }
        _ => {
            let decision = Decision::RateLimited {
                at_least: Duration::ZERO,
                not_before: wait,
                anew: false,
            };
            Decided::new(decision, TurnResult::Error, Remember::Failing(failing))
        }
    }
}

/// Counted and reported. The key rests until it changes, or for the longest back-off.
fn terminal(failing: Failing, note: String, limits: Limits) -> Decided {
    let decision = Decision::RateLimited {
        at_least: limits.cap,
        not_before: Duration::ZERO,
        anew: false,
    };
    Decided::new(decision, TurnResult::Terminal, Remember::Failing(failing))
        .reported(Report::failed(note))
}

#[cfg(test)]
mod tests;
