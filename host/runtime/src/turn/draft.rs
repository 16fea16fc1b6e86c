//! The record of a running turn. It begins right after the key is taken, so that a turn without a
//! call is recorded too. This module must not decide anything.

use std::time::{Duration, Instant};

use vmhost_core::{Next, ObjectName, Outcome, Refusal, Trace};
use vmhost_engine::CallError;
use vmhost_queue::{Decision, Lane, Lease};

use crate::journal::Journal;
use crate::journal::record::{Act, Acts, Quiet, TurnRecord};
use crate::journal::tag::WakeTag;
use crate::observe::metrics::controller::TurnResult;
use crate::observe::trace::TurnTrace;
use crate::shadow::job::{Called, Job};
use crate::turn::spans::{self, Ended};
use crate::turn::{Desk, Turn};

/// The act of a turn that has done nothing else.
const NOTHING: Act = Act::Returned(Next::AwaitChange);

/// The record of a running turn. A worker keeps one and resets it for each turn: a draft inside the
/// turn's future would be copied each time that the future is moved.
pub(crate) struct Draft {
    began: Instant,
    wait: Duration,
    lane: Lane,
    tag: WakeTag,
    /// How the turn went.
    pub(crate) act: Act,
    /// How the call broke, in one word, if that was the plugin's fault.
    pub(crate) broke: Option<&'static str>,
    /// Failures that the policy was told.
    pub(crate) attempt: u32,
    /// The refusal that the policy was told.
    pub(crate) last: Option<Refusal>,
    /// How long the policy's call took.
    pub(crate) call: Duration,
    /// When the policy's call began. `None` without a call.
    called: Option<Instant>,
    /// What the policy asked the host.
    pub(crate) trace: Trace,
}

/// The end of a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// What the queue does with the key.
    pub(crate) decision: Decision,
    /// The result in the metrics.
    pub(crate) result: TurnResult,
    /// When the turn ended, read once for its record and for the metrics.
    pub(crate) at: Instant,
}

impl Draft {
    /// Creates the draft of a turn that began after this key was taken.
    pub(crate) fn new(lease: &Lease<ObjectName, WakeTag>, began: Instant) -> Self {
        Self {
            began,
            wait: lease.wait(),
            lane: lease.lane(),
            tag: lease.tag(),
            act: NOTHING,
            broke: None,
            attempt: 0,
            last: None,
            call: Duration::ZERO,
            called: None,
            trace: Trace::default(),
        }
    }

    /// Makes this the draft of another turn, as [`Draft::new`], without moving anything.
    pub(crate) fn reset(&mut self, lease: &Lease<ObjectName, WakeTag>, at: Instant) {
        let Self {
            began,
            wait,
            lane,
            tag,
            act,
            broke,
            attempt,
            last,
            call,
            called,
            trace,
        } = self;
        (*began, *wait, *lane, *tag) = (at, lease.wait(), lease.lane(), lease.tag());
        (*act, *broke, *attempt, *last) = (NOTHING, None, 0, None);
        (*call, *called) = (Duration::ZERO, None);
        trace.clear();
    }

    /// Notes that the policy's call, which began at this time, has ended.
    pub(crate) fn called(&mut self, began: Instant) {
        self.call = began.elapsed();
        self.called = Some(began);
    }

    /// Notes that the policy has returned.
    pub(crate) fn returned(&mut self, outcome: &Outcome) {
        self.act = Act::Returned(outcome.next.clone());
    }

    /// Notes that the call ended without an outcome.
    pub(crate) fn broke(&mut self, error: &CallError) {
        self.act = Act::Broke(error.to_string());
        let is_at_fault = !matches!(error, CallError::Busy(_));
        self.broke = is_at_fault.then_some(error.kind());
    }

    /// Returns the turn for a shadow of the plugin. `None` if the plugin was not called.
    pub(crate) fn for_shadow(&self, turn: &Turn, called: &Called) -> Option<Job> {
        self.trace.start.as_ref()?;
        // The results of a shadow are kept by controller and name, which members may share.
        if turn.desk.branch.is_some() {
            return None;
        }
        Some(Job {
            live: turn.desk.clone(),
            key: turn.key.clone(),
            began: self.began,
            object: turn.object.clone(),
            previous: turn.previous.clone(),
            deleting: turn.deleting,
            attempt: self.attempt,
            last: self.last.clone(),
            trace: self.trace.clone(),
            called: called.clone(),
        })
    }

    /// Records the turn, with its log line about the end.
    pub(crate) fn finish(
        &mut self,
        journal: &Journal,
        turn: &Turn,
        acts: Acts,
        end: End,
        message: Option<String>,
    ) {
        if let Some(trace) = &turn.reconcile.trace {
            self.end_trace(trace, turn, &acts, end.result);
        }
        let candidate = turn.desk.candidate();
        if !journal.is_on() && candidate.is_none() {
            return;
        }
        let done = matches!(end.result, TurnResult::Success | TurnResult::RequeueAfter);
        // A quiet record does not show that the turn was a clean-up. A clean-up that never ends has
        // to be visible; so has what was sent to other services.
        let is_idle = acts.effects.is_empty() && self.trace.requests == 0;
        let is_quiet = done && is_idle && !turn.deleting;
        if is_quiet && matches!(self.act, Act::Returned(_)) {
            journal.quiet(self.quiet(turn, end));
        } else {
            let record = self.record(turn, acts, end, message);
            if let Some(canary) = candidate {
                canary.wrote(&record);
            }
            journal.turn(record);
        }
    }

    /// Ends the turn's trace, and exports it.
    fn end_trace(&self, trace: &TurnTrace, turn: &Turn, acts: &Acts, result: TurnResult) {
        spans::end(
            trace,
            &Ended {
                origin: &turn.desk.origin,
                key: &turn.key,
                began: self.began,
                wait: self.wait,
                lane: self.lane,
                attempt: self.attempt,
                deleting: turn.deleting,
                call: self.called.map(|began| (began, self.call)),
                act: &self.act,
                broke: self.broke,
                acts,
                result,
            },
        );
    }

    fn take_act(&mut self) -> Act {
        std::mem::replace(&mut self.act, NOTHING)
    }

    fn quiet(&mut self, turn: &Turn, end: End) -> Quiet {
        Quiet {
            origin: turn.desk.origin.clone(),
            key: turn.key.clone(),
            began: self.began,
            since: self.began,
            count: 1,
            took: end.at.saturating_duration_since(self.began),
            call: self.call,
            wait: self.wait,
            tag: self.tag,
            version: turn.object.as_ref().map(|object| object.version),
            act: self.take_act(),
            decision: end.decision,
        }
    }

    fn record(&mut self, turn: &Turn, acts: Acts, end: End, message: Option<String>) -> TurnRecord {
        TurnRecord {
            origin: turn.desk.origin.clone(),
            key: turn.key.clone(),
            began: self.began,
            took: end.at.saturating_duration_since(self.began),
            call: self.call,
            wait: self.wait,
            lane: self.lane,
            tag: self.tag,
            attempt: self.attempt,
            last: self.last.take(),
            deleting: turn.deleting,
            version: turn.object.as_ref().map(|object| object.version),
            object: turn.object.clone(),
            previous: turn.previous.clone(),
            trace: std::mem::take(&mut self.trace),
            act: self.take_act(),
            effects: acts.effects,
            answers: acts.answers,
            result: end.result,
            decision: end.decision,
            message,
            cut: None,
        }
    }
}

/// Records that a key was taken and put back without a turn.
pub(crate) fn record_pause(
    journal: &Journal,
    desk: &Desk,
    lease: &Lease<ObjectName, WakeTag>,
    began: Instant,
    act: Act,
) {
    if !journal.is_on() {
        return;
    }
    journal.quiet(Quiet {
        origin: desk.origin.clone(),
        key: lease.key().clone(),
        began,
        since: began,
        count: 1,
        took: Duration::ZERO,
        call: Duration::ZERO,
        wait: lease.wait(),
        tag: lease.tag(),
        version: None,
        act,
        decision: Decision::Postpone(Duration::ZERO),
    });
}
