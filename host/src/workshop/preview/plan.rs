//! The plan: what a version would do, with equal changes in one group, and how another version
//! differs.
//!
//! This module must not know how a plan is printed, or how changes came about.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::Value;
use vmhost_runtime::journal::story::Field;

use super::change::{Change, Verb};
use super::names::without_hashes;
use super::remarks::{notes, unseen};
use super::run::Ran;
use super::stage::Problem;

/// What a version would do.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Plan {
    pub(super) new: Version,
    /// The version that the groups and the problems are compared with.
    pub(super) against: Option<Version>,
    pub(super) counts: Counts,
    /// The changes. With a second version, only those that one of the two makes.
    pub(super) groups: Vec<Group>,
    /// The failing turns. With a second version, only those of one of the two.
    pub(super) problems: Vec<Failing>,
    /// Events that the turns would record.
    pub(super) events: Vec<Events>,
    /// Further remarks about the run.
    pub(super) notes: Vec<String>,
    /// What the preview cannot see.
    pub(super) unseen: Vec<String>,
}

/// A version of a plugin.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Version {
    pub(super) plugin: String,
    pub(super) version: String,
    /// `sha256:` and the digest of its component.
    pub(super) digest: String,
}

/// How many objects the new version would change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counts {
    pub(super) patch: usize,
    pub(super) create: usize,
    pub(super) delete: usize,
    /// Primaries that do not change.
    pub(super) unchanged: usize,
    /// Keys whose turns fail.
    pub(super) failed: usize,
}

/// The version that does something which the other one does not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Side {
    New,
    Old,
}

/// Equal changes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Group {
    pub(super) verb: Verb,
    /// `Deployment.apps`.
    pub(super) kind: String,
    /// `None` without a comparison.
    pub(super) by: Option<Side>,
    pub(super) count: usize,
    pub(super) objects: Vec<String>,
    pub(super) fields: Vec<Field>,
    pub(super) waits_for: Vec<String>,
}

/// Keys whose turns fail in the same way.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Failing {
    pub(super) controller: String,
    pub(super) what: &'static str,
    pub(super) text: String,
    pub(super) by: Option<Side>,
    pub(super) count: usize,
    pub(super) keys: Vec<String>,
}

/// Events of one controller with the same type and reason.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Events {
    pub(super) controller: String,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) reason: String,
    pub(super) count: usize,
    /// The first object, and its note.
    pub(super) object: String,
    pub(super) note: String,
}

impl Plan {
    /// Returns whether there is something to show besides notes.
    pub(super) fn differs(&self) -> bool {
        !self.groups.is_empty() || !self.problems.is_empty()
    }

    /// Makes a plan of what one version did, compared with what a second one did, if there is one.
    pub(super) fn new(new: (Version, Ran), old: Option<(Version, Ran)>) -> Self {
        let (version, ran) = new;
        let counts = counts(&ran);
        let (notes, unseen) = (notes(&ran), unseen(&ran));
        let events = ran.events.into_iter();
        let events = events.map(|((controller, kind, reason), event)| Events {
            controller,
            kind,
            reason,
            count: event.count,
            object: event.object,
            note: event.note,
        });
        let events = events.collect();
        let (against, changes, problems) = match old {
            None => {
                let changes = ran.changes.into_iter().map(|change| (None, change));
                let problems = ran.problems.into_iter().map(|problem| (None, problem));
                (None, changes.collect(), problems.collect())
            }
            Some((version, old)) => (
                Some(version),
                differing(ran.changes, old.changes, Change::identity),
                differing(ran.problems, old.problems, |problem| format!("{problem:?}")),
            ),
        };
        Self {
            new: version,
            against,
            counts,
            groups: groups(changes),
            problems: failing(problems),
            events,
            notes,
            unseen,
        }
    }
}

/// Returns what only one of two versions has. If both have it, the surplus is returned.
fn differing<T>(
    new: Vec<T>,
    old: Vec<T>,
    identity: impl Fn(&T) -> String,
) -> Vec<(Option<Side>, T)> {
    let mut left: HashMap<String, usize> = HashMap::new();
    for one in &old {
        *left.entry(identity(one)).or_default() += 1;
    }
    let mut take = |one: &T| match left.get_mut(&identity(one)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let mut found = Vec::new();
    for one in new {
        if !take(&one) {
            found.push((Some(Side::New), one));
        }
    }
    for one in old {
        if take(&one) {
            found.push((Some(Side::Old), one));
        }
    }
    found
}

/// Puts equal changes into one group.
fn groups(changes: Vec<(Option<Side>, Change)>) -> Vec<Group> {
    let mut groups: BTreeMap<_, Group> = BTreeMap::new();
    for (by, change) in changes {
        let kind = match change.id.group.as_str() {
            "" => change.id.kind.clone(),
            group => format!("{}.{group}", change.id.kind),
        };
        let fields: Vec<Field> = change.fields.into_iter().map(plain).collect();
        let text = serde_json::to_string(&fields).unwrap_or_default();
        let key = (
            change.verb,
            by,
            kind.clone(),
            text,
            change.waits_for.clone(),
        );
        let group = groups.entry(key).or_insert_with(|| Group {
            verb: change.verb,
            kind,
            by,
            count: 0,
            objects: Vec::new(),
            fields,
            waits_for: change.waits_for,
        });
        group.count += 1;
        group.objects.push(change.id.name.to_string());
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    // The sort is stable: groups of the same size stay in the order of kind and fields.
    groups.sort_by_key(|group| (group.verb, std::cmp::Reverse(group.count)));
    groups
}

/// Returns a field without the hashes of hidden values.
fn plain(field: Field) -> Field {
    let plain = |value: Value| match value {
        Value::String(text) => without_hashes(&text).into(),
        other => other,
    };
    Field {
        path: field.path,
        old: field.old.map(plain),
        new: field.new.map(plain),
    }
}

/// Puts keys that fail in the same way together.
fn failing(problems: Vec<(Option<Side>, Problem)>) -> Vec<Failing> {
    let mut failing: BTreeMap<_, Failing> = BTreeMap::new();
    for (by, problem) in problems {
        let text = without_hashes(&problem.text);
        let key = (by, problem.controller.clone(), problem.what, text.clone());
        let group = failing.entry(key).or_insert_with(|| Failing {
            controller: problem.controller,
            what: problem.what,
            text,
            by,
            count: 0,
            keys: Vec::new(),
        });
        group.count += 1;
        group.keys.push(problem.key);
    }
    let mut failing: Vec<Failing> = failing.into_values().collect();
    failing.sort_by_key(|group| std::cmp::Reverse(group.count));
    failing
}

fn counts(ran: &Ran) -> Counts {
    let count = |verb: Verb| {
        let changes = ran.changes.iter();
        changes.filter(|change| change.verb == verb).count()
    };
    Counts {
        patch: count(Verb::Patch),
        create: count(Verb::Create),
        delete: count(Verb::Delete),
        unchanged: ran.unchanged,
        failed: ran.problems.len(),
    }
}

#[cfg(test)]
mod tests;
