//! A generation takes the place of another: one pointer is replaced, then all keys get their chance
//! with the new code.
//!
//! Nothing can fail here, and nothing waits but for calls that were about to start.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::deploy::plugins::Plugins;
use crate::deploy::slot::{Generation, Ready, Slot, Wired};

/// What a swap did, and how long its steps took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Swapped {
    pub(crate) plugin: String,
    /// The number of its generation now.
    pub(crate) generation: u64,
    /// From source to bytes, if the host built it.
    pub(crate) build: Option<Duration>,
    /// From bytes to code.
    pub(crate) compile: Duration,
    /// Describe, compare with the grants, fill new stores.
    pub(crate) check: Duration,
    /// In which no worker could start a call.
    pub(crate) pause: Duration,
    /// Keys that were put back.
    pub(crate) keys: usize,
}

/// `swapped vm: generation 2 (build 1.9s, compile 44ms, check 1.2ms, pause 800ns, keys put back:
/// 501)`.
impl std::fmt::Display for Swapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "swapped {}: generation {} (",
            self.plugin, self.generation
        )?;
        if let Some(build) = self.build {
            write!(f, "build {build:.1?}, ")?;
        }
        write!(
            f,
            "compile {:.1?}, check {:.1?}, pause {:.1?}, keys put back: {})",
            self.compile, self.check, self.pause, self.keys
        )
    }
}

/// From now on calls start on the new generation. Must be run to its end: else keys are not put
/// back.
pub(crate) async fn replace(plugins: &Arc<Plugins>, slot: &Arc<Slot>, ready: Ready) -> Swapped {
    let number = slot.next_number();
    let share = slot.current().share.clone();
    let generation = Generation::new(number, ready.loaded.plugin, ready.controllers, share);
    let generation = Arc::new(generation);
    for wired in generation.controllers.values() {
        wired.sources.open();
    }
    let started = Instant::now();
    let before = slot.replace(generation.clone());
    let pause = started.elapsed();
    // Calls that were about to start on the old code have started when this is announced.
    before.started().await;

    plugins
        .metrics
        .generation
        .with_label_values(&[slot.name.as_str()])
        .set(generation.number as i64);
    let keys = renew(plugins, slot, &before, &generation);
    Swapped {
        plugin: slot.name.clone(),
        generation: generation.number,
        build: ready.loaded.build,
        compile: ready.loaded.compile,
        check: ready.check,
        pause,
        keys,
    }
}

/// All keys get their chance with the new code; controllers that are new start, and those that are
/// no more stop.
fn renew(plugins: &Arc<Plugins>, slot: &Arc<Slot>, before: &Generation, now: &Generation) -> usize {
    let mut left = HashMap::new();
    for (name, old) in &before.controllers {
        if now.sources(&old.controller).is_none() {
            tracing::info!(
                controller = name,
                "the controller is not part of the plugin any more, or another one"
            );
            // What the old queue still knows, its successor has to look at: an object that is gone
            // is in no store.
            left.insert(name, old.controller.unfinished());
            slot.retire(&old.controller);
        }
        warn_of_finalizer(old, now.controllers.get(name));
    }
    let mut keys = 0;
    for (name, wired) in &now.controllers {
        let old = before.controllers.get(name);
        let mut names = wired.sources.names();
        if let Some(old) = old
            && old.controller.kind == wired.controller.kind
        {
            let own = names.len();
            names.extend(left.remove(name).into_iter().flatten());
            if !Arc::ptr_eq(&old.sources, &wired.sources) {
                // What only the old stores show is gone by now, and is to be told; then they tell
                // no more.
                names.extend(old.sources.names());
                old.sources.close();
                wired.controller.mapper.renew(true);
            }
            if names.len() > own {
                names.sort_unstable();
                names.dedup();
            }
        } else if let Some(old) = old {
            old.sources.close();
        }
        wired.controller.mapper.renew(false);
        keys += wired.controller.renew(names);
        // A controller that still waits for its old stores may be the better for new ones.
        if !wired.controller.has_started() {
            plugins.start_workers(slot, wired.clone());
        }
    }
    keys
}

/// Warns of a finalizer that the new version does not put on any more: nothing takes it off.
fn warn_of_finalizer(old: &Wired, now: Option<&Wired>) {
    let finalizer = |wired: &Wired| wired.sources.description().finalizer.clone();
    if let Some(was) = finalizer(old)
        && now.and_then(finalizer).as_ref() != Some(&was)
    {
        tracing::warn!(
            controller = &*old.controller.label,
            "the new version does not take {was} off: objects that carry it cannot go. Run `vmhost finalizers FILE --remove` with the old version"
        );
    }
}
