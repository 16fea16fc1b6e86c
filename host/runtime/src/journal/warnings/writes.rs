//! Warnings about what a key writes: `self-waking` and `write-unchanged`.

use vmhost_core::{Effect, ObjectKey, PatchType};

use crate::journal::record::{AnswerEnd, TurnRecord};
use crate::journal::wakes::Wakened;
use crate::journal::warnings::records::{Records, named, verb};
use crate::journal::{path, paths};

/// Turns in a row that show that a key wakes itself.
const SELF_WAKING: usize = 3;

/// Turns among the last [`LAST`] that show that a key's writes change nothing.
const UNCHANGED: usize = 3;

/// The turns in which writes without a change are counted.
const LAST: usize = 5;

/// Number of fields that a text names.
const FIELDS: usize = 4;

/// `self-waking`: nothing but own writes woke the last turns, and each of them wrote.
///
/// A turn that failed does not count: its retry comes with the event of what it wrote before.
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
    // The log may have dropped the changes, and stores leave out fields that nobody asked for.
    let what = match fields.is_empty() {
        true => String::new(),
        false => format!(": {}{more}", fields.join(", ")),
    };
    Some(format!(
        "only its own writes woke the last {SELF_WAKING} turns, and each of them wrote again{what}"
    ))
}

/// What a change changed: paths, with the object if it is not the key's own.
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
    /// The object's version. A patch has none: whoever patches has seen what is there already. An
    /// apply is meant to be repeated after another writer's change, but not without any change.
    version: Option<u64>,
}

impl Unchanged<'_> {
    fn is(&self, other: &Self) -> bool {
        (self.object, self.subresource, self.verb, self.version)
            == (other.object, other.subresource, other.verb, other.version)
    }
}

/// The fields that an effect writes: ` (spec.status)`.
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

/// The writes of a turn that changed nothing. Deletes are left out: an object that is being deleted
/// may be deleted again.
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
