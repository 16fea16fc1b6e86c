//! Replaces a generation by the next one: exchanges one pointer, then enqueues all keys for the new
//! code. This module must not know why a generation is replaced.
//!
//! No step can fail, and the only wait is for calls that were about to start.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::canary::end::{Abort, End};
use crate::deploy::orders::OrderError;
use crate::deploy::plugins::Plugins;
use crate::deploy::slot::{Generation, Ready, Seats, Slot, Wired};

/// The result of a swap, with the time of each step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Swapped {
    pub(crate) plugin: String,
    /// The number of the new generation.
    pub(crate) generation: u64,
    /// The time from source to component, if the host built it.
    pub(crate) build: Option<Duration>,
    /// The compilation time.
    pub(crate) compile: Duration,
    /// The time to describe the plugin, compare it with the grants and fill new stores.
    pub(crate) check: Duration,
    /// The time in which no worker could start a call.
    pub(crate) pause: Duration,
    /// The number of requeued keys.
    pub(crate) keys: usize,
    /// Whether the new generation is an older version of the plugin.
    pub(crate) is_rollback: bool,
}

/// `swapped vm: generation 2 (build 1.9s, compile 44ms, check 1.2ms, pause 800ns, keys requeued:
/// 501)` is the text of a swap.
impl std::fmt::Display for Swapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verb = match self.is_rollback {
            true => "rolled back",
            false => "swapped",
        };
        write!(
            f,
            "{verb} {}: generation {} (",
            self.plugin, self.generation
        )?;
        if let Some(build) = self.build {
            write!(f, "build {build:.1?}, ")?;
        }
        write!(
            f,
            "compile {:.1?}, check {:.1?}, pause {:.1?}, keys requeued: {})",
            self.compile, self.check, self.pause, self.keys
        )
    }
}

/// The result of a promotion.
#[derive(Debug)]
pub(crate) struct Promoted {
    pub(crate) plugin: String,
    /// The number that the generation had as a candidate.
    pub(crate) generation: u64,
    /// How long no worker could start a call.
    pub(crate) pause: Duration,
    /// The number of requeued keys.
    pub(crate) keys: usize,
    /// The candidate's component.
    pub(crate) component: Vec<u8>,
}

/// Formats `promoted vm: generation 2 (pause 800ns, keys requeued: 501)`.
impl std::fmt::Display for Promoted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "promoted {}: generation {} (pause {:.1?}, keys requeued: {})",
            self.plugin, self.generation, self.pause, self.keys
        )
    }
}

/// Makes the new generation current: from now on calls start on it. This must run to its end, or
/// keys are not requeued.
pub(crate) async fn replace(plugins: &Arc<Plugins>, slot: &Arc<Slot>, ready: Ready) -> Swapped {
    let number = slot.next_number();
    let share = slot.current().share.clone();
    let generation = Generation::new(number, ready.loaded.plugin, ready.controllers, share);
    let generation = generation.with_readers(ready.readers).under(ready.terms);
    generation.seats.store(Arc::new(ready.seats));
    let generation = Arc::new(generation);
    let (pause, keys) = exchange(plugins, slot, &generation).await;
    Swapped {
        plugin: slot.name.clone(),
        generation: generation.number,
        build: ready.loaded.build,
        compile: ready.loaded.compile,
        check: ready.check,
        pause,
        keys,
        is_rollback: false,
    }
}

/// Makes a canary's candidate the live generation, as a swap would, but without compiling it again.
/// This must run to its end, or keys are not requeued.
pub(crate) async fn promote(
    plugins: &Arc<Plugins>,
    slot: &Arc<Slot>,
    wanted: Option<u64>,
) -> Result<Promoted, OrderError> {
    let lineup = slot.lineup();
    let candidate = lineup.candidate.as_ref();
    let is_wanted = |number| wanted.is_none_or(|wanted| wanted == number);
    let candidate = candidate.filter(|candidate| is_wanted(candidate.generation.number));
    let Some(candidate) = candidate else {
        let none = format!("no canary of {} runs", slot.name);
        return Err(OrderError::Refused(none));
    };
    if !plugins.leadership.is_leading() {
        slot.abort(&candidate.canary, Abort::LeaderLost);
        let standby = "this vmhost does not lead any more: the canary is aborted";
        return Err(OrderError::Refused(standby.to_owned()));
    }
    if !candidate.canary.end(End::Promoted) {
        let aborted = format!("the canary of {} has just been aborted", slot.name);
        return Err(OrderError::Refused(aborted));
    }
    // Done before the first turn of the promoted generation, which goes on from the snapshots that
    // the candidate saw.
    for (name, wired) in &candidate.generation.controllers {
        if let Some(keys) = candidate.canary.keys(name) {
            let memory = &wired.controller.memory;
            keys.merge(|key, object| memory.saw(key, object));
        }
    }
    // The probation is about the calls that the generation makes as the live version.
    candidate.generation.breaker.reset();
    let (pause, keys) = exchange(plugins, slot, &candidate.generation).await;
    // Taken before the canary ends, because its own task drops the component at the end.
    let component = candidate.canary.take_component();
    candidate.canary.finish();
    Ok(Promoted {
        plugin: slot.name.clone(),
        generation: candidate.generation.number,
        pause,
        keys,
        component,
    })
}

/// Makes a generation the only one, and requeues all keys. Returns how long no worker could start a
/// call, and the number of keys.
async fn exchange(
    plugins: &Arc<Plugins>,
    slot: &Arc<Slot>,
    generation: &Arc<Generation>,
) -> (Duration, usize) {
    let settings = generation.terms.settings.as_ref();
    if let Some(settings) = settings {
        // Before the first call that may tell them.
        plugins.loader.settings.hide(&slot.name, settings);
    }
    for wired in generation.controllers.values() {
        wired.sources.open();
    }
    if let Some(candidate) = &slot.lineup().candidate {
        // The canary ends before its candidate is taken out: a turn that finds its candidate gone
        // must also find the canary ended. A candidate that is being promoted has ended already, so
        // this has no effect on it.
        candidate.canary.end(End::Aborted(Abort::NewBytes));
    }
    let (before, pause) = {
        let _seating = slot.seating.lock();
        plugins.seat(slot, generation);
        for seat in generation.seats.load().values() {
            seat.controllers
                .values()
                .for_each(|wired| wired.sources.open());
        }
        let started = Instant::now();
        (slot.replace(generation.clone()), started.elapsed())
    };
    if let Some(settings) = settings {
        plugins.loader.settings.set(&slot.name, Some(settings));
    }
    // After this, the calls that were about to start on the old code have started, and the swap can
    // be announced.
    before.started().await;

    plugins
        .metrics
        .generation
        .with_label_values(&[slot.name.as_str()])
        .set(generation.number as i64);
    let keys = renew(plugins, slot, &before.live, generation);
    (pause, keys)
}

/// Requeues all keys for the new code, starts new controllers and stops dropped ones. Returns the
/// number of keys.
fn renew(plugins: &Arc<Plugins>, slot: &Arc<Slot>, before: &Generation, now: &Generation) -> usize {
    let (before_seats, now_seats) = (before.seats.load_full(), now.seats.load_full());
    let (all_before, all_now) = (all(before, &before_seats), all(now, &now_seats));
    let mut left = HashMap::new();
    for (place, old) in &all_before {
        if now.sources(&old.controller).is_none() {
            tracing::info!(
                controller = &*old.controller.label,
                "the new generation drops or replaces the controller; stopping its workers"
            );
            // The successor has to process the keys that the old queue still knows: a deleted
            // object is in no store.
            left.insert(place, old.controller.unfinished());
            slot.retire(&old.controller);
        }
        warn_of_finalizer(old, all_now.get(place).copied());
    }
    let mut keys = 0;
    for (place, wired) in &all_now {
        let old = all_before.get(place);
        let mut names = wired.sources.names();
        if let Some(old) = old
            && old.controller.kind == wired.controller.kind
        {
            let own = names.len();
            names.extend(left.remove(place).into_iter().flatten());
            if !Arc::ptr_eq(&old.sources, &wired.sources) {
                // Objects that only the old stores show are deleted by now, and turns must see
                // that. After this, the old stores send no more events.
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
        // A controller whose workers still wait for its old stores may start with the new ones.
        if !wired.controller.has_started() {
            plugins.start_workers(slot, (*wired).clone());
        }
    }
    keys
}

/// A controller's cluster, as the number of the member, and its name.
type Place<'a> = (Option<u64>, &'a str);

/// The controllers of a generation, at home and in these member clusters.
fn all<'a>(generation: &'a Generation, seats: &'a Seats) -> HashMap<Place<'a>, &'a Wired> {
    let home = generation.controllers.iter();
    let home = home.map(|(name, wired)| ((None, name.as_str()), wired));
    let there = seats.iter().flat_map(|(number, seat)| {
        let controllers = seat.controllers.iter();
        controllers.map(|(name, wired)| ((Some(*number), name.as_str()), wired))
    });
    home.chain(there).collect()
}

/// Warns about a finalizer that the new version no longer adds, since then nothing removes it.
fn warn_of_finalizer(old: &Wired, now: Option<&Wired>) {
    let finalizer = |wired: &Wired| wired.sources.description().finalizer.clone();
    if let Some(was) = finalizer(old)
        && now.and_then(finalizer).as_ref() != Some(&was)
    {
        tracing::warn!(
            controller = &*old.controller.label,
            "the new version no longer removes the finalizer {was}: objects that carry it cannot be deleted; run `vmhost finalizers FILE --remove` with the old version"
        );
    }
}
