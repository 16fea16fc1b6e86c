//! A turn's effects, carried out within the grants: checked all together, written in their order, and
//! waited for until the stores show them. The first that fails ends the turn.
//!
//! It says how the turn ended, and must not know what becomes of the key.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use vmhost_cluster::begin;
use vmhost_core::{Effect, Gvk, Next, ObjectKey, ObjectName, Outcome, Refusal};

use crate::controller::Controller;
use crate::rights::access::Required;
use crate::turn::decide::Ended;
use crate::turn::finalizer::{self, NOT_DELETING};
use crate::turn::verdict::{Stop, Verdict, judge, refusal};
use crate::turn::{Desk, Turn};

pub mod check;
pub mod warnings;
pub mod writes;
mod wrote;

use check::check;
use warnings::Warnings;
use writes::{FencedWriter, Guard};
use wrote::Wrote;

/// A turn that wants to come back sooner than after so many milliseconds has not paused.
const AT_ONCE: u32 = 100;

/// How long a key waits for its own writes to show up in the stores. Longer than any healthy watch lags; bounded, so that a cut watch never blocks a key for good.
const OWN_WRITES: Duration = Duration::from_secs(5);

/// Carries out effects. One for the process.
pub struct Effects {
    writer: FencedWriter,
    /// The API server's warnings that were logged.
    warnings: Warnings,
    /// The runtime that does the I/O. Guests never run on it.
    io: Handle,
}

/// How a turn ended.
pub struct Settled {
    /// For the decision.
    pub ended: Ended,
    /// It wrote something, or wants to come back at once.
    pub busy: bool,
}

/// What became of a turn's effects.
#[derive(Default)]
struct Carried {
    /// What ended the turn early, if something did.
    stop: Option<Stop>,
    /// An object changed by them.
    wrote: bool,
}

impl From<Stop> for Carried {
    fn from(stop: Stop) -> Self {
        Self {
            stop: Some(stop),
            wrote: false,
        }
    }
}

impl Effects {
    /// Writes by `writer`, on the runtime that this is called on.
    pub fn new(writer: FencedWriter) -> Arc<Self> {
        Arc::new(Self {
            writer,
            warnings: Warnings::default(),
            io: Handle::current(),
        })
    }

    /// Carries out what a policy returned.
    pub async fn settle(self: &Arc<Self>, turn: &Arc<Turn>, outcome: Outcome) -> Settled {
        let Outcome { effects, mut next } = outcome;
        let removal = removal(turn, &next).unwrap_or_else(|reason| {
            next = Next::Fail(reason.into());
            None
        });
        let at_once = matches!(next, Next::RequeueAfterMs(ms) if ms < AT_ONCE);
        if effects.is_empty() && removal.is_none() {
            return Settled {
                ended: Ended::Done(next),
                busy: at_once,
            };
        }
        let carried = self.carry_out(turn, effects, removal).await;
        Settled {
            ended: carried.stop.map_or(Ended::Done(next), Ended::Refused),
            busy: at_once || carried.wrote,
        }
    }

    /// A turn without the policy: the object gets what it needs before the policy may see it.
    pub async fn prepare(self: &Arc<Self>, turn: &Arc<Turn>, effect: Effect) -> Settled {
        let carried = self.carry_out(turn, Vec::new(), Some(effect)).await;
        let ended = match carried.stop {
            None if carried.wrote => Ended::Prepared,
            // Somebody takes it off as fast as it comes on.
            None => Ended::Done(Next::Requeue),
            Some(stop) => Ended::Refused(stop),
        };
        Settled { ended, busy: true }
    }

    /// Checks all effects, then carries them out, and behind them the host's own one.
    async fn carry_out(
        self: &Arc<Self>,
        turn: &Arc<Turn>,
        mut effects: Vec<Effect>,
        own: Option<Effect>,
    ) -> Carried {
        // Events of the key count when this drops.
        let _held = Held::new(&turn.desk.controller, &turn.key);
        let may_show = |kind: &Gvk, namespace: Option<&str>, object: &str| {
            let mut watches = turn.desk.sources.watching(kind, namespace);
            watches.any(|(_, selection)| selection.may_show(object))
        };
        let mut keys = match check(&effects, &turn.desk.generation.grants, may_show) {
            Ok(keys) => keys,
            Err(refused) => return refused.stop(&effects).into(),
        };
        keys.extend(own.as_ref().map(|own| own.key().ok().flatten()));
        effects.extend(own);
        // The first request leaves on this thread: see `begin`.
        let writing = begin(&self.io, {
            let (this, turn) = (self.clone(), turn.clone());
            let reconcile = turn.reconcile.clone();
            reconcile.scope(async move { write_all(&this, &turn, &effects, keys).await })
        });
        writing.await.unwrap_or_else(|error| {
            let refusal = Refusal {
                effect: 0,
                code: 0,
                reason: "InternalError".into(),
                message: error.to_string(),
            };
            let stop = Stop {
                verdict: Verdict::Retry,
                wait: Duration::ZERO,
                refusal,
                what: "carry out the effects".into(),
                required: Required::default(),
            };
            stop.into()
        })
    }
}

/// The write that takes the finalizer off, if the policy says that it has cleaned up.
fn removal(turn: &Turn, next: &Next) -> Result<Option<Effect>, &'static str> {
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

/// Holds the key's events back while its effects are carried out.
struct Held<'a> {
    controller: &'a Controller,
    key: &'a ObjectName,
}

impl<'a> Held<'a> {
    fn new(controller: &'a Controller, key: &'a ObjectName) -> Self {
        controller.memory.begin_writes(key);
        Self { controller, key }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.controller.end_writes(self.key);
    }
}

async fn write_all(
    carrier: &Effects,
    turn: &Turn,
    effects: &[Effect],
    keys: Vec<Option<ObjectKey>>,
) -> Carried {
    let Desk {
        controller,
        sources,
        ..
    } = &*turn.desk;
    let mut wrote = Wrote::new(&turn.key, sources, &controller.memory);
    let mut stop = None;
    for (index, (effect, key)) in effects.iter().zip(keys).enumerate() {
        if let Effect::Event(event) = effect {
            turn.record(event);
            continue;
        }
        let Some(key) = key else {
            continue;
        };
        stop = write_one(carrier, turn, index, effect, key, &mut wrote).await;
        if stop.is_some() {
            break;
        }
    }
    let changed = wrote.changed;
    if tokio::time::timeout(OWN_WRITES, wrote.shown())
        .await
        .is_err()
    {
        controller.metrics.own_write_timeouts.inc();
        tracing::warn!("this turn's writes did not show up in the store within {OWN_WRITES:?}");
    }
    Carried {
        stop,
        wrote: changed,
    }
}

/// Carries one effect out. Returns what ends the turn, if it does.
async fn write_one(
    carrier: &Effects,
    turn: &Turn,
    index: usize,
    effect: &Effect,
    key: ObjectKey,
    wrote: &mut Wrote<'_>,
) -> Option<Stop> {
    let Desk {
        controller,
        sources,
        ..
    } = &*turn.desk;
    // Another version of the same kind names the same object.
    let primary = key.kind.group == controller.kind.group
        && key.kind.kind == controller.kind.kind
        && key.name == turn.key;
    let verb = effect.verb();
    if primary && turn.object.is_none() && !matches!(effect, Effect::Create(_)) {
        // An effect never brings the turn's own object back. What else is to be done goes on: its
        // children may have to be deleted.
        controller.metrics.effect(verb, "gone");
        return None;
    }
    if let Effect::Apply(apply) = effect
        && let Some(stored) = sources.shown(&key.kind, &key.name)
        && controller
            .memory
            .is_repeated(&key, apply, (stored.uid(), stored.version))
    {
        controller.metrics.skipped_applies.inc();
        return None;
    }
    let seen = turn.object.as_ref().filter(|_| primary);
    let written = wrote.version(&key);
    let before = written.or_else(|| match seen {
        Some(seen) => Some(seen.version),
        None if primary => None,
        None => wrote.known_version(&key),
    });
    let guard = Guard {
        uid: seen.map(|object| object.uid()),
        written,
    };
    // Where a watch selects by what is no metadata, the answer has to tell whether it shows the
    // object.
    let whole = sources
        .watching(&key.kind, key.name.namespace())
        .any(|(_, selection)| selection.looks_inside());
    match carrier
        .writer
        .carry_out(effect, &key, guard, &controller.field_manager, whole)
        .await
    {
        Ok(written) => {
            controller.metrics.effect(verb, "ok");
            for warning in &written.warnings {
                if carrier.warnings.is_news(warning) {
                    tracing::warn!(
                        "the API server warns about {verb} {key}: {warning} (logged once an hour)"
                    );
                }
            }
            wrote.note(effect, key, before, &written);
            None
        }
        Err(unwritten) => {
            if unwritten.maybe_applied
                && let Ok(Some(object)) = carrier.writer.read(effect, &key).await
            {
                // The answer was lost: only a live read tells what became of the write.
                wrote.found(&key, &object);
            }
            let verdict = judge(effect, primary, &unwritten.error);
            controller.metrics.effect(verb, result_label(&verdict));
            if verdict == Verdict::Exists {
                wrote.await_taken(&key);
            }
            let what = format!("{verb} {key}");
            (verdict != Verdict::Done).then(|| Stop {
                verdict,
                wait: unwritten.error.retry_after(),
                refusal: refusal(index, effect, &unwritten.error),
                what,
                required: unwritten.required,
            })
        }
    }
}

fn result_label(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Done | Verdict::Gone | Verdict::Ended => "gone",
        Verdict::Conflict => "conflict",
        Verdict::Exists => "exists",
        Verdict::NotLeading => "not_leading",
        Verdict::Retry | Verdict::Unauthorized => "retry",
        Verdict::Forbidden | Verdict::Terminal => "refused",
    }
}
