//! One version of a plugin in a preview: its controllers with their stores, the overlay that it
//! writes to, and what its turns have led to.
//!
//! This module owns these parts together. It must not know what a turn does.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tokio::runtime::Handle;
use vmhost_core::{
    ControllerDescription, EventType, Grants, Gvk, LabelSelector, Metadata, ObjectName, Snapshot,
};
use vmhost_engine::{CallError, Plugin};
use vmhost_runtime::journal::shown::{Hide, Saw};
use vmhost_runtime::turn::effects::carrier::Carrier;

use super::base::Base;
use super::ids::Id;
use super::keys::{Key, Keys};
use super::view::View;
use super::world::World;

/// After this many calls in a row without an outcome, a running host pauses a plugin.
const BROKEN: u32 = 20;

/// After this many calls in a row that exceed their deadline, no further calls are made.
const LATE: u32 = 3;

/// How a preview is run.
pub(super) struct Options {
    /// How many turns a key may have.
    pub(super) turns: u32,
    /// Selects the primaries that get turns.
    pub(super) selector: Option<LabelSelector>,
    /// Whether the plugin is the running version, so that all its keys had a successful turn
    /// before.
    pub(super) runs: bool,
    /// Hides sensitive values.
    pub(super) hide: Hide,
    /// Carries effects out as dry runs of the cluster's API server, if the user wants that.
    pub(super) server: Option<Server>,
}

/// The cluster's API server, for dry runs.
pub(super) struct Server {
    pub(super) carrier: Arc<Carrier>,
    /// The runtime that sends requests.
    pub(super) io: Handle,
}

/// A version of a plugin during a preview.
pub(super) struct Stage {
    pub(super) plugin: Plugin,
    pub(super) grants: Grants,
    pub(super) desks: Vec<Arc<Desk>>,
    pub(super) world: World,
    pub(super) keys: Keys,
    pub(super) options: Arc<Options>,
    pub(super) found: Found,
    /// The primaries that got a turn because they exist, by group and kind.
    pub(super) first: HashMap<(String, String), HashSet<ObjectName>>,
    broken: u32,
    late: u32,
}

/// A controller, with what its turns need.
pub(super) struct Desk {
    /// The number of the controller in the description.
    pub(super) at: usize,
    pub(super) name: String,
    /// The controller's name in texts: `plugin/controller`.
    pub(super) label: String,
    pub(super) kind: Gvk,
    pub(super) finalizer: Option<String>,
    /// Whether requests carry the object of the last successful turn.
    pub(super) previous: bool,
    pub(super) manager: String,
    pub(super) view: Arc<View>,
}

/// What the turns have led to.
#[derive(Default)]
pub(super) struct Found {
    /// The problem of each key's last turn.
    pub(super) problems: BTreeMap<Key, Problem>,
    pub(super) events: BTreeMap<(String, &'static str, String), Event>,
    /// The turn that wrote an object first, and what all its writers had read.
    pub(super) writers: HashMap<Id, Wrote>,
    /// Keys that a running host would requeue after a time.
    pub(super) later: HashSet<Key>,
    /// The overlay's warnings.
    pub(super) warnings: BTreeMap<String, usize>,
    /// Writes that were asked for as dry runs.
    pub(super) asked: usize,
    /// Objects that others have changed since they were listed.
    pub(super) outdated: usize,
    /// Effects that name their cluster.
    pub(super) elsewhere: usize,
}

/// Why a key's turn failed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Problem {
    /// The controller's label.
    pub(super) controller: String,
    pub(super) key: String,
    /// In one word: `trap`, `deadline`, `refused`, `retry`, `fail`, `restless`, ...
    pub(super) what: &'static str,
    /// The text, with sensitive values hidden.
    pub(super) text: String,
}

/// An Event that turns would record.
#[derive(Clone, Debug, Default)]
pub(super) struct Event {
    pub(super) count: usize,
    /// The first object, and its note.
    pub(super) object: String,
    pub(super) note: String,
}

/// The writes to one object.
pub(super) struct Wrote {
    /// The name of the key whose turn wrote the object first, and the uid of that key's object.
    pub(super) key: ObjectName,
    pub(super) uid: String,
    /// What the writers had read. Sensitive values in it have to be hidden.
    pub(super) saw: Saw,
}

/// One turn.
pub(super) struct Turn {
    pub(super) desk: Arc<Desk>,
    pub(super) key: ObjectName,
    pub(super) object: Option<Snapshot>,
    pub(super) saw: Saw,
}

impl Turn {
    /// Its key among those of all controllers.
    pub(super) fn whole_key(&self) -> Key {
        (self.desk.at, self.key.clone())
    }
}

impl Stage {
    /// Creates a version before its first turn. All its keys are waiting.
    pub(super) fn new(plugin: Plugin, base: Arc<Base>, options: Arc<Options>) -> Self {
        let world = World::new(base);
        let description = plugin.description();
        let controllers = description.controllers.iter().enumerate();
        let desks = controllers.map(|(at, controller)| {
            let label = match description.name == controller.name {
                true => controller.name.clone(),
                false => format!("{}/{}", description.name, controller.name),
            };
            let manager = description.field_manager(&controller.name);
            let view = View::new(controller, world.live.clone());
            Arc::new(Desk::new(at, controller, label, manager, view))
        });
        let mut stage = Self {
            grants: Grants::of(description),
            desks: desks.collect(),
            plugin,
            world,
            keys: Keys::new(options.turns),
            options,
            found: Found::default(),
            first: HashMap::new(),
            broken: 0,
            late: 0,
        };
        for (at, controller) in stage.desks.clone().into_iter().enumerate() {
            stage.enqueue_all(at, &controller);
        }
        stage
    }

    fn enqueue_all(&mut self, at: usize, desk: &Desk) {
        let kind = (desk.kind.group.clone(), desk.kind.kind.clone());
        let timer = self.plugin.description().controller(&desk.name);
        if timer.is_some_and(|controller| controller.timer.is_some()) {
            self.keys.add((at, ObjectName::new(None, &desk.name)));
        }
        for name in desk.view.names() {
            if !self.is_selected(desk, &name) {
                continue;
            }
            let key = (at, name);
            if self.options.runs && desk.previous {
                self.keys.state(&key).previous = desk.view.snapshot(&key.1);
            }
            let names = self.first.entry(kind.clone()).or_default();
            names.insert(key.1.clone());
            self.keys.add(key);
        }
    }

    /// Returns whether a key gets turns. A key whose object is gone always does.
    pub(super) fn is_selected(&self, desk: &Desk, name: &ObjectName) -> bool {
        let Some(selector) = &self.options.selector else {
            return true;
        };
        desk.view.snapshot(name).is_none_or(|object| {
            let metadata = Metadata::parse(&object.text).unwrap_or_default();
            selector.matches_by(|key| metadata.labels.get(key))
        })
    }

    /// Notes a problem of a key.
    pub(super) fn fails(&mut self, turn: &Turn, what: &'static str, text: String) {
        let mut texts = [text];
        self.options.hide.change(&turn.saw, "", &mut [], &mut texts);
        let [text] = texts;
        let problem = Problem {
            controller: turn.desk.label.clone(),
            key: turn.key.to_string(),
            what,
            text,
        };
        self.found.problems.insert(turn.whole_key(), problem);
    }

    /// Notes an Event. Nothing records it.
    pub(super) fn event(&mut self, turn: &Turn, event: &vmhost_core::Event) {
        let kind = match event.kind {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        };
        let key = (turn.desk.label.clone(), kind, event.reason.clone());
        let events = self.found.events.entry(key).or_default();
        events.count += 1;
        if events.count == 1 {
            let mut notes = [vmhost_core::cut(&event.note, 1024).to_owned()];
            self.options.hide.change(&turn.saw, "", &mut [], &mut notes);
            let [note] = notes;
            events.object = format!("{} {}", turn.desk.kind.kind, turn.key);
            events.note = note;
        }
    }

    /// Counts how calls end.
    pub(super) fn called(&mut self, error: Option<&CallError>) {
        let is_late = matches!(error, Some(CallError::Deadline(_)));
        self.broken = if error.is_some() { self.broken + 1 } else { 0 };
        self.late = if is_late { self.late + 1 } else { 0 };
    }

    /// Returns whether further calls make no sense.
    pub(super) fn is_broken(&self) -> bool {
        self.broken >= BROKEN || self.late >= LATE
    }
}

impl Desk {
    fn new(
        at: usize,
        controller: &ControllerDescription,
        label: String,
        manager: String,
        view: View,
    ) -> Self {
        Self {
            at,
            name: controller.name.clone(),
            label,
            kind: controller.kind(),
            finalizer: controller.finalizer.clone(),
            previous: controller.previous,
            manager,
            view: Arc::new(view),
        }
    }
}
