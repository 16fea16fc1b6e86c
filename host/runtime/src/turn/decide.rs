//! **Done.** Decides about a key at the end of its turn: a pure function from the ending of the
//! turn and the key's failure state to the queue decision and the reports.
//!
//! It has no clock, queue or log; [`crate::turn::conclude`] carries the decision out.

use std::sync::Arc;
use std::time::Duration;

use tracing::Level;
use vmhost_core::{Next, Refusal, one_line};
use vmhost_engine::CallError;
use vmhost_queue::Decision;

use crate::controller::Limits;
use crate::controller::memory::{Awaited, COLLISIONS, Failing};
use crate::observe::metrics::controller::TurnResult;
use crate::rights::access::Required;
use crate::turn::verdict::{Stop, Verdict};

/// Maximum length of a plugin's message, in bytes.
const MESSAGE: usize = 4096;

/// The minimum wait after a write that did not find the key's own object, although the store shows
/// it. If the object was deleted, the event wakes the key sooner.
const MISSING: Duration = Duration::from_secs(1);

/// How a turn ended.
#[derive(Debug)]
pub enum Ended {
    /// All effects were carried out; the plugin says what comes next.
    Done(Next),
    /// The host has prepared the object (added the finalizer); the plugin is called next.
    Prepared,
    /// The call returned no outcome.
    NoOutcome(CallError),
    /// An effect was refused.
    Refused(Stop),
}

/// An Event to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// The Event's reason. Events of one reason about one object form a series that keeps the note
    /// of its first Event, so a note that must be readable needs a reason of its own.
    pub(crate) reason: &'static str,
    /// The Event's note.
    pub(crate) note: String,
}

impl Report {
    /// The key waits after a terminal failure, or is given up.
    const FAILED: &str = "ReconcileFailed";
    /// The plugin's writes keep colliding with another writer's.
    const COLLIDES: &str = "WriteCollides";

    fn failed(note: String) -> Self {
        Self {
            reason: Self::FAILED,
            note,
        }
    }
}

/// The new failure state of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remember {
    /// Keep the failure state.
    AsBefore,
    /// Clear it: the key does not fail, or is given up.
    Nothing,
    /// Store this failure state.
    Failing(Failing),
}

/// The decision about a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    /// The queue decision.
    pub(crate) decision: Decision,
    /// The result for the metrics.
    pub(crate) result: TurnResult,
    /// The new failure state.
    pub(crate) remember: Remember,
    /// A log line, if any.
    pub(crate) log: Option<(Level, String)>,
    /// An Event, if any.
    pub(crate) report: Option<Report>,
    /// The missing rights to follow, if any. Their grant wakes the key.
    pub(crate) ask: Option<Arc<Required>>,
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

    /// Adds a log line, unless there is one already (that the key is given up).
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

    /// Returns whether the key is given up: not retried until something changes, with a cleared
    /// failure state.
    pub(crate) fn is_given_up(&self) -> bool {
        self.result == TurnResult::Terminal && self.remember == Remember::Nothing
    }
}

/// Decides about a key at the end of its turn. `known` is its failure state before.
pub(crate) fn decide(ended: Ended, known: Option<Failing>, limits: Limits) -> Decided {
    match ended {
        Ended::Done(next) => follow(next, known, limits),
        Ended::Prepared => Decided::new(Decision::Now, TurnResult::Requeue, requeued(known)),
        Ended::NoOutcome(error @ CallError::Busy(_)) => {
            let text = format!("reconcile postponed: {error}");
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

/// The decision after all effects were carried out: what the plugin asked for.
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
            let message = &*one_line(vmhost_core::cut(&message, MESSAGE));
            retry(failed(known, None), Duration::ZERO, message, limits)
                .or_logged(Level::ERROR, || {
                    format!("reconcile failed, retrying: {message}")
                })
        }
        Next::Fail(message) => {
            let message = &*one_line(vmhost_core::cut(&message, MESSAGE));
            let text = format!("reconcile failed (terminal): {message}");
            terminal(failed(known, None), message.to_owned(), limits).logged(Level::ERROR, text)
        }
    }
}

/// The decision after a refused effect.
fn refused(stop: Stop, known: Option<Failing>, limits: Limits) -> Decided {
    let (what, message) = (&stop.what, &stop.refusal.message);
    match stop.verdict {
        Verdict::Done | Verdict::Gone | Verdict::Ended => {
            Decided::new(Decision::Forget, TurnResult::Success, Remember::Nothing).logged(
                Level::DEBUG,
                format!("cannot {what}, nothing more to do: {message}"),
            )
        }
        Verdict::Conflict | Verdict::Exists => collided(stop, known, limits, Duration::ZERO),
        Verdict::Missing => collided(stop, known, limits, MISSING),
        Verdict::Retry => {
            let note = format!("cannot {what}: {message}");
            let text = format!("cannot {what}, retrying: {message}");
            let wait = stop.wait;
            retry(failed(known, Some(stop.refusal)), wait, &note, limits)
                .or_logged(Level::WARN, || text)
        }
        Verdict::NotLeading => rate_limited(TurnResult::Requeue, Remember::AsBefore).logged(
            Level::DEBUG,
            format!("cannot {what}, another host may lead: {message}"),
        ),
        Verdict::TakenBack => {
            let text = format!("cannot {what}, the live version runs the key: {message}");
            Decided::new(Decision::ANEW, TurnResult::Requeue, Remember::Nothing)
                .logged(Level::DEBUG, text)
        }
        Verdict::Unauthorized => {
            let text = format!(
                "cannot {what}: the API server rejects the credentials (401), retrying: {message}"
            );
            let decision = Decision::RateLimited {
                at_least: Duration::ZERO,
                not_before: stop.wait,
                anew: false,
            };
            Decided::new(decision, TurnResult::Error, Remember::AsBefore).logged(Level::ERROR, text)
        }
        Verdict::Forbidden => forbidden(stop, known, limits),
        Verdict::Terminal => {
            let text =
                format!("cannot {what}, waiting until the object or the plugin changes: {message}");
            let note = format!("cannot {what}: {message}");
            terminal(failed(known, Some(stop.refusal)), note, limits).logged(Level::ERROR, text)
        }
    }
}

/// The decision after a collision: the plugin had not seen what the server has, since another
/// writer was faster. This is no failure; the key is retried from the first step of the back-off,
/// at least after this time. Too many collisions in a row are an error, which is reported once.
fn collided(stop: Stop, known: Option<Failing>, limits: Limits, at_least: Duration) -> Decided {
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
            at_least,
            not_before: stop.wait,
            anew: before == 0,
        };
        return Decided::new(decision, TurnResult::Requeue, Remember::Failing(failing))
            .logged(Level::DEBUG, format!("cannot {what}, retrying: {message}"));
    }
    let times = before + 1;
    let note = format!("cannot {what} for the {times}th time in a row: {message}");
    let mut decided = retry(failing, stop.wait, &note, limits)
        .or_logged(Level::WARN, || format!("{note}; retrying"));
    if let Decision::RateLimited {
        at_least: least, ..
    } = &mut decided.decision
    {
        *least = at_least;
    }
    if before == COLLISIONS && decided.report.is_none() {
        let reason = Report::COLLIDES;
        return decided.reported(Report { reason, note });
    }
    decided
}

/// The decision after a 403. It is counted and reported, and the key waits for the missing right.
/// If the rights are granted, another check refused the write (admission, a quota), and the key
/// waits as after any terminal failure.
fn forbidden(stop: Stop, known: Option<Failing>, limits: Limits) -> Decided {
    let awaited = known.as_ref().map(|known| known.rights.clone());
    let awaited = awaited.unwrap_or_default();
    let mut note = format!("cannot {}: {}", stop.what, stop.refusal.message);
    let mut failing = failed(known, Some(stop.refusal));
    if awaited == Awaited::Granted || stop.required.rights.is_empty() {
        if awaited == Awaited::Granted {
            note.push_str("; the right to do it is granted, so another check refuses it (such as admission or a quota)");
        }
        let text = format!("{note}; waiting until the object or the plugin changes");
        return terminal(failing, note, limits).logged(Level::ERROR, text);
    }
    let text = format!("{note}; waiting for the right");
    note.push_str("; waits until vmhost is granted the right");
    let required = match awaited {
        // A change woke the key, and it waits for the same rights as before.
        Awaited::Missing(before) if *before == stop.required => before,
        _ => Arc::new(stop.required),
    };
    failing.rights = Awaited::Missing(required.clone());
    Decided {
        // Asked for again, since the earlier wait may have ended meanwhile.
        ask: Some(required),
        ..terminal(failing, note, limits).logged(Level::DEBUG, text)
    }
}

/// A rate-limited retry without any report.
fn rate_limited(result: TurnResult, remember: Remember) -> Decided {
    Decided::new(Decision::RATE_LIMITED, result, remember)
}

/// The new failure state if the plugin asked for another turn after all effects were carried out.
fn requeued(known: Option<Failing>) -> Remember {
    known.map_or(Remember::AsBefore, |known| {
        Remember::Failing(Failing {
            attempt: known.attempt,
            ..Failing::default()
        })
    })
}

/// The failure state after one more failure.
fn failed(known: Option<Failing>, last: Option<Refusal>) -> Failing {
    Failing {
        attempt: known.unwrap_or_default().attempt.saturating_add(1),
        last,
        ..Failing::default()
    }
}

/// Retries a key unless its retries are used up, but not before the wait that the API server asked
/// for.
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

/// Counts and reports a terminal failure. The key waits until the object changes, or for the
/// longest back-off.
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
