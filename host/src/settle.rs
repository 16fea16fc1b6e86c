//! From an outcome to writes, and from what became of them to exactly one queue decision.
//!
//! Effects are carried out in order, on the runtime that does the I/O (the first request leaves before the turn goes there); the first that fails ends the turn. All are checked against the grants before the first is
//! written. What becomes of the key is decided in [`crate::decide`].

use std::sync::Arc;

use tokio::runtime::Handle;
use vmhost_cluster::{ObjectRef, RecordedEvent};
use vmhost_core::{Effect, Event, EventType, Next, ObjectName, Outcome};
use vmhost_engine::CallError;

use crate::controller::Controller;
use crate::decide::{self, Decided};
use crate::finalizer;
use crate::rights::Rights;
use crate::telemetry::TurnResult;
use crate::worker::Turn;
use crate::writes::Writer;

mod carry;
mod check;
mod warnings;
mod wrote;

use carry::carry_out;
pub use check::{Refused, check};
pub use warnings::Warnings;

/// Who comes back sooner than after so many milliseconds has not paused.
const AT_ONCE: u32 = 100;

/// What a policy is told that says `finalized` at the wrong time.
pub const NOT_DELETING: &str = "`finalized`, but the request did not say `deleting`";

/// What settling needs, once for the process.
pub struct Settler {
    /// Sends writes.
    pub writer: Writer,
    /// Knows which keys wait for a right.
    pub rights: Arc<Rights>,
    /// The API server's warnings that were logged.
    pub warnings: Warnings,
    /// The runtime that does the I/O. Guests never run on it.
    pub io: Handle,
}

/// Settles one turn: writes, then one queue decision. Returns before the lease drops.
pub async fn settle(
    settler: &Arc<Settler>,
    turn: Arc<Turn>,
    called: Result<Outcome, CallError>,
) -> TurnResult {
    let (controller, key) = (&turn.desk.controller, &turn.key);
    let mut busy = false;
    let decided = match called {
        Err(error) => decide::call_failed(controller, key, &error),
        Ok(mut outcome) => {
            let removal = finalized(&turn, &outcome.next).unwrap_or_else(|reason| {
                outcome.next = Next::Fail(reason.into());
                None
            });
            busy = matches!(outcome.next, Next::RequeueAfterMs(ms) if ms < AT_ONCE);
            if outcome.effects.is_empty() && removal.is_none() {
                decide::follow(controller, key, outcome.next)
            } else {
                // Events of the key count when this drops, behind the decision.
                let _held = Held::new(controller, key);
                let carried = carry_out(settler, &turn, outcome.effects, removal).await;
                busy |= carried.wrote;
                match carried.stop {
                    None => decide::follow(controller, key, outcome.next),
                    Some(stop) => decide::refused(controller, key, stop),
                }
            }
        }
    };
    finish(settler, &turn, decided, busy)
}

/// What every turn ends with, after its decision.
fn finish(settler: &Settler, turn: &Turn, decided: Decided, busy: bool) -> TurnResult {
    let (controller, key) = (&turn.desk.controller, &turn.key);
    decide::by_clock(controller, key);
    let done = matches!(
        decided.result,
        TurnResult::Success | TurnResult::RequeueAfter
    );
    // Given up: nothing will ask for the last state of what is gone again.
    let dropped = decided.result == TurnResult::Terminal && controller.failing(key).is_none();
    if done || (dropped && turn.object.is_none()) {
        if turn.object.is_none() {
            controller.last_writes.forget(key);
            controller.own_writes.forget(key);
        }
        if turn.desk.sources.description().previous {
            controller.previous.record(key, turn.object.as_ref());
        }
        if turn.replaced {
            decide::again(controller, key);
        }
    }
    if let Some(required) = decided.ask {
        settler.rights.wait(controller, key, required);
    }
    if let Some(report) = decided.report {
        warn(turn, report.reason, report.note);
    }
    if busy && !controller.is_timer() && controller.hot.is_hot(key) {
        warn(turn, "HotLoop", decide::hold(controller));
    }
    decided.result
}

/// A turn without the policy: the object gets what it needs before the policy may see it.
pub async fn prepare(settler: &Arc<Settler>, turn: Arc<Turn>, effect: Effect) -> TurnResult {
    let (controller, key) = (&turn.desk.controller, &turn.key);
    let decided = {
        let _held = Held::new(controller, key);
        let carried = carry_out(settler, &turn, Vec::new(), Some(effect)).await;
        match carried.stop {
            None if carried.wrote => decide::again(controller, key),
            // Somebody takes it off as fast as it comes on.
            None => decide::follow(controller, key, Next::Requeue),
            Some(stop) => decide::refused(controller, key, stop),
        }
    };
    finish(settler, &turn, decided, true)
}

/// A turn in which nothing is to be done: the object is being deleted, and waits for others.
pub fn leave(turn: &Turn) -> TurnResult {
    decide::follow(&turn.desk.controller, &turn.key, Next::AwaitChange).result
}

/// The write that takes the finalizer off, if the policy says that it has cleaned up.
fn finalized(turn: &Turn, next: &Next) -> Result<Option<Effect>, &'static str> {
    if *next != Next::Finalized {
        return Ok(None);
    }
    let finalizer = turn.desk.sources.description().finalizer.as_deref();
    match (finalizer, &turn.object) {
        (Some(finalizer), Some(object)) if turn.deleting => Ok(finalizer::removal(
            finalizer,
            &turn.desk.controller.kind,
            object,
        )),
        _ => Err(NOT_DELETING),
    }
}

/// Tells people, in an Event about the turn's object.
pub fn warn(turn: &Turn, reason: &str, note: String) {
    let event = Event {
        kind: EventType::Warning,
        reason: reason.into(),
        action: "Reconcile".into(),
        note,
        related: None,
    };
    record(turn, &event);
}

/// Holds the key's events back while its effects are carried out.
struct Held<'a> {
    controller: &'a Controller,
    key: &'a ObjectName,
}

impl<'a> Held<'a> {
    fn new(controller: &'a Controller, key: &'a ObjectName) -> Self {
        controller.own_writes.begin(key);
        Self { controller, key }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.controller.end_writes(self.key);
    }
}

/// Hands an Event to the recorder. It never fails a turn.
fn record(turn: &Turn, event: &Event) {
    let controller = &turn.desk.controller;
    let cut = |text: &str| text.chars().take(128).collect::<String>();
    // A guest may return megabytes; a recorder's queue is long.
    let related = event
        .related
        .as_ref()
        .filter(|key| key.kind.kind.len() < 256 && key.name.as_str().len() < 512);
    let recorder = &turn.desk.generation.share.recorder;
    recorder.record(RecordedEvent {
        regarding: ObjectRef {
            kind: controller.kind.clone(),
            name: turn.key.clone(),
            uid: turn.object.as_ref().map(|object| object.uid().to_owned()),
            version: turn.object.as_ref().map(|object| object.version),
        },
        related: related.map(|key| ObjectRef {
            kind: key.kind.clone(),
            name: key.name.clone(),
            uid: None,
            version: None,
        }),
        kind: event.kind,
        reason: cut(&event.reason),
        action: cut(if event.action.is_empty() {
            &event.reason
        } else {
            &event.action
        }),
        note: vmhost_core::cut(&event.note, 1024).to_owned(),
        reporting_controller: turn
            .desk
            .sources
            .description()
            .event_source
            .clone()
            .unwrap_or_else(|| controller.field_manager.clone()),
    });
}
