//! **Settle.** Carries out a turn's effects within the plugin's grants: checks all of them, writes
//! them in order, and waits until the stores show the writes. The first failing effect ends the
//! turn.
//!
//! It reports how the turn ended, and must not decide about the key.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use vmhost_core::{Effect, Gvk, ObjectKey, ObjectName, Refusal};

use crate::canary::Canary;
use crate::journal::record::{Acts, Answer, AnswerEnd};
use crate::rights::access::Required;
use crate::turn::decide::Ended;
use crate::turn::verdict::{Stop, Verdict, judge, refusal};
use crate::turn::{Desk, Turn};

pub mod carrier;
pub mod check;
mod held;
mod owners;
pub(crate) mod reach;
mod settle;
pub(crate) mod there;
mod traced;
mod warnings;
pub(crate) mod writes;
mod wrote;

use check::{Refused, check};
use held::Held;
use owners::Own;
use there::{Pen, Placed, Reach};
use warnings::Warnings;
use writes::FencedWriter;
use writes::guard::Guard;
use wrote::Wrote;

/// How long a key waits until the stores show its own writes. This is longer than any healthy watch
/// lags, and bounded, so that a broken watch never blocks a key forever.
const OWN_WRITES: Duration = Duration::from_secs(5);

/// Carries out effects. There is one per process.
pub struct Effects {
    writer: FencedWriter,
    /// Writes to the clusters that effects name.
    reach: Arc<dyn Reach>,
    /// The API server's warnings that were logged recently.
    warnings: Warnings,
    /// The runtime that does the I/O. Guests never run on it.
    io: Handle,
}

/// How a turn ended.
pub struct Settled {
    /// The ending, for the decision.
    pub ended: Ended,
    /// True if the turn wrote something, or asked to be requeued at once.
    pub busy: bool,
    /// The effects and what became of them, for the turn's record.
    pub(crate) acts: Acts,
}

/// The result of carrying out a turn's effects.
#[derive(Default)]
struct Carried {
    /// The effect that ended the turn early, if any.
    stop: Option<Stop>,
    /// True if an object changed.
    wrote: bool,
    acts: Acts,
}

impl Carried {
    /// The result if no effect was carried out.
    fn stopped(stop: Stop, effects: Vec<Effect>) -> Self {
        let refused = effects.get(stop.refusal.effect as usize);
        let object = refused.and_then(|effect| effect.key().ok().flatten());
        let answer = object.map(|object| Answer {
            effect: stop.refusal.effect,
            object,
            before: None,
            end: AnswerEnd::Refused(stop.refusal.code, stop.refusal.message.clone()),
        });
        let answers = answer.into_iter().collect();
        Self {
            stop: Some(stop),
            wrote: false,
            acts: Acts { effects, answers },
        }
    }
}

impl Effects {
    /// Carries out effects with `writer`, and those for other clusters with `reach`, on the current
    /// runtime.
    pub(crate) fn new(writer: FencedWriter, reach: Arc<dyn Reach>) -> Arc<Self> {
        Arc::new(Self {
            writer,
            reach,
            warnings: Warnings::default(),
            io: Handle::current(),
        })
    }

    /// Checks all effects, then carries them out, followed by the host's own effect.
    async fn carry_out(
        self: &Arc<Self>,
        turn: &Arc<Turn>,
        mut effects: Vec<Effect>,
        own: Option<Effect>,
    ) -> Carried {
        // Events of the key are held back until this drops.
        let _held = Held::new(&turn.desk.controller, &turn.key);
        let may_show = |kind: &Gvk, namespace: Option<&str>, object: &str| {
            let mut watches = turn.desk.sources.watching(kind, namespace);
            watches.any(|(_, selection)| selection.may_show(object))
        };
        let mut keys = match check(&effects, &turn.desk.generation.grants, may_show) {
            Ok(keys) => keys,
            Err(refused) => return Carried::stopped(refused.stop(&effects), effects),
        };
        let generation = &turn.desk.seated;
        let member = turn.desk.branch.as_ref().map(|of| of.member.number);
        let terms = &turn.desk.generation.terms;
        let placed = match there::place((generation, terms), member, &effects) {
            Ok(placed) => placed,
            Err(stop) => return Carried::stopped(*stop, effects),
        };
        let place = Own {
            generation,
            member,
            object: turn.object.as_ref(),
        };
        let owned = owners::check(&place, &effects, &keys);
        if let Err(refused) = owned.and_then(|()| owned_there(turn, &placed)) {
            return Carried::stopped(refused.stop(&effects), effects);
        }
        keys.extend(own.as_ref().map(|own| own.key().ok().flatten()));
        effects.extend(own);
        // On the runtime that runs no guests, where a plugin that spins delays no write. The writes
        // go on to their end there even if this future is dropped.
        let writing = self.io.spawn({
            let (this, turn) = (self.clone(), turn.clone());
            let reconcile = turn.reconcile.clone();
            reconcile.scope(async move { write_all(&this, &turn, effects, (keys, placed)).await })
        });
        writing.await.unwrap_or_else(|_| {
            let refusal = Refusal {
                effect: 0,
                code: 0,
                reason: "InternalError".into(),
                message: "the task panicked, or its runtime shut down".into(),
            };
            let stop = Stop {
                verdict: Verdict::Retry,
                wait: Duration::ZERO,
                refusal,
                what: "carry out the effects".into(),
                required: Required::default(),
            };
            Carried::stopped(stop, Vec::new())
        })
    }
}

/// Checks the owners of those effects that name their cluster.
fn owned_there(turn: &Turn, placed: &[Option<Placed>]) -> Result<(), Refused> {
    for (index, placed) in placed.iter().enumerate() {
        let Some(placed) = placed else {
            continue;
        };
        let place = Own {
            generation: &turn.desk.seated,
            member: placed.member.as_ref().map(|member| member.number),
            object: turn.object.as_ref().filter(|_| placed.is_here),
        };
        let (effect, key) = (slice::from_ref(&placed.effect), Some(placed.key.clone()));
        owners::check(&place, effect, &[key]).map_err(|refused| Refused {
            effect: index,
            ..refused
        })?;
    }
    Ok(())
}

async fn write_all(
    carrier: &Effects,
    turn: &Turn,
    effects: Vec<Effect>,
    (keys, placed): (Vec<Option<ObjectKey>>, Vec<Option<Placed>>),
) -> Carried {
    let Desk {
        controller,
        sources,
        ..
    } = &*turn.desk;
    let mut wrote = Wrote::new(&turn.key, sources, &controller.memory);
    let mut stop = None;
    let mut answers: Vec<Answer> = Vec::with_capacity(effects.len());
    for (index, (effect, key)) in effects.iter().zip(keys).enumerate() {
        if let Effect::Event(event) = effect {
            // If an aborted canary's turn has written nothing, it must leave nothing behind.
            if !(turn.desk.is_taken_back() && has_sent_none(&answers)) {
                turn.record(event);
            }
            continue;
        }
        let placed = placed.get(index).and_then(Option::as_ref);
        let named = placed.map(|placed| (&placed.effect, placed.key.clone()));
        let Some((effect, key)) = named.or_else(|| Some((effect, key?))) else {
            continue;
        };
        let candidate = turn.desk.candidate();
        let candidate = candidate.filter(|_| has_sent_none(&answers));
        let answer = match placed.filter(|placed| !placed.is_here) {
            Some(placed) => {
                let guard = Guard {
                    candidate,
                    account: turn.desk.generation.terms.account.as_ref(),
                    turn_member: turn.desk.branch.as_ref().map(|of| &*of.member),
                    ..Guard::default()
                };
                let pen = Pen {
                    controller,
                    guard,
                    warnings: &carrier.warnings,
                };
                there::write(&*carrier.reach, pen, (index, placed)).await
            }
            None => {
                let place = Place {
                    index,
                    key,
                    candidate,
                };
                write_one(carrier, turn, effect, place, &mut wrote).await
            }
        };
        answers.push(answer.0);
        stop = answer.1;
        if stop.is_some() {
            break;
        }
    }
    let changed = wrote.changed;
    let span = traced::awaiting(&turn.reconcile.trace, changed);
    let shown = tokio::time::timeout(OWN_WRITES, wrote.shown()).await;
    traced::awaited(span, shown.is_ok());
    if shown.is_err() {
        controller.metrics.own_write_timeouts.inc();
        tracing::warn!(
            "the turn's own writes did not show up in the store within {OWN_WRITES:?}; continuing without them"
        );
    }
    Carried {
        stop,
        wrote: changed,
        acts: Acts { effects, answers },
    }
}

/// Returns whether a turn with these answers has not sent any write.
fn has_sent_none(answers: &[Answer]) -> bool {
    let is_unsent = |end: &AnswerEnd| matches!(end, AnswerEnd::Repeated | AnswerEnd::NoObject);
    answers.iter().all(|answer| is_unsent(&answer.end))
}

/// An effect, with its place in the turn.
struct Place<'a> {
    /// The number of the effect.
    index: usize,
    /// The object that it writes.
    key: ObjectKey,
    /// The canary, if this is the first write of a turn of its candidate: an abort before it
    /// prevents the write.
    candidate: Option<&'a Canary>,
}

/// Carries out one effect. Returns what became of it, and a stop if it ends the turn.
async fn write_one(
    carrier: &Effects,
    turn: &Turn,
    effect: &Effect,
    Place {
        index,
        key,
        candidate,
    }: Place<'_>,
    wrote: &mut Wrote<'_>,
) -> (Answer, Option<Stop>) {
    let mut answer = Answer {
        effect: index as u32,
        object: key.clone(),
        before: None,
        end: AnswerEnd::NoObject,
    };
    let Desk {
        controller,
        sources,
        ..
    } = &*turn.desk;
    // Any version of the kind names the same object.
    let primary = key.kind.group == controller.kind.group
        && key.kind.kind == controller.kind.kind
        && key.name == turn.key;
    let verb = effect.verb();
    if primary && turn.object.is_none() && !matches!(effect, Effect::Create(_)) {
        // An effect never recreates the turn's own object. Other effects continue: its children may
        // have to be deleted.
        controller.metrics.effect(verb, "gone");
        return (answer, None);
    }
    if let Effect::Apply(apply) = effect
        && let Some(stored) = sources.shown(&key.kind, &key.name)
        && controller
            .memory
            .is_repeated(&key, apply, (stored.uid(), stored.version))
    {
        controller.metrics.skipped_applies.inc();
        answer.end = AnswerEnd::Repeated;
        return (answer, None);
    }
    let seen = turn.object.as_ref().filter(|_| primary);
    let written = wrote.version(&key);
    let before = written.or_else(|| match seen {
        Some(seen) => Some(seen.version),
        None if primary => None,
        None => wrote.known_version(&key),
    });
    answer.before = before;
    let guard = Guard {
        uid: seen.map(|object| object.uid()),
        written,
        candidate,
        account: turn.desk.generation.terms.account.as_ref(),
        // The writer asks it.
        turn_member: None,
    };
    // If a watch selects by fields outside the metadata, the response must contain the whole
    // object, which tells whether the watch shows it.
    let whole = sources
        .watching(&key.kind, key.name.namespace())
        .any(|(_, selection)| selection.looks_inside());
    let span = traced::begin(&turn.reconcile.trace, effect, &key);
    let (writer, manager) = (&carrier.writer, &controller.field_manager);
    let written = match &span {
        None => writer.carry_out(effect, &key, guard, manager, whole).await,
        Some(span) => {
            let writing = writer.carry_out(effect, &key, guard, manager, whole);
            Box::pin(span.scope(writing)).await
        }
    };
    traced::end(span, written.as_ref().map_err(|unwritten| &unwritten.error));
    match written {
        Ok(written) => {
            controller.metrics.effect(verb, "ok");
            let warnings = &carrier.warnings;
            warnings.tell(&format_args!("{verb} {key}"), &written.warnings);
            answer.end = match written.gone {
                true => AnswerEnd::Gone,
                false => AnswerEnd::Written(written.version),
            };
            if key.name.name().is_empty() {
                // The server has generated the name.
                answer.object.name = ObjectName::new(key.name.namespace(), &written.name);
            }
            wrote.note(effect, key, before, &written);
            (answer, None)
        }
        Err(unwritten) => {
            if unwritten.maybe_applied
                && let Ok(Some(object)) = carrier.writer.read(effect, &key).await
            {
                // The response was lost, so only a live read tells whether the write was carried
                // out.
                wrote.found(&key, &object);
            }
            let verdict = judge(effect, primary, &unwritten.error);
            controller.metrics.effect(verb, verdict.label());
            if verdict == Verdict::Exists {
                wrote.await_taken(&key);
            }
            let what = format!("{verb} {key}");
            let refusal = refusal(index, effect, &unwritten.error);
            answer.end = AnswerEnd::Refused(refusal.code, refusal.message.clone());
            let stop = (verdict != Verdict::Done).then(|| Stop {
                verdict,
                wait: unwritten.error.retry_after(),
                refusal,
                what,
                required: unwritten.required,
            });
            (answer, stop)
        }
    }
}
