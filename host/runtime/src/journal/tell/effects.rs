//! What a turn did: its effects, what they change, and what became of them.
//!
//! This module must not know what woke the turn, or which values are sensitive.

use std::collections::HashMap;

use serde_json::Value;
use vmhost_core::trace::Asked;
use vmhost_core::{Effect as Wanted, ObjectKey, Snapshot};

use crate::journal::form;
use crate::journal::record::{Answer, AnswerEnd, TurnRecord};
use crate::journal::story::Effect;
use crate::journal::tell::words;

/// The status code of a delete whose object does not exist: the goal is reached.
const NOT_FOUND: u16 = 404;

/// Returns the effects of a turn. If they were too large to keep, returns only what became of them.
pub(super) fn of_turn(record: &TurnRecord) -> Vec<Effect> {
    if record.effects.is_empty() {
        return record.answers.iter().map(of_answer).collect();
    }
    // The objects as earlier effects of the turn left them.
    let mut written: HashMap<ObjectKey, Value> = HashMap::new();
    let mut told = Vec::new();
    for (index, effect) in record.effects.iter().enumerate() {
        let answer = record
            .answers
            .iter()
            .find(|answer| answer.effect as usize == index);
        let named = || effect.key().ok().flatten();
        let key = answer.map(|answer| answer.object.clone()).or_else(named);
        let before = key
            .as_ref()
            .and_then(|key| written.get(key).cloned().or_else(|| seen(record, key)));
        let (fields, after) = form::change(effect, before.as_ref());
        let is_written = answer.is_some_and(|answer| matches!(answer.end, AnswerEnd::Written(_)));
        if let (true, Some(key), Some(after)) = (is_written, &key, after) {
            written.insert(key.clone(), after);
        }
        let mut one = Effect {
            verb: verb(effect).into(),
            object: named_object(record, effect, key.as_ref()),
            effect: form::of(effect),
            fields,
            ..Effect::default()
        };
        match answer {
            Some(answer) => end(answer, &mut one),
            None => one.end = unanswered(record, index).into(),
        }
        told.push(one);
    }
    told
}

/// Returns an effect with only its form.
pub(super) fn form_of(effect: &Wanted) -> Effect {
    Effect {
        verb: effect.verb().into(),
        effect: form::of(effect),
        ..Effect::default()
    }
}

/// Returns the verb of an effect, or of the one in the cluster that it names.
fn verb(effect: &Wanted) -> &'static str {
    let there = form::in_cluster(effect);
    there.map_or_else(|| effect.verb(), |there| there.effect.verb())
}

/// Formats `VirtualMachine default/x/status`. For an Event, that is the turn's own object, which
/// the Event is about. An effect that names its cluster has that behind the object.
fn named_object(record: &TurnRecord, effect: &Wanted, key: Option<&ObjectKey>) -> String {
    if let Some(there) = form::in_cluster(effect) {
        let own_key = there.effect.key().ok().flatten();
        let object = named_object(record, &there.effect, key.or(own_key.as_ref()));
        return format!("{object} in {}", there.place());
    }
    let name = match (effect, key) {
        (Wanted::Event(_), _) => words::object(&record.origin.kind, &record.key),
        (_, Some(key)) => words::object(&key.kind, &key.name),
        (_, None) => String::new(),
    };
    match effect.subresource() {
        Some(subresource) => format!("{name}/{subresource}"),
        None => name,
    }
}

/// Returns an object as the turn saw it: the turn's own object, or the one of this name that it
/// read last.
fn seen(record: &TurnRecord, key: &ObjectKey) -> Option<Value> {
    let is_own = key.kind == record.origin.kind && key.name == record.key;
    let own = record.object.as_ref().filter(|_| is_own);
    let mut reads = record.trace.reads.iter().rev();
    let found: Option<&Snapshot> = own.or_else(|| {
        reads.find_map(|read| match &read.asked {
            Asked::Get(kind, name, Ok(object)) => {
                let is_it = *kind == key.kind && *name == key.name;
                object.as_ref().filter(|_| is_it)
            }
            Asked::List(query, Ok(page)) if query.kind == key.kind => {
                page.objects.iter().find(|object| object.name == key.name)
            }
            Asked::Get(..) | Asked::List(..) => None,
        })
    });
    found.map(words::json)
}

/// Returns the end of an effect that has no answer: an Event was sent if the turn came as far as
/// that.
fn unanswered(record: &TurnRecord, index: usize) -> &'static str {
    let is_event = |effect: &Wanted| matches!(effect, Wanted::Event(_));
    let is_refused = record.answers.is_empty() && !record.effects.iter().all(is_event);
    let has_stopped = |answer: &Answer| stops(record, answer) && (answer.effect as usize) < index;
    let is_sent =
        is_event(&record.effects[index]) && !is_refused && !record.answers.iter().any(has_stopped);
    if is_sent { "sent" } else { "not sent" }
}

/// Returns whether an answer ended the turn.
fn stops(record: &TurnRecord, answer: &Answer) -> bool {
    let effect = record.effects.get(answer.effect as usize);
    let is_delete = matches!(effect, Some(Wanted::Delete(_)));
    match answer.end {
        AnswerEnd::Refused(code, _) => !(is_delete && code == NOT_FOUND),
        AnswerEnd::Unanswered(_) => true,
        _ => false,
    }
}

/// Describes an effect that was too large to keep.
fn of_answer(answer: &Answer) -> Effect {
    let mut effect = Effect {
        verb: "other".into(),
        object: words::object(&answer.object.kind, &answer.object.name),
        ..Effect::default()
    };
    end(answer, &mut effect);
    effect
}

/// Writes down how an effect ended.
fn end(answer: &Answer, effect: &mut Effect) {
    let end = match &answer.end {
        // Without a version in the answer, nothing shows whether the object has changed.
        AnswerEnd::Written(0) => "written",
        AnswerEnd::Written(after) => {
            effect.version = Some(*after);
            match answer.before.is_some_and(|before| before >= *after) {
                true => "unchanged",
                false => "written",
            }
        }
        AnswerEnd::Gone | AnswerEnd::NoObject => "gone",
        AnswerEnd::Repeated => "repeated",
        AnswerEnd::Refused(NOT_FOUND, _) if effect.verb == "delete" => "gone",
        AnswerEnd::Refused(code, message) => {
            (effect.code, effect.message) = (Some(*code), Some(message.clone()));
            "refused"
        }
        AnswerEnd::Unanswered(message) => {
            effect.message = Some(message.clone());
            "unanswered"
        }
    };
    effect.end = end.into();
}
