//! **Done.** Concludes a turn: records the decision in the memory, the metrics, the log and Events,
//! and returns the queue decision to the worker, which alone ends the lease of the key. This module
//! must not know how an effect is carried out.

use std::sync::Arc;

use tracing::Level;
use vmhost_core::{Next, ObjectName};
use vmhost_queue::Decision;

use crate::controller::Controller;
use crate::controller::memory::hot::{HOLD, TURNS};
use crate::observe::metrics::controller::TurnResult;
use crate::rights::wait::Rights;
use crate::turn::Turn;
use crate::turn::decide::{Decided, Ended, Remember, decide};

/// The result of a turn.
#[derive(Debug)]
pub struct Conclusion {
    /// What the queue does with the key.
    pub decision: Decision,
    /// The result in the metrics.
    pub result: TurnResult,
    /// The log line about the end of the turn, if it wrote one.
    pub(crate) message: Option<String>,
    /// Whether the key is held from now on, because its own turns keep waking it.
    pub(crate) hot: bool,
}

impl From<Decided> for Conclusion {
    fn from(decided: Decided) -> Self {
        Self {
            decision: decided.decision,
            result: decided.result,
            message: decided.log.map(|(_, text)| text),
            hot: false,
        }
    }
}

/// Concludes a turn. `busy` means that it wrote something or is requeued at once.
pub fn conclude(rights: &Arc<Rights>, turn: &Turn, ended: Ended, busy: bool) -> Conclusion {
    let (controller, key) = (&turn.desk.controller, &turn.key);
    let mut decided = record(controller, key, ended);
    if turn.desk.is_taken_back() {
        return taken_back(controller, key, decided);
    }
    let done = matches!(
        decided.result,
        TurnResult::Success | TurnResult::RequeueAfter
    );
    let gone = turn.object.is_none();
    if gone && (done || decided.is_given_up()) {
        controller.memory.gone(key);
        let part = turn.desk.part.as_ref();
        if part.is_some_and(|part| part.must_see_again(key)) {
            decided.decision = Decision::ANEW;
        }
    }
    if done || (gone && decided.is_given_up()) {
        if turn.desk.sources.description().previous {
            turn.desk.saw(key, turn.object.as_ref());
        }
        if turn.replaced {
            decided.decision = Decision::ANEW;
        }
    }
    if let Some(required) = decided.ask.take() {
        rights.wait(controller, key, required);
    }
    if let Some(report) = decided.report.take() {
        turn.warn(report.reason, report.note);
    }
    let hot = busy && !controller.is_timer() && controller.memory.was_busy(key);
    if hot {
        controller.metrics.wakes.hot.inc();
        let note = format!(
            "{TURNS} turns within a minute wrote something or were requeued at once; the key is held for {HOLD:?}"
        );
        tracing::warn!("{note}");
        turn.warn("HotLoop", note);
    }
    Conclusion {
        hot,
        ..Conclusion::from(decided)
    }
}

/// Concludes a turn whose canary was aborted while the turn ran. The live version runs its key at
/// once, as if this turn had not failed.
fn taken_back(controller: &Controller, key: &ObjectName, decided: Decided) -> Conclusion {
    // Done after the failure was stored, so that either this line or the end of the canary clears
    // it.
    controller.memory.forgive_these(std::slice::from_ref(key));
    Conclusion {
        decision: Decision::ANEW,
        ..Conclusion::from(decided)
    }
}

/// Concludes a turn without a call: the object is being deleted and waits for other finalizers. The
/// snapshot is not kept as the previous one.
pub(crate) fn leave(turn: &Turn) -> Conclusion {
    let ended = Ended::Done(Next::AwaitChange);
    record(&turn.desk.controller, &turn.key, ended).into()
}

/// Decides, stores the decision in the memory, and logs it.
fn record(controller: &Controller, key: &ObjectName, ended: Ended) -> Decided {
    if let Ended::NoOutcome(error) = &ended {
        controller.metrics.call_error(error);
    }
    let decided = decide(ended, controller.memory.failing(key), controller.limits);
    if decided.is_given_up() {
        controller.metrics.wakes.dropped.inc();
    }
    match &decided.remember {
        Remember::AsBefore => {}
        Remember::Nothing => controller.memory.recovered(key),
        Remember::Failing(failing) => controller.memory.fails(key, failing.clone()),
    }
    match &decided.log {
        None => {}
        Some((Level::ERROR, text)) => tracing::error!("{text}"),
        Some((Level::WARN, text)) => tracing::warn!("{text}"),
        Some((_, text)) => tracing::debug!("{text}"),
    }
    decided
}

#[cfg(test)]
mod tests;
