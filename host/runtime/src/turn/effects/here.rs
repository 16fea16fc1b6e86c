//! Effects in the turn's own cluster: carries one out, and says what became of it.
//!
//! This module must not know the other effects of the turn, except by what they wrote.

use vmhost_cluster::Error;
use vmhost_core::{Effect, ObjectKey, ObjectName, Snapshot};

use super::traced;
use super::warnings::Warnings;
use super::writes::FencedWriter;
use super::writes::guard::Guard;
use super::wrote::Wrote;
use crate::canary::Canary;
use crate::journal::record::{Answer, AnswerEnd};
use crate::turn::verdict::{Stop, Verdict, judge, refusal, wait};
use crate::turn::{Desk, Turn};

/// An effect, with its place in the turn.
pub(super) struct Place<'a> {
    /// The number of the effect.
    pub(super) index: usize,
    /// The object that it writes.
    pub(super) key: ObjectKey,
    /// The canary, if this is the first write of a turn of its candidate: an abort before it
    /// prevents the write.
    pub(super) candidate: Option<&'a Canary>,
}

/// Carries out one effect. Returns what became of it, and a stop if it ends the turn.
pub(super) async fn write(
    (writer, warnings): (&FencedWriter, &Warnings),
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
    let manager = &controller.field_manager;
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
            let is_unsure = unwritten.maybe_applied && {
                // The response was lost, so only a live read tells whether the write was carried
                // out.
                let found = writer.read(effect, &key).await;
                if let Ok(Some(object)) = &found {
                    wrote.found(&key, object);
                }
                may_have_written(effect, &key, before, found)
            };
            let verdict = match judge(effect, primary, &unwritten.error) {
                Verdict::Gone if wrote.is_shown(seen) => Verdict::Missing,
                verdict => verdict,
            };
            controller.metrics.effect(verb, verdict.label());
            if verdict == Verdict::Exists {
                wrote.await_taken(&key);
            }
            let what = format!("{verb} {key}");
            let refusal = refusal(index, effect, &unwritten.error);
            answer.end = match is_unsure {
                true => AnswerEnd::Unanswered(refusal.message.clone()),
                false => AnswerEnd::Refused(refusal.code, refusal.message.clone()),
            };
            let stop = (verdict != Verdict::Done).then(|| Stop {
                verdict,
                wait: wait(&unwritten.error, turn.desk.branch.is_some()),
                refusal,
                what,
                required: unwritten.required,
            });
            (answer, stop)
        }
    }
}

/// Returns whether a write without an answer may have been carried out, after a live read of its
/// object. `before` is the object's version before the write, if known.
fn may_have_written(
    effect: &Effect,
    key: &ObjectKey,
    before: Option<u64>,
    found: Result<Option<Snapshot>, Error>,
) -> bool {
    match found {
        Ok(Some(object)) => before != Some(object.version),
        // Nobody knows the name that the server would have generated.
        Ok(None) => matches!(effect, Effect::Delete(_)) || key.name.name().is_empty(),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use vmhost_core::{Create, Delete, Gvk, Object};

    use super::*;

    #[test]
    fn a_write_without_an_answer_may_have_been_carried_out_unless_a_read_shows_that_it_was_not() {
        let key = |name: &str| ObjectKey {
            kind: Gvk::new("", "v1", "Pod"),
            name: ObjectName::new(Some("a"), name),
        };
        let delete = Effect::Delete(Delete {
            key: key("x"),
            uid: None,
            if_version: None,
            propagation: None,
        });
        let create = Effect::Create(Create {
            object: "{}".into(),
        });
        let at = |version| Some(Object::with_text(key("x").name, "u", version, "{}"));
        let failed = || Err(Error::NotSent("cut off".into()));
        for (effect, name, before, found, expected) in [
            (&delete, "x", Some(7), Ok(at(7)), false),
            (&delete, "x", Some(7), Ok(at(8)), true),
            (&delete, "x", Some(7), Ok(None), true),
            (&create, "x", None, Ok(at(7)), true),
            (&create, "x", None, Ok(None), false),
            (&create, "", None, Ok(None), true),
            (&create, "x", None, failed(), true),
        ] {
            let may = may_have_written(effect, &key(name), before, found);
            assert_eq!(may, expected, "{} {name:?} {before:?}", effect.verb());
        }
    }
}
