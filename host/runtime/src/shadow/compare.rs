//! Compares what two versions want in a turn, as data: the order of the effects matters, but
//! neither the formatting of a body nor the order of its members.
//!
//! ```text
//! outcomes -> effects paired by verb, object and subresource -> the fields that differ
//! ```
//! This module must not know which differences matter, or which values are sensitive.

use std::collections::HashMap;

use serde_json::Value;
use vmhost_core::{Effect, Next, cut, one_line};
use vmhost_engine::CallError;

use crate::elsewhere;
use crate::journal::form;
use crate::journal::story::{Effect as Told, Field};
use crate::shadow::difference::{Difference, What};
use crate::shadow::job::{Called, Job};

mod fields;

use fields::fields;

/// The longest text of an error that is kept.
const ERROR: usize = 1024;

/// Returns how a call differs from that of the live version in this turn.
pub(crate) fn compare(job: &Job, other: &Called) -> Vec<Difference> {
    match (&job.called, other) {
        (Ok(live), Ok(other)) if live == other => Vec::new(),
        (Ok(live), Ok(other)) => {
            let mut differences = effects(job, &live.effects, &other.effects);
            differences.extend(next(&live.next, &other.next));
            differences
        }
        (Err(live), Err(other)) if live.kind() == other.kind() => Vec::new(),
        (live, other) => vec![call(live, other)],
    }
}

/// An effect with what names it. Effects with the same name are told apart by their order.
struct Named<'e> {
    effect: &'e Effect,
    form: Value,
    /// The kind that it writes, with its subresource.
    kind: String,
    object: String,
    id: (String, usize),
}

fn effects(job: &Job, live: &[Effect], other: &[Effect]) -> Vec<Difference> {
    let (live, other) = (all_named(job, live), all_named(job, other));
    let of_live: HashMap<_, _> = live.iter().map(|named| (&named.id, named)).collect();
    let of_other: HashMap<_, _> = other.iter().map(|named| (&named.id, named)).collect();
    // Parsed only if an effect has no counterpart.
    let mut object = None;
    let mut alone = |named: &Named<'_>, what: What| {
        let object = object.get_or_insert_with(|| own_object(job));
        let subresource = named.object.strip_prefix(&own_name(job));
        let is_own = subresource.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let before = object.as_ref().filter(|_| is_own);
        named.difference(what, form::change(named.effect, before).0)
    };
    let mut differences = Vec::new();
    for named in &live {
        match of_other.get(&named.id) {
            None => differences.push(alone(named, What::Missing)),
            Some(other) if named.is_like(other) => {}
            Some(other) => {
                let fields = fields(form::inner(&named.form), form::inner(&other.form));
                differences.push(other.difference(What::Changed, fields));
            }
        }
    }
    for named in &other {
        if !of_live.contains_key(&named.id) {
            differences.push(alone(named, What::Extra));
        }
    }
    if live.len() == other.len() && differences.iter().all(|one| one.what == What::Changed) {
        differences.extend(order(&live, &other));
    }
    differences
}

fn all_named<'e>(job: &Job, effects: &'e [Effect]) -> Vec<Named<'e>> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut all = Vec::with_capacity(effects.len());
    for effect in effects {
        let (kind, object, name) = names(job, effect);
        let count = seen.entry(name.clone()).or_default();
        all.push(Named {
            effect,
            form: form::of(effect),
            kind,
            object,
            id: (name, *count),
        });
        *count += 1;
    }
    all
}

/// Returns the kind, the object, and a name that is the same for two versions if they mean the same
/// effect.
fn names(job: &Job, effect: &Effect) -> (String, String, String) {
    let verb = effect.verb();
    let subresource = effect.subresource().unwrap_or_default();
    let behind = |text: String| match subresource {
        "" => text,
        subresource => format!("{text}/{subresource}"),
    };
    match (effect, effect.key()) {
        (Effect::Event(event), _) => {
            let name = format!("{verb} {}", event.reason);
            (job.live.kind().kind.clone(), own_name(job), name)
        }
        (Effect::Other(other), _) => match form::in_cluster(effect) {
            Some(there) => {
                let (kind, object, name) = names(job, &there.effect);
                let place = there.place();
                (
                    kind,
                    format!("{object} in {place}"),
                    format!("{name} in {place}"),
                )
            }
            None => {
                let name = &other.name;
                (name.clone(), String::new(), format!("{verb} {name}"))
            }
        },
        (_, Ok(Some(key))) => {
            let object = behind(format!("{} {}", key.kind.kind, key.name));
            let name = format!("{verb} {} {}/{subresource}", key.kind, key.name);
            (behind(key.kind.kind), object, name)
        }
        // The object of this effect is invalid.
        (_, Ok(None) | Err(_)) => (String::new(), String::new(), format!("{verb} invalid")),
    }
}

/// Formats the turn's own object: `Machine default/x`.
fn own_name(job: &Job) -> String {
    format!("{} {}", job.live.kind().kind, job.key)
}

fn own_object(job: &Job) -> Option<Value> {
    let object = job.object.as_ref()?;
    serde_json::from_str(&object.text).ok()
}

impl Named<'_> {
    /// Returns whether both effects are the same. The form of an `other` effect leaves its body
    /// out, unless it names a cluster.
    fn is_like(&self, other: &Self) -> bool {
        let has_body = self.form.pointer(elsewhere::INNER).is_some();
        let has_same_body = match (self.effect, other.effect) {
            (Effect::Other(one), Effect::Other(other)) if !has_body => {
                let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
                one.body == other.body
                    || parsed(&one.body).is_some_and(|one| parsed(&other.body) == Some(one))
            }
            _ => true,
        };
        has_same_body && self.form == other.form
    }

    fn difference(&self, what: What, fields: Vec<Field>) -> Difference {
        Difference {
            what,
            kind: self.kind.clone(),
            effect: Told {
                verb: self.effect.verb().into(),
                object: self.object.clone(),
                effect: self.form.clone(),
                fields,
                ..Told::default()
            },
        }
    }
}

/// Returns a difference if the same effects are in another order.
fn order(live: &[Named<'_>], other: &[Named<'_>]) -> Option<Difference> {
    let names = |all: &[Named<'_>]| -> Vec<Value> {
        let name = |named: &Named<'_>| format!("{} {}", named.effect.verb(), named.object);
        all.iter().map(name).map(Value::from).collect()
    };
    let ids = |all: &[Named<'_>]| -> Vec<(String, usize)> {
        all.iter().map(|named| named.id.clone()).collect()
    };
    (ids(live) != ids(other)).then(|| {
        let (live, other) = (Value::from(names(live)), Value::from(names(other)));
        about("order", String::new(), live, other)
    })
}

/// Returns a difference if the versions want another next step.
fn next(live: &Next, other: &Next) -> Option<Difference> {
    if live == other {
        return None;
    }
    let value = |next: &Next| serde_json::to_value(next).unwrap_or_default();
    let (live, other) = (value(live), value(other));
    // Returns the only member of `{"requeueAfterMs": 5}`.
    let only = |value: &Value| {
        let members = value.as_object()?;
        let (name, value) = members.iter().next()?;
        Some((name.clone(), value.clone()))
    };
    match (only(&live), only(&other)) {
        (Some((name, live)), Some((same, other))) if name == same => {
            Some(about("next", name, live, other))
        }
        _ => Some(about("next", String::new(), live, other)),
    }
}

/// Returns a difference between the ways in which two calls ended.
fn call(live: &Called, other: &Called) -> Difference {
    let word =
        |called: &Called| Value::from(called.as_ref().map_or_else(CallError::kind, |_| "returned"));
    let mut difference = about("call", String::new(), word(live), word(other));
    let error = other.as_ref().err().map(ToString::to_string);
    difference.effect.message = error.map(|text| one_line(cut(&text, ERROR)).into_owned());
    difference
}

fn about(verb: &str, path: String, live: Value, other: Value) -> Difference {
    Difference {
        what: What::Changed,
        kind: String::new(),
        effect: Told {
            verb: verb.into(),
            fields: vec![Field {
                path,
                old: Some(live),
                new: Some(other),
            }],
            ..Told::default()
        },
    }
}

#[cfg(test)]
mod tests;
