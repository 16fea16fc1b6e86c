//! What runs of a plugin that was handed over, as its slot and its stores show it. This module must
//! not know what is done about it.

use std::sync::Arc;

use vmhost_core::Metadata;
use vmhost_engine::Plugin;

use crate::canary::told::CanaryState;
use crate::config::terms::Terms;
use crate::deploy::slot::{Generation, Slot};

/// What runs of a plugin.
#[derive(Clone, Debug)]
pub struct RunningPlugin {
    /// The digest of the live version's component.
    pub digest: String,
    /// The terms of the live version.
    pub terms: Arc<Terms>,
    /// The number of its generation.
    pub generation: u64,
    /// What its stores wait for. Empty once they are filled.
    pub waiting: Vec<String>,
    /// Whether its calls fail, so that they are paused.
    pub is_paused: bool,
    /// The finalizers that its controllers add.
    pub finalizers: Vec<String>,
    /// The canary that runs, or the last one.
    pub canary: Option<CanaryState>,
}

/// A version of a plugin that runs.
#[derive(Clone)]
pub struct Version {
    /// The plugin, with its description.
    pub plugin: Arc<Plugin>,
    /// The terms that it runs under.
    pub terms: Arc<Terms>,
    /// Whether it is tried by a canary.
    pub is_candidate: bool,
}

impl RunningPlugin {
    /// What runs in this slot.
    pub(super) fn of(slot: &Slot) -> Self {
        let generation = slot.current();
        let wired = generation.controllers.values().map(|wired| &wired.sources);
        let sources = wired.chain(generation.readers.values());
        let canary = slot.canary.load_full();
        let controllers = generation.description().controllers.iter();
        let mut finalizers: Vec<String> = controllers
            .filter_map(|controller| controller.finalizer.clone())
            .collect();
        finalizers.sort();
        finalizers.dedup();
        Self {
            finalizers,
            digest: generation.plugin.digest().to_owned(),
            terms: generation.terms.clone(),
            generation: generation.number,
            waiting: sources.flat_map(|sources| sources.waiting()).collect(),
            is_paused: generation.breaker.status().1.is_some(),
            canary: canary.map(|canary| CanaryState::of(&canary)),
        }
    }
}

impl Version {
    /// The versions that run in this slot: the live one, and the one that is tried.
    pub(super) fn all_of(slot: &Slot) -> Vec<Self> {
        let lineup = slot.lineup();
        let version = |(place, generation): (usize, &Arc<Generation>)| Self {
            plugin: generation.plugin.clone(),
            terms: generation.terms.clone(),
            is_candidate: place > 0,
        };
        lineup.members().enumerate().map(version).collect()
    }
}

/// The objects that carry a finalizer of the plugin in this slot, as far as its stores show them.
pub(super) fn holding(slot: &Slot) -> Vec<String> {
    let mut holding = Vec::new();
    for (wired, _) in slot.current().everywhere() {
        let sources = &wired.sources;
        let Some(finalizer) = &sources.description().finalizer else {
            continue;
        };
        let kind = &wired.controller.kind;
        if !sources.is_synced() {
            holding.push(format!("{kind}: not known yet"));
        }
        for name in sources.names() {
            let object = sources.snapshot(&name);
            let metadata = object.as_ref().map(|object| Metadata::parse(&object.text));
            if let Some(Ok(metadata)) = metadata
                && metadata.finalizers.iter().any(|of| of == finalizer)
            {
                holding.push(format!("{kind} {name}"));
            }
        }
    }
    holding
}
