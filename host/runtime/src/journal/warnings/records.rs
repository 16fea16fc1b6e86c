//! The records of one key, as the warnings need them: only those of the newest generation, because
//! a swap may have fixed what older records show. This module must not know any warning.

use std::sync::Arc;
use std::time::{Duration, Instant};

use vmhost_core::{Effect, Gvk, ObjectName};

use crate::journal::record::{Act, Answer, AnswerEnd, Origin, Quiet, TurnRecord};
use crate::journal::wakes::Wakened;

/// The records of one key on its newest generation.
pub(super) struct Records<'a> {
    pub(super) origin: &'a Arc<Origin>,
    pub(super) key: &'a ObjectName,
    /// The turns, oldest first.
    pub(super) turns: Vec<&'a TurnRecord>,
    /// The quiet turns. Entries without a turn (the key was held) are left out.
    pub(super) quiet: Vec<&'a Quiet>,
    /// The changes that woke the key since the first of the turns, oldest first.
    pub(super) woken: Vec<&'a Wakened>,
}

impl<'a> Records<'a> {
    /// Chooses the records of the newest generation. Returns `None` if the key had no turn.
    pub(super) fn new(
        turns: &'a [TurnRecord],
        quiet: &'a [Quiet],
        woken: &'a [Wakened],
    ) -> Option<Self> {
        let ran = |quiet: &&Quiet| matches!(quiet.act, Act::Returned(_));
        let quiet: Vec<&Quiet> = quiet.iter().filter(ran).collect();
        let of_turns = turns.iter().map(|turn| (&turn.origin, &turn.key));
        let of_quiet = quiet.iter().map(|quiet| (&quiet.origin, &quiet.key));
        let (origin, key) = of_turns
            .chain(of_quiet)
            .max_by_key(|(origin, _)| origin.generation)?;
        let is_newest = |of: &Origin| of.generation == origin.generation;
        let turns = turns.iter().filter(|turn| is_newest(&turn.origin));
        let quiet = quiet.into_iter().filter(|quiet| is_newest(&quiet.origin));
        let mut records = Self {
            origin,
            key,
            turns: turns.collect(),
            quiet: quiet.collect(),
            woken: Vec::new(),
        };
        let first = records.turns.first().map(|turn| turn.began);
        let quiet = records.quiet.iter().map(|quiet| quiet.since);
        let since = quiet.chain(first).min()?;
        records.woken = woken.iter().filter(|entry| entry.at >= since).collect();
        Some(records)
    }

    /// The newest turns that `fits` accepts, oldest first. Empty if a quiet turn came after them.
    pub(super) fn series(&self, fits: impl Fn(&TurnRecord) -> bool) -> &[&'a TurnRecord] {
        let quiet = self.quiet.iter().map(|quiet| quiet.began).max();
        let is_before = |turn: &TurnRecord| quiet.is_some_and(|quiet| turn.began < quiet);
        let other = self
            .turns
            .iter()
            .rposition(|turn| is_before(turn) || !fits(turn));
        &self.turns[other.map_or(0, |at| at + 1)..]
    }

    /// When the newest turn began, quiet or not.
    pub(super) fn newest(&self) -> Option<Instant> {
        let turns = self.turns.iter().map(|turn| turn.began);
        turns
            .chain(self.quiet.iter().map(|quiet| quiet.began))
            .max()
    }

    /// Returns whether this is the key's own object. Any version of the kind names the same object.
    pub(super) fn is_primary(&self, kind: &Gvk, name: &ObjectName) -> bool {
        is_same_kind(kind, &self.origin.kind) && name == self.key
    }
}

/// Returns whether both name the same kind, in any version.
pub(super) fn is_same_kind(one: &Gvk, other: &Gvk) -> bool {
    one.group == other.group && one.kind == other.kind
}

/// Formats an object for a person: `ConfigMap default/x`.
pub(super) fn named(kind: &Gvk, name: &ObjectName) -> String {
    format!("{} {name}", kind.kind)
}

/// Formats a duration for a person.
pub(super) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// Returns the verb of the effect that got this answer; `write` if the effects were too large to
/// keep.
pub(super) fn verb(turn: &TurnRecord, answer: &Answer) -> &'static str {
    let effect = turn.effects.get(answer.effect as usize);
    effect.map_or("write", Effect::verb)
}

/// Returns the status code of the refusal that ended the turn, if one did; 0 without an answer. A
/// delete of an object that is gone does not end a turn.
pub(super) fn refusal(turn: &TurnRecord) -> Option<u16> {
    let last = turn.answers.last()?;
    match last.end {
        AnswerEnd::Refused(404, _) if verb(turn, last) == "delete" => None,
        AnswerEnd::Refused(code, _) => Some(code),
        AnswerEnd::Unanswered(_) => Some(0),
        _ => None,
    }
}
