//! A turn's effects, carried out: checked all together, written in their order, and waited for until the stores show them.
//!
//! It must not know what becomes of the key.

use std::sync::Arc;
use std::time::Duration;

use vmhost_cluster::begin;
use vmhost_core::{Effect, Gvk, ObjectKey, ObjectName, Refusal, Target};

use super::check::check;
use super::wrote::Wrote;
use super::{Settler, record};
use crate::decide::Stop;
use crate::desk::Desk;
use crate::permissions::Required;
use crate::verdict::{Verdict, judge, refusal};
use crate::worker::Turn;
use crate::writes::Guard;

/// How long a key waits for its own writes to show up in the stores. Longer than any healthy watch lags; bounded, so that a cut watch never blocks a key for good.
const OWN_WRITES: Duration = Duration::from_secs(5);

/// What became of a turn's effects.
#[derive(Default)]
pub(super) struct Carried {
    /// What ended the turn early, if something did.
    pub(super) stop: Option<Stop>,
    /// Did an object change by them?
    pub(super) wrote: bool,
}

impl From<Stop> for Carried {
    fn from(stop: Stop) -> Self {
        Self {
            stop: Some(stop),
            wrote: false,
        }
    }
}

/// Checks all effects, then carries them out, and behind them the host's own one.
pub(super) async fn carry_out(
    settler: &Arc<Settler>,
    turn: &Arc<Turn>,
    mut effects: Vec<Effect>,
    own: Option<Effect>,
) -> Carried {
    let may_show = |kind: &Gvk, namespace: Option<&str>, object: &str| {
        let mut watches = turn.desk.sources.watching(kind, namespace);
        watches.any(|(_, selection)| selection.may_show(object))
    };
    let mut targets = match check(&effects, &turn.desk.generation.grants, may_show) {
        Ok(targets) => targets,
        Err(refused) => return refused.stop(&effects).into(),
    };
    targets.extend(own.as_ref().map(|own| own.target().ok().flatten()));
    effects.extend(own);
    // The first request leaves on this thread: see `begin`.
    let writing = begin(&settler.io, {
        let (settler, turn) = (settler.clone(), turn.clone());
        let reconcile = turn.reconcile.clone();
        reconcile.scope(async move { write_all(&settler, &turn, &effects, targets).await })
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

async fn write_all(
    settler: &Settler,
    turn: &Turn,
    effects: &[Effect],
    targets: Vec<Option<Target>>,
) -> Carried {
    let mut wrote = Wrote::default();
    let mut stop = None;
    for (index, (effect, target)) in effects.iter().zip(targets).enumerate() {
        if let Effect::Event(event) = effect {
            record(turn, event);
            continue;
        }
        let Some(target) = target else {
            continue;
        };
        let key = written_key(target);
        stop = write_one(settler, turn, index, effect, key, &mut wrote).await;
        if stop.is_some() {
            break;
        }
    }
    let changed = wrote.changed;
    if tokio::time::timeout(OWN_WRITES, wrote.shown(turn))
        .await
        .is_err()
    {
        turn.desk.controller.metrics.own_write_timeouts.inc();
        tracing::warn!("this turn's writes did not show up in the store within {OWN_WRITES:?}");
    }
    Carried {
        stop,
        wrote: changed,
    }
}

fn written_key(target: Target) -> ObjectKey {
    let name = ObjectName::new(
        target.namespace.as_deref(),
        target.name.as_deref().unwrap_or_default(),
    );
    ObjectKey {
        kind: target.kind,
        name,
    }
}

/// Carries one effect out. Returns what ends the turn, if it does.
async fn write_one(
    settler: &Settler,
    turn: &Turn,
    index: usize,
    effect: &Effect,
    key: ObjectKey,
    wrote: &mut Wrote,
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
            .last_writes
            .is_repeated(&key, apply, (stored.uid(), stored.version))
    {
        controller.metrics.skipped_applies.inc();
        return None;
    }
    let before = wrote.version_before(turn, &key, primary);
    let guard = Guard {
        uid: turn
            .object
            .as_ref()
            .filter(|_| primary)
            .map(|object| object.uid()),
        written: wrote.version(&key),
    };
    // Where a watch selects by what is no metadata, the answer has to tell whether it shows the
    // object.
    let whole = sources
        .watching(&key.kind, key.name.namespace())
        .any(|(_, selection)| selection.looks_inside());
    match settler
        .writer
        .carry_out(effect, &key, guard, &controller.field_manager, whole)
        .await
    {
        Ok(written) => {
            controller.metrics.effect(verb, "ok");
            for warning in &written.warnings {
                if settler.warnings.is_news(warning) {
                    tracing::warn!(
                        "the API server warns about {verb} {key}: {warning} (logged once an hour)"
                    );
                }
            }
            wrote.note(turn, effect, key, before, &written);
            None
        }
        Err(unwritten) => {
            if unwritten.maybe_applied
                && let Ok(Some(object)) = settler.writer.read(effect, &key).await
            {
                // The answer was lost: only a live read tells what became of the write.
                wrote.found(turn, &key, &object);
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
