//! Answers questions about turns from the journal, as documents. This module chooses the records.
//! It must not know what a record contains: [`crate::journal::tell`] makes a document of it, and
//! hides sensitive values.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use vmhost_core::ObjectName;
use vmhost_core::description::{admission_kind, conversion_kind};
use vmhost_engine::Settings;

use super::asked::{Refused, meant, named, wanted};
use super::questions::{Listed, TurnsQuery, WhyQuery};
use super::running::{Keyed, Running};
use super::wanted::{Record, Wanted};
use crate::config::book::SettingsBook;
use crate::journal::record::TurnRecord;
use crate::journal::redact::{PluginSecrets, Redact};
use crate::journal::story::{Story, Turn};
use crate::journal::wakes::Wakened;
use crate::journal::warnings::warnings;
use crate::journal::{Journal, tell};

mod cases;
mod failure;

/// The number of turns that are listed if the query gives no limit.
const LIMIT: usize = 1000;

/// Answers questions about turns.
pub(crate) struct Turns {
    journal: Arc<Journal>,
    redact: Arc<Redact>,
    /// The settings of the plugins. No document shows their values.
    settings: Arc<SettingsBook>,
    /// The settings of a plugin that has none.
    none: Settings,
    /// A time before the first turn.
    start: Instant,
}

impl Turns {
    /// Answers from this journal. To be created before the first turn.
    pub(crate) fn new(
        journal: Arc<Journal>,
        redact: Arc<Redact>,
        settings: Arc<SettingsBook>,
    ) -> Self {
        Self {
            journal,
            redact,
            settings,
            none: Settings::default(),
            start: Instant::now(),
        }
    }

    /// Lists turns, the newest last.
    pub(crate) fn list(&self, query: &TurnsQuery, running: &Running) -> Result<Listed, Refused> {
        let wanted = wanted(query, running)?;
        let records = self.records(&wanted, self.start);
        let first = records.len().saturating_sub(query.limit.unwrap_or(LIMIT));
        let mut turns = self.tell(records[first..].iter(), running);
        turns.iter_mut().for_each(leave_objects_out);
        Ok(Listed { turns })
    }

    /// Returns the story of a key. If several controllers reconcile the kind, returns those of all
    /// as one.
    pub(crate) fn why(&self, query: &WhyQuery, running: &Running) -> Result<Story, Refused> {
        let (controllers, names) = meant(query, running)?;
        let mut stories = names
            .iter()
            .map(|name| self.story(&controllers, name, running));
        let found = stories.find(|story| !is_empty(story));
        let mut story = found.ok_or_else(|| Refused::NoTurn {
            object: named(&controllers, query),
            why: self.why_none(&controllers, running),
        })?;
        let older = query
            .limit
            .map(|limit| story.turns.len().saturating_sub(limit));
        story.turns.drain(..older.unwrap_or_default());
        if query.brief {
            story.turns.iter_mut().for_each(leave_objects_out);
        }
        Ok(story)
    }

    /// Describes on one line what the last recorded failure of each of these keys came to. There
    /// may be hundreds of keys, so it walks over the records once for all.
    pub(crate) fn failures(
        &self,
        controller: &str,
        keys: &HashSet<ObjectName>,
        running: &Running,
    ) -> HashMap<ObjectName, String> {
        let is_about = |label: &str, key: &ObjectName| label == controller && keys.contains(key);
        let (turns, _) = self.journal.pick(
            |turn| turn.is_failure() && is_about(&turn.origin.controller, &turn.key),
            |_| false,
        );
        // The turns are in order, so the last one of each key stays.
        let turns = turns.into_iter().map(|turn| (turn.key.clone(), turn));
        let last: HashMap<ObjectName, TurnRecord> = turns.collect();
        let changes = self
            .journal
            .wakes
            .pick(|change| is_about(&change.controller, &change.key));
        let mut woken: HashMap<ObjectName, Vec<Wakened>> = HashMap::new();
        for change in changes {
            woken.entry(change.key.clone()).or_default().push(change);
        }
        let settings = self.settings.hidden();
        let secrets = self.secrets(&settings, controller, running);
        let mut told = HashMap::new();
        for (key, turn) in last {
            let woken = woken.remove(&key).unwrap_or_default();
            let time = |at: Instant| self.journal.time(at);
            let turn = tell::turn(&turn, &woken, time, &self.redact, secrets);
            told.insert(key, failure::words(&turn));
        }
        told
    }

    /// The wanted records of turns that ended after a time, in the order in which they began.
    pub(crate) fn records(&self, wanted: &Wanted, ended_after: Instant) -> Vec<Record> {
        wanted.of(&self.journal, ended_after)
    }

    /// Describes records. There may be thousands, so it walks over the journal once for all.
    pub(crate) fn tell<'r>(
        &self,
        records: impl Iterator<Item = &'r Record> + Clone,
        running: &Running,
    ) -> Vec<Turn> {
        let place = |record: &Record| (record.origin().controller.clone(), record.key().clone());
        let woken = self
            .journal
            .woken_all(&records.clone().map(place).collect());
        let settings = self.settings.hidden();
        let told = records.map(|record| {
            let secrets = self.secrets(&settings, &record.origin().controller, running);
            let woken = woken.get(&place(record)).map(Vec::as_slice);
            let woken = woken.unwrap_or_default();
            let (time, redact) = (|at| self.journal.time(at), &self.redact);
            match record {
                Record::Turn(turn) => tell::turn(turn, woken, time, redact, secrets),
                Record::Quiet(quiet) => tell::quiet(quiet, woken, time, redact, secrets),
            }
        });
        told.collect()
    }

    fn story(&self, controllers: &[&Keyed], name: &ObjectName, running: &Running) -> Story {
        let mut all = Story::default();
        for keyed in controllers {
            let label = &keyed.controller;
            let settings = self.settings.hidden();
            let secrets = self.secrets(&settings, label, running);
            let story = {
                let (journal, redact) = (&self.journal, &self.redact);
                tell::story(journal, redact, label, name, secrets, warnings)
            };
            all.turns.extend(story.turns);
            all.pending.extend(story.pending);
            all.warnings.extend(story.warnings);
            all.dropped = all.dropped.max(story.dropped);
        }
        // The times are RFC 3339 with the same number of digits, so sorting their texts sorts them.
        all.turns.sort_by(|a, b| a.time.cmp(&b.time));
        all
    }

    /// What the plugin of a controller may know besides what its turns saw.
    fn secrets<'a>(
        &'a self,
        settings: &'a HashMap<String, Settings>,
        controller: &str,
        running: &Running,
    ) -> PluginSecrets<'a> {
        // A label is `plugin/controller`, or just the plugin's name if both are the same, each with
        // `@cluster` in a member.
        let plugin = controller.split(['/', '@']).next().unwrap_or_default();
        PluginSecrets {
            settings: settings.get(plugin).unwrap_or(&self.none),
            reads_sensitive: running.reads_sensitive(controller),
        }
    }

    /// Explains why nothing is recorded.
    fn why_none(&self, controllers: &[&Keyed], running: &Running) -> &'static str {
        if !self.journal.is_on() {
            "this vmhost keeps no records (--record-bytes 0)"
        } else if controllers
            .iter()
            .all(|keyed| [admission_kind(), conversion_kind()].contains(&keyed.kind))
        {
            "this vmhost remembers only reviews that were denied or not answered, and `vmhost status` counts the others"
        } else if !running.leading {
            "this vmhost is a standby, and only the leader takes keys"
        } else if !controllers.iter().any(|keyed| keyed.started) {
            "the controller's workers have not started yet; see `vmhost status`"
        } else if self.journal.has_gaps() {
            "it had none since vmhost started, or its records made way for newer ones (--record-bytes)"
        } else {
            "it had none since vmhost started: check name and namespace, and the controller's selector and predicate"
        }
    }
}

/// Leaves the objects out of a document, which are most of it.
pub(crate) fn leave_objects_out(turn: &mut Turn) {
    (turn.object, turn.previous) = (None, None);
    for read in &mut turn.reads {
        read.objects.clear();
    }
}

fn is_empty(story: &Story) -> bool {
    story.turns.is_empty() && story.pending.is_empty() && story.warnings.is_empty()
}

#[cfg(test)]
mod tests;
