//! What the turns of a shadow came to: counts, the kinds of differences with an example each, the
//! last turns of each key that differ. All of it is bounded, and redacted already.

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

/// The longest text of a value or of a name that is kept. A plugin may make names of megabytes.
const VALUE: usize = 512;

/// What stands for all that a bound leaves out.
const REST: &str = "(others)";

/// The results of a shadow; see the module.
#[derive(Debug, Default)]
pub(crate) struct Results {
    counts: Counts,
    /// By result, reason and what exactly.
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
    /// The live version whose turns are compared from now on.
    pub(crate) fn live(&mut self, digest: &str) {
        self.live = digest.to_owned();
        // The places of the version before are compared again.
        self.masked.clear();
    }

    /// A turn in which both versions want the same, or differ only in what is masked.
    pub(crate) fn same(&mut self, is_masked: bool) {
        self.counts.same += 1;
        self.counts.masked += u64::from(is_masked);
    }

    /// A turn that could not be compared.
    pub(crate) fn incomparable(&mut self, reason: &str, about: &str, key: &ObjectName) {
        self.counts.incomparable += 1;
        self.reason("incomparable", reason, about, key);
    }

    /// A turn in which the versions differ. `failed` is the kind of the candidate's failure.
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
        // `{"retry": "a text of the candidate's"}`
        if let Some(Value::Object(members)) = &mut turn.next {
            members.values_mut().for_each(shorten_value);
        }
        self.keys.add(controller, key, turn);
    }

    /// A turn that differs, in which the candidate drew more than is recorded.
    pub(crate) fn drew(&mut self) {
        self.counts.drew += 1;
    }

    /// The live version ran a turn again, and differs from itself at these places, which are new.
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

    /// The last turns of a key that differ.
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

/// Cuts the long name and long values of a field, which is redacted by now.
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
