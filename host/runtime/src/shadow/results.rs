//! The results of a shadow: counts, the kinds of differences with an example each, and the last
//! turns of each key that differ. Everything is bounded, and sensitive values are already hidden.
//! This module must not know how versions are compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use vmhost_core::{ObjectName, cut};

use crate::journal::story::Field;
use crate::shadow::difference::general;
use crate::shadow::keys::Keys;
use crate::shadow::mask::Place;
use crate::shadow::report::{
    Counts, Differing, Example, Group, Masked, Reason, ShadowReport, ShadowTurn,
};

/// The number of kinds of differences that are kept.
const GROUPS: usize = 100;

/// The number of reasons, and of masked places, that are kept.
const OTHERS: usize = 100;

/// The longest value or name that is kept, because a plugin may make names of megabytes.
const VALUE: usize = 512;

/// Stands for everything that exceeds a bound.
const REST: &str = "(others)";

/// The results of a shadow; see the module.
#[derive(Debug, Default)]
pub(crate) struct Results {
    counts: Counts,
    /// By result, reason and details.
    reasons: BTreeMap<[String; 3], Reason>,
    /// By controller, what, verb, kind and path.
    groups: BTreeMap<[String; 5], Group>,
    other_differences: u64,
    masked: Vec<Masked>,
    keys: Keys,
    /// The digest of the last live version.
    live: String,
}

impl Results {
    /// Notes the live version whose turns are compared from now on.
    pub(crate) fn live(&mut self, digest: &str) {
        self.live = digest.to_owned();
        // The places of the version before are compared again.
        self.masked.clear();
    }

    /// Counts a turn in which both versions want the same, or differ only in masked places.
    pub(crate) fn same(&mut self, is_masked: bool) {
        self.counts.same += 1;
        self.counts.masked += u64::from(is_masked);
    }

    /// Counts a turn that could not be compared.
    pub(crate) fn incomparable(&mut self, reason: &str, about: &str, key: &ObjectName) {
        self.counts.incomparable += 1;
        self.reason("incomparable", reason, about, key);
    }

    /// Counts a turn in which the versions differ. `failed` is the kind of the candidate's failure,
    /// if it failed.
    pub(crate) fn differs(
        &mut self,
        controller: &Arc<str>,
        key: &ObjectName,
        failed: Option<&str>,
        mut turn: ShadowTurn,
    ) {
        match failed {
            Some(kind) => {
                self.counts.failed += 1;
                self.reason("failed", kind, "", key);
            }
            None => self.counts.differs += 1,
        }
        for differing in &mut turn.differences {
            shorten(differing);
            self.group(controller, key, &turn.time, differing);
        }
        for effect in &mut turn.effects {
            shorten_name(&mut effect.object);
            effect.fields.iter_mut().for_each(shorten_field);
        }
        shorten_name(&mut turn.act);
        // The value is the candidate's own text in `{"retry": "..."}`.
        if let Some(Value::Object(members)) = &mut turn.next {
            members.values_mut().for_each(shorten_value);
        }
        self.keys.add(controller, key, turn);
    }

    /// Counts a turn that differs and in which the candidate drew more than is recorded.
    pub(crate) fn drew(&mut self) {
        self.counts.drew += 1;
    }

    /// Counts a turn that the live version has run again, and adds the new places in which it
    /// differs from itself.
    pub(crate) fn rerun(&mut self, controller: &str, places: Vec<Place>) {
        self.counts.rerun += 1;
        let room = OTHERS.saturating_sub(self.masked.len());
        let masked = places.into_iter().take(room).map(|place| Masked {
            controller: controller.to_owned(),
            verb: place.verb,
            kind: cut(&place.kind, VALUE).to_owned(),
            path: cut(&place.path, VALUE).to_owned(),
        });
        self.masked.extend(masked);
    }

    /// Returns the last turns of a key that differ.
    pub(crate) fn of(&self, controller: &str, key: &ObjectName) -> Vec<ShadowTurn> {
        self.keys.of(controller, key)
    }

    /// Adds the results to a report.
    pub(crate) fn tell(&self, report: &mut ShadowReport) {
        report.live.clone_from(&self.live);
        report.counts = self.counts;
        report.reasons = self.reasons.values().cloned().collect();
        report
            .reasons
            .sort_by_key(|reason| std::cmp::Reverse(reason.turns));
        report.differences = self.groups.values().cloned().collect();
        report
            .differences
            .sort_by_key(|group| std::cmp::Reverse(group.count));
        report.other_differences = self.other_differences;
        report.masked.clone_from(&self.masked);
    }

    fn reason(&mut self, result: &str, reason: &str, about: &str, key: &ObjectName) {
        let id = |about: &str| [result, reason, about].map(str::to_owned);
        let mut about = cut(about, VALUE);
        if self.reasons.len() >= OTHERS && !self.reasons.contains_key(&id(about)) {
            about = REST;
        }
        let entry = self.reasons.entry(id(about)).or_insert_with(|| Reason {
            result: result.to_owned(),
            reason: reason.to_owned(),
            about: about.to_owned(),
            turns: 0,
            example: key.to_string(),
        });
        entry.turns += 1;
    }

    fn group(&mut self, controller: &str, key: &ObjectName, time: &str, differing: &Differing) {
        let Differing {
            what,
            verb,
            kind,
            fields,
            ..
        } = differing;
        let fields: Vec<_> = match what.as_str() {
            "changed" => fields
                .iter()
                .map(|field| (general(&field.path), field.old.as_ref(), field.new.as_ref()))
                .collect(),
            _ => vec![(String::new(), None, None)],
        };
        for (path, live, candidate) in fields {
            let id = [
                controller,
                what.as_str(),
                verb.as_str(),
                kind.as_str(),
                path.as_str(),
            ];
            let id = id.map(str::to_owned);
            if self.groups.len() >= GROUPS && !self.groups.contains_key(&id) {
                self.other_differences += 1;
                continue;
            }
            let group = self.groups.entry(id).or_insert_with(|| Group {
                controller: controller.to_owned(),
                what: what.clone(),
                verb: verb.clone(),
                kind: kind.clone(),
                path,
                count: 0,
                example: Example {
                    key: key.to_string(),
                    time: time.to_owned(),
                    live: live.cloned(),
                    candidate: candidate.cloned(),
                },
            });
            group.count += 1;
        }
    }
}

fn shorten(differing: &mut Differing) {
    shorten_name(&mut differing.kind);
    shorten_name(&mut differing.object);
    differing.fields.iter_mut().for_each(shorten_field);
}

fn shorten_name(name: &mut String) {
    let end = cut(name, VALUE).len();
    name.truncate(end);
    name.shrink_to_fit();
}

/// Shortens the name and the values of a field. Sensitive values in them are already hidden.
fn shorten_field(field: &mut Field) {
    shorten_name(&mut field.path);
    let values = [&mut field.old, &mut field.new].into_iter().flatten();
    values.for_each(shorten_value);
}

fn shorten_value(value: &mut Value) {
    let text = value.to_string();
    if text.len() > VALUE {
        *value = Value::from(format!("{}...", cut(&text, VALUE)));
    }
}

#[cfg(test)]
mod tests;
