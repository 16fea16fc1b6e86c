//! Warnings about the writes of a key: `self-waking` and `write-unchanged`. This module must not
//! know the other warnings.

use vmhost_core::{Effect, ObjectKey, PatchType};

use crate::journal::record::{AnswerEnd, TurnRecord};
use crate::journal::wakes::Wakened;
use crate::journal::warnings::records::{Records, named, verb};
use crate::journal::{path, paths};

/// Number of turns in a row after which a key counts as waking itself.
const SELF_WAKING: usize = 3;

/// The warning needs this many of the last [`LAST`] turns to have sent the same write without a
/// change.
const UNCHANGED: usize = 3;

/// The number of newest turns in which these writes are counted.
const LAST: usize = 5;

/// Number of fields that a text names.
const FIELDS: usize = 4;

/// `self-waking`: nothing but own writes woke the last turns, and each of them wrote.
///
/// A turn that failed does not count: its retry comes together with the event of what it wrote
/// before it failed.
pub(super) fn self_waking(records: &Records<'_>) -> Option<String> {
    let series =
        records.series(|turn| turn.tag.is_only_own_write() && turn.changed() && !turn.is_failure());
    let last = series.last_chunk::<SELF_WAKING>()?;
    let woke = |entry: &&&Wakened| last.iter().any(|turn| turn.tag.covers(entry.number));
    let mut fields: Vec<String> = Vec::new();
    for entry in records.woken.iter().filter(woke) {
        for field in changed(records, entry) {
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
    }
    let more = match fields.len().saturating_sub(FIELDS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    fields.truncate(FIELDS);
    // The log may have dropped the changes, and a store leaves out the fields that nobody asked
    // for.
    let what = match fields.is_empty() {
        true => String::new(),
        false => format!(": {}{more}", fields.join(", ")),
    };
    Some(format!(
        "only its own writes woke the last {SELF_WAKING} turns, and each of them wrote again{what}"
    ))
}

/// Returns what a change changed: paths, with the object's name if it is not the key's own object.
fn changed(records: &Records<'_>, entry: &Wakened) -> Vec<String> {
    let kind = &entry.kind;
    match (&entry.old, &entry.new) {
        (Some(old), Some(new)) => {
            let of = match records.is_primary(kind, &new.name) {
                true => String::new(),
                false => format!(" of {}", named(kind, &new.name)),
            };
            let fields = paths::changed(&old.text, &new.text).into_iter();
            fields.map(|field| format!("{field}{of}")).collect()
        }
        (None, Some(new)) => vec![format!("a new {}", named(kind, &new.name))],
        (Some(old), None) => vec![format!("the deletion of {}", named(kind, &old.name))],
        (None, None) => Vec::new(),
    }
}

/// A write that was sent and changed nothing.
struct Unchanged<'a> {
    object: &'a ObjectKey,
    subresource: Option<&'a str>,
    verb: &'static str,
    effect: Option<&'a Effect>,
    /// The object's version, for all verbs but patch. Repeating an apply is fine after another
    /// writer's change of the object, but not without any change. A patch comes from a policy that
    /// has already seen what the object contains, so repeating it is never needed.
    version: Option<u64>,
}

impl Unchanged<'_> {
    fn is(&self, other: &Self) -> bool {
        (self.object, self.subresource, self.verb, self.version)
            == (other.object, other.subresource, other.verb, other.version)
    }
}

/// Formats the fields that an effect writes: ` (spec.status)`.
fn of_fields(effect: Option<&Effect>) -> String {
    #[derive(serde::Deserialize)]
    struct Operation {
        path: String,
    }
    let fields = match effect {
        Some(Effect::Patch(patch)) if patch.kind == PatchType::Json => {
            let operations: Vec<Operation> = serde_json::from_str(&patch.body).unwrap_or_default();
            let paths = operations.iter().map(|of| path::from_pointer(&of.path));
            paths.collect()
        }
        Some(Effect::Patch(patch)) => paths::changed("{}", &patch.body),
        Some(Effect::Apply(apply)) => paths::changed("{}", &apply.object),
        _ => Vec::new(),
    };
    let names = ["apiVersion", "kind", "metadata.name", "metadata.namespace"];
    let mut fields: Vec<String> = fields;
    fields.retain(|field| !names.contains(&field.as_str()));
    fields.dedup();
    fields.truncate(FIELDS);
    match fields.is_empty() {
        true => String::new(),
        false => format!(" ({})", fields.join(", ")),
    }
}

/// `write-unchanged`: several of the last turns, and the newest, sent a write that changed nothing.
pub(super) fn write_unchanged(records: &Records<'_>) -> Option<String> {
    let series = records.series(|_| true);
    let last = &series[series.len().saturating_sub(LAST)..];
    let newest = last.last()?;
    unchanged(newest).into_iter().find_map(|write| {
        let sends = |turn: &&&TurnRecord| unchanged(turn).iter().any(|other| write.is(other));
        let count = last.iter().filter(sends).count();
        if count < UNCHANGED {
            return None;
        }
        let object = named(&write.object.kind, &write.object.name);
        let below = match write.subresource {
            Some(subresource) => format!("/{subresource}"),
            None => String::new(),
        };
        Some(format!(
            "{count} of the last {} turns sent a write that changed nothing: {} {object}{below}{}",
            last.len(),
            write.verb,
            of_fields(write.effect)
        ))
    })
}

/// Returns the writes of a turn that changed nothing. Deletes are left out, because an object that
/// is being deleted may be deleted again.
fn unchanged(turn: &TurnRecord) -> Vec<Unchanged<'_>> {
    let mut found = Vec::new();
    for answer in &turn.answers {
        let AnswerEnd::Written(after) = answer.end else {
            continue;
        };
        let verb = verb(turn, answer);
        if answer.before != Some(after) || verb == "delete" {
            continue;
        }
        let effect = turn.effects.get(answer.effect as usize);
        found.push(Unchanged {
            object: &answer.object,
            subresource: effect.and_then(Effect::subresource),
            verb,
            effect,
            version: (verb != "patch").then_some(after),
        });
    }
    found
}
