//! Runs one version of a plugin over all its keys, until no key can run any more.
//!
//! This module must not know how a turn is run, or how the result is shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use vmhost_engine::Plugin;
use vmhost_runtime::journal::shown::Saw;

use super::base::Base;
use super::change::{Change, changes};
use super::keys::Key;
use super::names::Names;
use super::stage::{Event, Options, Problem, Stage, Turn};

/// The result of a run.
#[derive(Default)]
pub(super) struct Ran {
    pub(super) changes: Vec<Change>,
    pub(super) problems: Vec<Problem>,
    /// By controller, type and reason.
    pub(super) events: BTreeMap<(String, &'static str, String), Event>,
    /// Primaries that no write changes.
    pub(super) unchanged: usize,
    /// Objects of which only the owners of fields change.
    pub(super) owned: usize,
    /// Keys that a running host would requeue after a time.
    pub(super) later: usize,
    /// Keys that ask for another turn although nothing changes, and do not fail.
    pub(super) asking: usize,
    /// Keys that were not run, because calls kept failing.
    pub(super) left: usize,
    /// HTTP requests that the policy wanted to send.
    pub(super) unsent: usize,
    /// What the overlay did not know about kinds that were written.
    pub(super) gaps: Vec<String>,
    /// Warnings of an API server, with how often each came.
    pub(super) warnings: BTreeMap<String, usize>,
    /// Writes that were asked for as dry runs.
    pub(super) asked: usize,
    /// Objects that others have changed since they were listed.
    pub(super) outdated: usize,
    /// Effects that name their cluster.
    pub(super) elsewhere: usize,
}

/// Runs a version over all keys.
pub(super) async fn run(plugin: Plugin, base: Arc<Base>, options: Arc<Options>) -> Ran {
    let began = Timestamp::now();
    let mut stage = Stage::new(plugin, base, options);
    while let Some(key) = stage.keys.next() {
        if stage.is_broken() {
            stage.keys.add(key);
            break;
        }
        let Some(desk) = stage.desks.get(key.0).cloned() else {
            continue;
        };
        if stage.keys.begin(&key) {
            stage.turn(desk, &key.1).await;
        } else {
            restless(&mut stage, &key);
        }
        // Turns may run for a long time without ever waiting, so other tasks get a chance here.
        tokio::task::coop::consume_budget().await;
    }
    ended(stage, began)
}

/// Notes that a key has had all its turns and still changes objects.
fn restless(stage: &mut Stage, key: &Key) {
    let turns = stage.options.turns;
    let changed = stage.keys.state(key).changed;
    let is_known = stage.found.problems.contains_key(key);
    if let Some(desk) = stage.desks.get(key.0).filter(|_| changed && !is_known) {
        let turn = Turn {
            desk: desk.clone(),
            key: key.1.clone(),
            object: None,
            saw: Saw::default(),
        };
        let text = format!("still changes objects after {turns} turns (--turns)");
        stage.fails(&turn, "restless", text);
    }
}

fn ended(stage: Stage, began: Timestamp) -> Ran {
    let Stage {
        world,
        keys,
        options,
        found,
        first,
        ..
    } = stage;
    // Servers store times without fractions of a second.
    let second = SignedDuration::from_secs(1);
    let now = Timestamp::now();
    let during = (
        began.checked_sub(second).unwrap_or(began),
        now.checked_add(second).unwrap_or(now),
    );
    let fails = |key: &&Key| found.problems.contains_key(*key);
    let asking = keys.parked().filter(|key| !fails(key)).count();
    let mut ran = Ran {
        unchanged: first.values().map(|names| names.len()).sum(),
        later: found.later.len(),
        asking,
        left: keys.waiting(),
        unsent: world.unsent(),
        gaps: world.gaps.clone(),
        events: found.events,
        warnings: found.warnings,
        asked: found.asked,
        outdated: found.outdated,
        elsewhere: found.elsewhere,
        ..Ran::default()
    };
    for touched in world.touched() {
        let wrote = found.writers.get(touched.id);
        let made = changes(&touched, wrote, &options.hide, during);
        if made.is_empty() {
            // An object that was created and deleted again does not count.
            ran.owned += usize::from(wrote.is_some() && touched.after.is_some());
            continue;
        }
        let kind = (touched.id.group.clone(), touched.id.kind.clone());
        let is_first = first
            .get(&kind)
            .is_some_and(|of| of.contains(&touched.id.name));
        ran.unchanged -= usize::from(is_first);
        ran.changes.extend(made);
    }
    for ((_, name), problem) in found.problems {
        let names = Names::new(name.name(), name.namespace(), [], during);
        ran.problems.push(Problem {
            text: names.path(&problem.text),
            ..problem
        });
    }
    ran
}
