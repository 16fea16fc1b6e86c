//! The parts of a turn that a case contains, with sensitive values hidden. This module must not
//! know the files of a case.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use vmhost_core::trace::{Asked, Read as Asking};
use vmhost_core::{Effect, Gvk, Next, Snapshot};

use super::cache::{Cache, objects};
use super::files::Last;
use super::http;
use super::secrecy::Secrecy;
use super::texts::ObjectText;
use crate::journal::case::{Answer, Ask, Read, Unanswered, Verb};
use crate::journal::form;
use crate::journal::record::{Act, TurnRecord};
use crate::journal::story::{self, Turn};
use crate::turn::finalizer::removal;

/// The parts of a turn.
pub(super) struct Draft<'r> {
    /// The kind of each read's objects.
    kinds: Vec<&'r Gvk>,
    /// Objects, effects and `next`. No other field is set.
    pub(super) turn: Turn,
    /// The parts of the case that the document of a turn lacks.
    pub(super) rest: Rest,
    /// The turn's object.
    pub(super) object: Option<ObjectText>,
    /// The object of the last successful turn.
    pub(super) previous: Option<ObjectText>,
    /// The objects of each read's answer.
    answers: Vec<Vec<ObjectText>>,
    /// The objects that are written to `cache`: the number of the read, and the position in its
    /// answer.
    cached: Vec<(usize, usize)>,
    /// Whether the same reads of the objects in `cache` give other answers.
    is_strict: bool,
    /// Whether something was hidden.
    pub(super) is_redacted: bool,
}

/// Texts in which a sensitive value may stand anywhere.
#[derive(Serialize, Deserialize)]
pub(super) struct Rest {
    /// The refusal of the last turn, as the policy saw it.
    pub(super) last: Option<Last>,
    /// Why the call ended without an outcome.
    pub(super) error: Option<String>,
    /// The entries of `http.json`.
    pub(super) http: Vec<Value>,
    /// The settings by which the call read its cluster.
    pub(super) settings: BTreeMap<String, String>,
    reads: Vec<Question>,
}

/// A read without the objects of its answer.
#[derive(Serialize, Deserialize)]
struct Question {
    ask: Ask,
    next: Option<String>,
    error: Option<Unanswered>,
}

impl<'r> Draft<'r> {
    /// Collects the parts of this turn. Returns `None` if one of them cannot be written without a
    /// sensitive value.
    pub(super) fn new(record: &'r TurnRecord, secrecy: &Secrecy<'_>) -> Option<Self> {
        let before = turn_of(record);
        let mut turn = before.clone();
        let mut rest = serde_json::to_value(Rest::of(record)).ok()?;
        let last = record
            .last
            .as_ref()
            .filter(|_| secrecy.plugin.reads_sensitive);
        let unknown = last.map(|last| last.message.as_str());
        let sent = &record.trace.http;
        let (redact, plugin) = (secrecy.redact, secrecy.plugin);
        let is_redacted = redact.case(&mut turn, &mut rest, unknown, sent, plugin);
        let reads = &record.trace.reads;
        let answers = reads.iter().zip(before.reads.iter().zip(&turn.reads));
        let answers = answers.map(|(read, (before, after))| {
            let values = before.objects.iter().zip(&after.objects);
            let all = objects(read).zip(values);
            all.map(|(object, (before, after))| ObjectText::new(&object.text, before, after))
                .collect()
        });
        let answers = answers.collect();
        let text = |object: &Option<Snapshot>, before: &Option<Value>, after: &Option<Value>| {
            let (object, before, after) = (object.as_ref()?, before.as_ref()?, after.as_ref()?);
            Some(ObjectText::new(&object.text, before, after))
        };
        let mut cache = Cache::new(&record.origin.kind, record.object.as_ref());
        let mut cached = Vec::new();
        for (number, read) in reads.iter().enumerate() {
            cached.extend(cache.add_of(read).into_iter().map(|place| (number, place)));
        }
        Some(Self {
            kinds: reads.iter().map(kind_of).collect(),
            object: text(&record.object, &before.object, &turn.object),
            previous: text(&record.previous, &before.previous, &turn.previous),
            rest: serde_json::from_value(rest).ok()?,
            is_strict: !reads.iter().all(|read| cache.answers(read)),
            turn,
            answers,
            cached,
            is_redacted,
        })
    }

    /// The files of the objects that the call read.
    pub(super) fn cache_files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        for (number, (read, place)) in self.cached.iter().enumerate() {
            let kind = self.kinds[*read].kind.to_lowercase();
            let name = format!("cache/{number:03}-{kind}.json");
            let text = self.answers[*read][*place].text();
            files.insert(name, format!("{text}\n"));
        }
        files
    }

    /// The questions of the call's reads, in order.
    pub(super) fn asked(&self) -> Vec<Ask> {
        let reads = self.rest.reads.iter();
        reads.map(|question| question.ask.clone()).collect()
    }

    /// The entries of `reads.json`. `None` if the objects in `cache` give the same answers.
    pub(super) fn reads(&self) -> Option<Vec<Read>> {
        if !self.is_strict {
            return None;
        }
        let reads = self.rest.reads.iter().zip(&self.answers);
        let entry = |(question, objects): (&Question, &Vec<ObjectText>)| {
            let mut texts = objects.iter().filter_map(ObjectText::raw);
            let mut answer = Answer {
                next: question.next.clone(),
                error: question.error.clone(),
                ..Answer::default()
            };
            match question.ask.verb {
                Verb::Get => answer.object = texts.next(),
                Verb::List => answer.objects = texts.collect(),
            }
            Read {
                ask: question.ask.clone(),
                answer,
            }
        };
        Some(reads.map(entry).collect())
    }
}

impl Rest {
    fn of(record: &TurnRecord) -> Self {
        Self {
            last: record.last.as_ref().map(Last::from),
            error: match &record.act {
                Act::Broke(error) => Some(error.clone()),
                _ => None,
            },
            http: http::entries(&record.trace),
            settings: record.origin.cluster.clone(),
            reads: record.trace.reads.iter().map(question).collect(),
        }
    }
}

fn question(read: &Asking) -> Question {
    let (next, error) = match &read.asked {
        Asked::Get(_, _, answer) => (None, answer.as_ref().err()),
        Asked::List(_, answer) => {
            let next = answer.as_ref().ok().and_then(|page| page.next.clone());
            (next, answer.as_ref().err())
        }
    };
    Question {
        ask: Ask::of(read),
        next,
        error: error.cloned().map(Into::into),
    }
}

fn kind_of(read: &Asking) -> &Gvk {
    match &read.asked {
        Asked::Get(kind, ..) => kind,
        Asked::List(query, _) => &query.kind,
    }
}

/// Returns the document of a turn, with only the fields that a case needs.
fn turn_of(record: &TurnRecord) -> Turn {
    let next = match &record.act {
        Act::Returned(next) => serde_json::to_value(next).ok(),
        _ => None,
    };
    Turn {
        kind: record.origin.kind.to_string(),
        object: record.object.as_ref().map(json),
        previous: record.previous.as_ref().map(json),
        reads: record.trace.reads.iter().map(read).collect(),
        next,
        effects: of_policy(record).iter().map(effect).collect(),
        ..Turn::default()
    }
}

fn read(read: &Asking) -> story::Read {
    story::Read {
        object: kind_of(read).kind.clone(),
        objects: objects(read).map(json).collect(),
        ..story::Read::default()
    }
}

fn effect(effect: &Effect) -> story::Effect {
    story::Effect {
        effect: form::of(effect),
        ..story::Effect::default()
    }
}

/// Returns the effects that the policy returned, without the host's own effect that removes the
/// finalizer.
fn of_policy(record: &TurnRecord) -> &[Effect] {
    let has_own = record.deleting && record.act == Act::Returned(Next::Finalized);
    let own = || {
        let finalizer = record.origin.finalizer.as_deref()?;
        removal(finalizer, &record.origin.kind, record.object.as_ref()?)
    };
    match record.effects.split_last() {
        Some((last, others)) if has_own && own().as_ref() == Some(last) => others,
        _ => &record.effects,
    }
}

/// The object as JSON. A text that is not JSON is left out, since it does not tell which of its
/// values are sensitive.
fn json(object: &Snapshot) -> Value {
    serde_json::from_str(&object.text).unwrap_or_else(|_| "<not JSON>".into())
}
