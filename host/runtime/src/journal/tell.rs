//! Makes documents from the records of the journal, and hides sensitive values in them. No other
//! module makes a document from a record, so that no record leaves the journal unchanged.
//!
//! This module must not know how a document is served or printed.

use std::time::{Instant, SystemTime};

use vmhost_core::trace::{Asked, Read as Asking};
use vmhost_core::{Digest, HttpSent, ObjectName, ReadError, Snapshot, cut, one_line};
use vmhost_queue::Decision;

use crate::journal::Journal;
use crate::journal::record::{Act, Origin, Quiet, TurnRecord, withheld};
use crate::journal::redact::{PluginSecrets, Redact};
use crate::journal::story::{Digests, Effect, Http, Read, Story, Turn, Warning};
use crate::journal::tag::{Cause, WakeTag};
use crate::journal::wakes::Wakened;
use crate::observe::metrics::controller::TurnResult;

mod causes;
mod effects;
mod words;

/// Number of bytes that are told of a URL or an error.
const SHORT: usize = 512;

/// Describes one turn. `wakened` are the entries of the wake log about its key, oldest first, and
/// `time` converts the times of records.
pub(crate) fn turn(
    record: &TurnRecord,
    wakened: &[Wakened],
    time: impl Fn(Instant) -> SystemTime,
    redact: &Redact,
    plugin: PluginSecrets<'_>,
) -> Turn {
    let mut turn = draft_turn(record, wakened, &time, redact);
    redact.turn(&mut turn, plugin);
    turn
}

/// Describes quiet turns of one key; see [`turn`].
pub(crate) fn quiet(
    record: &Quiet,
    wakened: &[Wakened],
    time: impl Fn(Instant) -> SystemTime,
    redact: &Redact,
    plugin: PluginSecrets<'_>,
) -> Turn {
    let mut turn = draft_quiet(record, wakened, &time, redact);
    redact.turn(&mut turn, plugin);
    turn
}

/// Describes what another version of the plugin would have done in a turn, and how that differs
/// from what the live version did. Each difference has the form of an effect, in which a field's
/// old value is the live version's. `record` is the turn as it would have been, `live` the effects
/// that the live version returned.
pub(crate) fn trial(
    record: &TurnRecord,
    live: &[vmhost_core::Effect],
    differences: Vec<Effect>,
    time: impl Fn(Instant) -> SystemTime,
    redact: &Redact,
    plugin: PluginSecrets<'_>,
) -> (Turn, Vec<Effect>) {
    let mut turn = draft_turn(record, &[], &time, redact);
    let own = turn.effects.len();
    let with_differences = own + differences.len();
    turn.effects.extend(differences);
    // These effects are not shown. They only contribute sensitive values, which the differences may
    // repeat.
    turn.effects.extend(live.iter().map(effects::form_of));
    redact.turn(&mut turn, plugin);
    turn.effects.truncate(with_differences);
    let differences = turn.effects.split_off(own);
    for effect in &mut turn.effects {
        effect.end = "not sent".into();
    }
    (turn.result, turn.decision) = (String::new(), String::new());
    (turn, differences)
}

/// Describes all that the journal knows about a key, with the warnings about it. `controller` is
/// the controller's label, `plugin` is what its plugin may know, and `warned` finds the warnings.
pub(crate) fn story(
    journal: &Journal,
    redact: &Redact,
    controller: &str,
    key: &ObjectName,
    plugin: PluginSecrets<'_>,
    warned: impl Fn(&[TurnRecord], &[Quiet], &[Wakened]) -> Vec<Warning>,
) -> Story {
    let (records, quiets) = journal.of(controller, key);
    let wakened = journal.woken(controller, key, &records);
    let time = |at: Instant| journal.time(at);
    let warnings = warned(&records, &quiets, &wakened);
    let told = records
        .iter()
        .map(|record| (record.began, draft_turn(record, &wakened, &time, redact)));
    let told_quiet = quiets
        .iter()
        .map(|record| (record.began, draft_quiet(record, &wakened, &time, redact)));
    let mut turns: Vec<(Instant, Turn)> = told.chain(told_quiet).collect();
    turns.sort_by_key(|(began, _)| *began);
    let mut story = Story {
        turns: turns.into_iter().map(|(_, turn)| turn).collect(),
        pending: pending(&records, &quiets, &wakened)
            .iter()
            .map(|entry| causes::of_change(entry, &time))
            .collect(),
        warnings,
        dropped: journal.counts().1,
    };
    redact.story(&mut story, plugin);
    story
}

/// Returns the changes that no turn has followed yet: those after the last change that belongs to a
/// turn, and not older than the last turn.
fn pending<'w>(records: &[TurnRecord], quiets: &[Quiet], wakened: &'w [Wakened]) -> &'w [Wakened] {
    let turns = records.iter().map(|record| (record.began, record.tag));
    let turns = turns.chain(quiets.iter().map(|record| (record.began, record.tag)));
    let turns: Vec<(Instant, WakeTag)> = turns.collect();
    let is_followed = |entry: &Wakened| turns.iter().any(|(_, tag)| tag.covers(entry.number));
    let from = match wakened.iter().rposition(is_followed) {
        Some(last) => last + 1,
        // The records of the turns that followed the first changes may have been dropped.
        None => {
            let last = turns.iter().map(|(began, _)| *began).max();
            wakened.partition_point(|entry| last.is_some_and(|last| entry.at < last))
        }
    };
    &wakened[from..]
}

fn draft_turn(
    record: &TurnRecord,
    wakened: &[Wakened],
    time: &dyn Fn(Instant) -> SystemTime,
    redact: &Redact,
) -> Turn {
    let (causes, cause_count) = causes::of_turn(record.tag, wakened, time);
    let result = match record.act {
        Act::Denied { .. } => "denied",
        _ => record.result.as_str(),
    };
    let decision = match record.tag.has(Cause::Review) {
        // No queue has the key of a review.
        true => String::new(),
        false => words::decision(record.decision),
    };
    Turn {
        time: words::time(time(record.began)),
        causes,
        cause_count,
        wait_ms: words::milliseconds(record.wait),
        lane: words::lane(record.lane).into(),
        attempt: record.attempt,
        refusal: record
            .last
            .as_ref()
            .map(|last| format!("{} {}: {}", last.code, last.reason, last.message)),
        deleting: record.deleting,
        version: record.version,
        object: record.object.as_ref().map(words::json),
        previous: record.previous.as_ref().map(words::json),
        reads: record.trace.reads.iter().map(read).collect(),
        http: record.trace.http.iter().map(http).collect(),
        act: words::act(&record.act),
        next: words::next(&record.act),
        effects: effects::of_turn(record),
        result: result.into(),
        message: record.message.clone(),
        decision,
        call_ms: words::milliseconds(record.call),
        took_ms: words::milliseconds(record.took),
        cut: record.cut.is_some(),
        digests: record.cut.as_deref().map(digests),
        ..named(&record.origin, &record.key, redact)
    }
}

fn draft_quiet(
    record: &Quiet,
    wakened: &[Wakened],
    time: &dyn Fn(Instant) -> SystemTime,
    redact: &Redact,
) -> Turn {
    let (causes, cause_count) = causes::of_turn(record.tag, wakened, time);
    let result = match (&record.act, record.decision) {
        (Act::Paused(_) | Act::Held(_), _) => TurnResult::Requeue,
        (_, Decision::After(_)) => TurnResult::RequeueAfter,
        _ => TurnResult::Success,
    };
    Turn {
        time: words::time(time(record.began)),
        causes,
        cause_count,
        wait_ms: words::milliseconds(record.wait),
        version: record.version,
        act: words::act(&record.act),
        next: words::next(&record.act),
        result: result.as_str().into(),
        decision: words::decision(record.decision),
        call_ms: words::milliseconds(record.call),
        took_ms: words::milliseconds(record.took),
        quiet: record.count,
        since: Some(words::time(time(record.since))),
        ..named(&record.origin, &record.key, redact)
    }
}

/// Returns a turn with only its key, and the version and the settings of its plugin.
fn named(origin: &Origin, key: &ObjectName, redact: &Redact) -> Turn {
    Turn {
        controller: origin.controller.to_string(),
        kind: origin.kind.to_string(),
        key: key.to_string(),
        generation: origin.generation,
        digest: format!("sha256:{}", origin.digest.trim_start_matches("sha256:")),
        settings: redact.settings(&origin.settings.0),
        ..Turn::default()
    }
}

fn digests(of: &withheld::Digests) -> Digests {
    let text = |digest: Digest| digest.to_string();
    let ((read_count, reads), (effect_count, effects)) = (of.reads, of.effects);
    Digests {
        object: of.object.map(text),
        previous: of.previous.map(text),
        reads: text(reads),
        read_count,
        effects: text(effects),
        effect_count,
    }
}

/// The query may hold a token; headers and bodies may hold anything.
fn http(sent: &HttpSent) -> Http {
    let short = |text: &str| one_line(cut(text, SHORT)).into_owned();
    Http {
        method: short(&sent.request.method),
        url: short(sent.request.place()),
        status: sent.answer.as_ref().ok().map(|response| response.status),
        error: sent
            .answer
            .as_ref()
            .err()
            .map(|error| short(&error.to_string())),
    }
}

fn read(read: &Asking) -> Read {
    let (verb, object, answer): (_, _, Result<Vec<&Snapshot>, &ReadError>) = match &read.asked {
        Asked::Get(kind, name, answer) => {
            let answer = answer.as_ref().map(|object| object.iter().collect());
            ("get", words::object(kind, name), answer)
        }
        Asked::List(query, answer) => {
            let answer = answer.as_ref().map(|page| page.objects.iter().collect());
            ("list", words::list(query), answer)
        }
    };
    Read {
        live: read.live,
        verb: verb.into(),
        object,
        found: answer.as_ref().map_or(0, Vec::len),
        error: answer.as_ref().err().map(|error| words::unanswered(error)),
        objects: answer
            .unwrap_or_default()
            .into_iter()
            .map(words::json)
            .collect(),
    }
}

#[cfg(test)]
mod tests;
