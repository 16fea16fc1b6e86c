//! `fights-with`: this controller and another writer change a field in turn, and one of them writes
//! the same value each time.
//!
//! If neither writer comes back to a value, there is no fight: they hand a phase on, or both add to
//! a count. Who wrote a field is read from the `managedFields` that came with the change itself: by
//! the time that the API server could be asked, this controller has most often written the field
//! again, and owns it. This module must not know the other warnings.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use vmhost_core::{Gvk, ObjectName};

use crate::journal::managers::Writers;
use crate::journal::paths;
use crate::journal::wakes::Wakened;
use crate::journal::warnings::records::{Records, named};

/// Number of rounds in a fight, if the other writer answers within [`QUICK`].
const QUICK_ROUNDS: usize = 2;

/// Number of rounds in a slower fight. One round is not enough, because a person who asks for
/// something again, in a field in which the controller answers, makes a round too.
const ROUNDS: usize = 3;

/// A person does not answer within this time.
const QUICK: Duration = Duration::from_secs(3);

/// Only changes within this time before the newest turn count: several people may set a field in
/// the course of a day without a fight.
const WINDOW: Duration = Duration::from_secs(300);

/// The last write to a field, and the rounds so far.
#[derive(Default)]
struct Contest {
    /// When this controller wrote the field, and which value, if no other writer wrote it since.
    ours: Option<(Instant, Option<Value>)>,
    rounds: Vec<Round>,
}

/// This controller's write of a field and the other writer's. `None` stands for a removed field.
struct Round {
    ours: Option<Value>,
    theirs: Option<Value>,
    /// The time between both.
    delay: Duration,
    /// The other writer.
    manager: String,
}

/// The writer of a change.
enum Writer {
    This,
    Another(String),
}

/// `fights-with`: names the manager and the path.
pub(super) fn fights_with(records: &Records<'_>) -> Option<String> {
    let newest = records.newest()?;
    let mut objects: BTreeMap<(&Gvk, &ObjectName), Vec<&Wakened>> = BTreeMap::new();
    for entry in &records.woken {
        let is_recent = newest.saturating_duration_since(entry.at) <= WINDOW;
        if let (true, Some(_), Some(new)) = (is_recent, &entry.old, &entry.new) {
            let object = (&*entry.kind, &new.name);
            objects.entry(object).or_default().push(entry);
        }
    }
    let mut worst: Option<(usize, String)> = None;
    for ((kind, name), entries) in objects {
        // Parses only the few objects that both writers may have written.
        let handed_over = entries
            .windows(2)
            .filter(|pair| pair[0].own && !pair[1].own);
        if handed_over.count() < QUICK_ROUNDS {
            continue;
        }
        let of = match records.is_primary(kind, name) {
            true => String::new(),
            false => format!(" of {}", named(kind, name)),
        };
        for (path, rounds) in contests(&entries, &records.origin.field_manager) {
            let count = rounds.len();
            let Some(last) = rounds.last().filter(|_| is_fight(&rounds)) else {
                continue;
            };
            if worst.as_ref().is_none_or(|(most, _)| count > *most) {
                let manager = &last.manager;
                let text = format!(
                    "{manager} at {path}{of}: {count} times it wrote this field after this controller had"
                );
                worst = Some((count, text));
            }
        }
    }
    worst.map(|(_, text)| text)
}

/// Returns the rounds about each field of an object. `ours` is this controller's field manager.
fn contests(entries: &[&Wakened], ours: &str) -> BTreeMap<String, Vec<Round>> {
    let mut contests: BTreeMap<String, Contest> = BTreeMap::new();
    for entry in entries {
        let (Some(old), Some(new)) = (&entry.old, &entry.new) else {
            continue;
        };
        let Some(writers) = writers(entry) else {
            continue;
        };
        for (path, value) in paths::changes(&old.text, &new.text) {
            let writer = writer(&writers, &path, ours);
            let contest = contests.entry(path).or_default();
            match writer {
                Writer::This => contest.ours = Some((entry.at, value)),
                Writer::Another(manager) => {
                    if let Some((at, ours)) = contest.ours.take() {
                        contest.rounds.push(Round {
                            ours,
                            theirs: value,
                            delay: entry.at.saturating_duration_since(at),
                            manager,
                        });
                    }
                }
            }
        }
    }
    let contests = contests.into_iter();
    contests
        .map(|(path, contest)| (path, contest.rounds))
        .collect()
}

/// Returns whether the last rounds are a fight.
fn is_fight(rounds: &[Round]) -> bool {
    let repeats = |rounds: &[Round]| {
        let ours = rounds.windows(2).all(|pair| pair[0].ours == pair[1].ours);
        ours || rounds
            .windows(2)
            .all(|pair| pair[0].theirs == pair[1].theirs)
    };
    let last = |count: usize| rounds.len().checked_sub(count).map(|from| &rounds[from..]);
    let is_quick = |rounds: &[Round]| rounds.iter().all(|round| round.delay <= QUICK);
    last(QUICK_ROUNDS).is_some_and(|rounds| is_quick(rounds) && repeats(rounds))
        || last(ROUNDS).is_some_and(repeats)
}

/// Returns the managers that may have written a change, which are none for an own write. Returns
/// `None` if the object did not come in a watch event.
fn writers(entry: &Wakened) -> Option<Writers> {
    match entry.own {
        true => Some(Writers::default()),
        false => Some(Writers::of(entry.managed.as_deref()?)),
    }
}

/// Returns the writer of a field in a change.
fn writer(writers: &Writers, path: &str, ours: &str) -> Writer {
    let mut names = writers.of_field(path);
    names.retain(|name| *name != ours);
    match names.is_empty() {
        // The record of this controller's own write may have been dropped.
        true => Writer::This,
        false => Writer::Another(names.join(" or ")),
    }
}
