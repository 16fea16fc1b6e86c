//! What woke a key: the entries of the wake log that belong to a turn, and the causes without an
//! entry.
//!
//! This module must not know what the turn did.

use std::time::{Instant, SystemTime};

use serde_json::Value;

use crate::journal::story::Woken;
use crate::journal::tag::{Cause, WakeTag};
use crate::journal::tell::words;
use crate::journal::wakes::Wakened;
use crate::journal::{diff, managers};

/// The largest number of causes that are shown. Further causes are only counted.
const SHOWN: usize = 8;

/// The causes that have entries in the wake log, the most informative one first.
const LOGGED: [Cause; 4] = [
    Cause::Changed,
    Cause::Relisted,
    Cause::Rewound,
    Cause::OwnWrite,
];

/// The fields of a deletion, which the API server sets: no manager owns them.
const DELETION: [&str; 2] = [
    "metadata.deletionTimestamp",
    "metadata.deletionGracePeriodSeconds",
];

/// Returns what woke a turn with this tag, at most [`SHOWN`] causes, and the number of all causes.
/// `wakened` are the entries about its key, oldest first; if there are too many, the newest are
/// returned.
pub(super) fn of_turn(
    tag: WakeTag,
    wakened: &[Wakened],
    time: &dyn Fn(Instant) -> SystemTime,
) -> (Vec<Woken>, u64) {
    if tag.is_own_decision() {
        return (vec![plain("decision")], 1);
    }
    let entries: Vec<&Wakened> = wakened
        .iter()
        .filter(|entry| tag.covers(entry.number))
        .collect();
    let others = Cause::ALL.into_iter().filter(|cause| {
        let is_told = LOGGED.contains(cause) && !entries.is_empty();
        tag.has(*cause) && !is_told
    });
    let others: Vec<Woken> = others.map(|cause| plain(word(cause))).collect();
    let room = SHOWN.saturating_sub(others.len());
    let newest = &entries[entries.len().saturating_sub(room)..];
    let told = newest
        .iter()
        .map(|entry| of_entry(entry, cause(entry, tag), time));
    let causes: Vec<Woken> = told.chain(others).collect();
    let count = u64::from(tag.count()).max(causes.len() as u64);
    (causes, count)
}

/// Describes a change whose turn is not known.
pub(super) fn of_change(entry: &Wakened, time: &dyn Fn(Instant) -> SystemTime) -> Woken {
    let cause = match entry.own {
        true => Cause::OwnWrite,
        false => Cause::Changed,
    };
    of_entry(entry, cause, time)
}

/// Returns the cause of an entry. The tag only has the causes of all entries of the turn together,
/// so the most informative of them stands for each.
fn cause(entry: &Wakened, tag: WakeTag) -> Cause {
    if entry.own {
        return Cause::OwnWrite;
    }
    let has = |cause: &Cause| tag.has(*cause);
    LOGGED.into_iter().find(has).unwrap_or(Cause::Changed)
}

fn of_entry(entry: &Wakened, cause: Cause, time: &dyn Fn(Instant) -> SystemTime) -> Woken {
    let (old, new) = (entry.old.as_ref(), entry.new.as_ref());
    let word = match (cause, old, new) {
        (Cause::Changed, None, Some(_)) => "created",
        (Cause::Changed, Some(_), None) => "deleted",
        (cause, ..) => word(cause),
    };
    // The fields of a deleted object are not listed: that the object is gone says enough.
    let (fields, field_count) = match new {
        Some(new) => {
            let old: Option<Value> = old.map(words::json);
            diff::fields(old.as_ref(), Some(&words::json(new)))
        }
        None => Default::default(),
    };
    let name = new.or(old).map_or(&entry.key, |object| &object.name);
    let paths = fields.iter().map(|field| field.path.as_str());
    let is_deletion = !fields.is_empty() && paths.clone().all(|path| DELETION.contains(&path));
    let managed = entry.managed.as_deref().filter(|_| !is_deletion);
    let manager = managed.and_then(|managed| managers::shown(managed, paths));
    Woken {
        cause: word.into(),
        time: Some(words::time(time(entry.at))),
        object: Some(words::object(&entry.kind, name)),
        fields,
        field_count,
        manager,
        version: new.map(|new| new.version),
    }
}

/// Returns a cause about which nothing else is known.
fn plain(cause: &str) -> Woken {
    Woken {
        cause: cause.into(),
        ..Woken::default()
    }
}

fn word(cause: Cause) -> &'static str {
    match cause {
        Cause::Changed => "changed",
        Cause::OwnWrite => "own-write",
        Cause::Initial => "first-list",
        Cause::Relisted => "relist",
        Cause::Rewound => "rewound",
        Cause::Mapped => "mapped",
        Cause::Timer => "timer",
        Cause::Swap => "swap",
        Cause::Granted => "granted",
        Cause::Canary => "canary",
        Cause::Review => "review",
    }
}
