//! Runs the canaries of a plugin: puts a candidate into the line-up, raises its weight step by
//! step, watches it, and puts its keys back when it is aborted.
//!
//! ```text
//! start    check that the versions fit -> line-up with the candidate -> announce -> give it keys
//!   |
//! follow   each second: still leading? a warning? the next step, or the order to promote
//!   |
//! settle   aborted: announce -> forget the candidate's failures -> give its keys back
//! ```
//! The task that swaps the plugin starts and promotes, so that no swap comes between. Anyone may
//! abort ([`Slot::abort`]): that takes the candidate out at once, and the task that follows the
//! canary does the rest. This module must not know what a turn does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use vmhost_core::ObjectName;

use crate::canary::end::{Abort, End};
use crate::canary::fit::{Misfit, fit};
use crate::canary::keys::CandidateKeys;
use crate::canary::order::{Start, Warned};
use crate::canary::steps::{Next, percent};
use crate::canary::warned::{Names, names, strange};
use crate::canary::weight::Weight;
use crate::canary::{About, Canary, Ended, Stage, Step};
use crate::deploy::orders::{Order, OrderError};
use crate::deploy::plugins::Plugins;
use crate::deploy::slot::{Candidate, Generation, Lineup, Slot, Wired};
use crate::journal::tag::Cause;

/// How often a canary is looked at.
const TICK: Duration = Duration::from_secs(1);

/// A version that is tried from now on.
pub(crate) struct Started {
    /// Its generation.
    pub(crate) generation: Arc<Generation>,
    /// Its component.
    pub(crate) component: Vec<u8>,
}

/// The task that follows a canary.
struct Watch {
    plugins: Arc<Plugins>,
    slot: Arc<Slot>,
    canary: Arc<Canary>,
    generation: Arc<Generation>,
    /// The line-up of the present step.
    lineup: Arc<Lineup>,
    /// The number of the present step, from 0.
    step: usize,
    /// When the next one comes. `None` if an operator decides.
    due: Option<Instant>,
    warned: Warned,
    /// The warnings from before the canary.
    known: Names,
}

/// Puts a loaded version into the line-up as the candidate, and follows it. Only the task that
/// swaps the plugin may call this.
pub(crate) async fn start(
    plugins: &Arc<Plugins>,
    slot: &Arc<Slot>,
    start: Start,
) -> Result<Started, OrderError> {
    may_start(plugins, slot)?;
    let Start {
        loaded,
        steps,
        warned,
    } = start;
    let present = slot.lineup();
    let live = &present.live;
    let generation = generation(plugins, slot, live, loaded.plugin).map_err(unfit)?;
    let known = names(&warned());
    let keys = generation
        .controllers
        .iter()
        .filter(|(_, wired)| !wired.controller.is_timer())
        .map(|(name, wired)| {
            let keys = CandidateKeys::new(wired.controller.label.clone());
            (name.clone(), Arc::new(keys))
        });
    let about = About {
        plugin: slot.name.clone(),
        version: generation.description().version.clone(),
        generation: generation.number,
        digest: generation.plugin.digest().to_owned(),
        live: live.number,
        live_digest: live.plugin.digest().to_owned(),
        since: SystemTime::now(),
    };
    let keys: BTreeMap<_, _> = keys.collect();
    let component = loaded.bytes;
    let canary = Canary::new(about, steps, keys, component.clone());
    let mut watch = Watch {
        plugins: plugins.clone(),
        slot: slot.clone(),
        canary: canary.clone(),
        generation: generation.clone(),
        lineup: present.clone(),
        step: 0,
        due: None,
        warned,
        known,
    };
    slot.canary.store(Some(canary.clone()));
    if !watch.take(canary.steps.first()).await {
        slot.abort(&canary, Abort::NewBytes);
        canary.finish();
        let changed = format!("the versions of {} have just changed", slot.name);
        return Err(OrderError::Refused(changed));
    }
    plugins.follow(watch.follow());
    Ok(Started {
        generation,
        component,
    })
}

/// Returns an error if no canary can start now.
fn may_start(plugins: &Plugins, slot: &Slot) -> Result<(), OrderError> {
    let refused = |why: String| Err(OrderError::Refused(why));
    if plugins.is_stopping() {
        return Err(OrderError::Dropped);
    }
    if !plugins.leadership.is_leading() {
        return refused("this vmhost is a standby: start the canary on the leader".to_owned());
    }
    match slot.canary.load_full() {
        Some(canary) if canary.ended().is_none() => refused(format!(
            "a canary of {} runs already (generation {}): promote or abort it first",
            slot.name, canary.about.generation
        )),
        Some(canary) if canary.stage() != Stage::Over => refused(format!(
            "the last canary of {} is just ending: try again",
            slot.name
        )),
        _ => Ok(()),
    }
}

/// Makes a generation that shares everything but the code with the live one.
fn generation(
    plugins: &Plugins,
    slot: &Slot,
    live: &Generation,
    plugin: vmhost_engine::Plugin,
) -> Result<Arc<Generation>, Misfit> {
    if plugin.digest() == live.plugin.digest() {
        return Err(Misfit::Same);
    }
    fit(live.description(), plugin.description())?;
    let controllers = plugins.wire(plugin.description(), Some(live), &live.share);
    // The descriptions are equal, so that queues and stores are the live version's own.
    if let Some(other) = controllers.values().find(|wired| !live.has(wired)) {
        return Err(Misfit::Differs {
            controller: other.controller.name.clone(),
            what: "queue",
        });
    }
    let number = slot.next_number();
    let share = live.share.clone();
    let generation = Generation::new(number, plugin, controllers, share);
    Ok(Arc::new(generation))
}

fn unfit(misfit: Misfit) -> OrderError {
    OrderError::Unfit(Box::new(misfit))
}

impl Watch {
    /// Follows the canary to its end.
    async fn follow(mut self) {
        let canary = self.canary.clone();
        loop {
            let tick = Instant::now() + TICK;
            let next = self.due.map_or(tick, |due| due.min(tick));
            tokio::select! {
                biased;
                () = canary.until(Stage::Ending) => break,
                () = tokio::time::sleep_until(next) => self.look().await,
            }
        }
        self.settle().await;
    }

    /// Looks at the canary: aborts it, or goes on with the next step.
    async fn look(&mut self) {
        if !self.plugins.leadership.is_leading() {
            self.slot.abort(&self.canary, Abort::LeaderLost);
            return;
        }
        let turns = |label: &str, key: &str| {
            let mut controllers = self.canary.controllers();
            let keys = controllers.find(|(_, keys)| &*keys.label == label);
            keys.map_or(0, |(_, keys)| keys.turns(key))
        };
        if let Some(breach) = strange(&(self.warned)(), &self.known, turns) {
            self.slot.abort(&self.canary, Abort::Score(breach));
            return;
        }
        if self.due.is_some_and(|due| due <= Instant::now()) {
            self.next_step().await;
        }
    }

    async fn next_step(&mut self) {
        match self.canary.steps.next(self.step) {
            Next::Weight(permille) => {
                self.step += 1;
                // If it fails, the canary has ended.
                self.take(permille).await;
            }
            Next::Promote => {
                let generation = Some(self.generation.number);
                let order = |answer| Order::Promote { generation, answer };
                let asked = tokio::select! {
                    biased;
                    // Promoted; or aborted while the order waits for another one, as for a rollback
                    // that fills stores: its keys do not wait.
                    () = self.canary.until(Stage::Ending) => return,
                    asked = self.slot.orders.ask(order) => asked,
                };
                match asked {
                    Ok(()) => {}
                    Err(error @ (OrderError::Busy | OrderError::Refused(_))) => {
                        tracing::debug!(plugin = self.slot.name, "not promoted: {error}");
                        self.due = Some(Instant::now() + TICK);
                    }
                    Err(error) => {
                        tracing::warn!(plugin = self.slot.name, "not promoted: {error}");
                        self.due = None;
                    }
                }
            }
            Next::Stay => self.due = None,
        }
    }

    /// Gives the candidate this weight: announces the line-up, and gives the candidate the keys
    /// that are new to it. Returns `false` if the canary has ended meanwhile.
    async fn take(&mut self, permille: u16) -> bool {
        let (weight, canary) = (self.canary.weight(permille), &self.canary);
        let before = self.lineup.candidate.as_ref();
        let before = before.map(|candidate| candidate.weight);
        let mut taken = Vec::new();
        for (name, keys) in canary.controllers() {
            if let Some(wired) = self.generation.controllers.get(name) {
                let names = objects(wired, &weight, before.as_ref());
                keys.note_troubled(wired.controller.memory.forgive_these(&names));
                taken.push((wired, names));
            }
        }
        let candidate = Candidate {
            generation: self.generation.clone(),
            weight,
            canary: canary.clone(),
        };
        let lineup = Lineup::with(self.lineup.live.clone(), candidate);
        let Some(lineup) = self.slot.try_out(&self.lineup, &lineup) else {
            return false;
        };
        if canary.ended().is_some() {
            // It was aborted before its candidate was in any line-up to be taken out of.
            self.slot.take_out(canary);
        }
        self.lineup.started().await;
        self.lineup = lineup;
        let mut count = 0;
        for (wired, names) in taken {
            count += names.len();
            wired.controller.take_over(names);
        }
        let every = canary.steps.every();
        let stays = canary.steps.next(self.step) == Next::Stay;
        let every = every.filter(|_| !stays);
        self.due = every.map(|every| Instant::now() + every);
        canary.steps_to(Step {
            permille,
            next: every.and_then(|every| SystemTime::now().checked_add(every)),
        });
        tracing::info!(
            plugin = self.slot.name,
            generation = self.generation.number,
            "canary {}: generation {} runs {} of the objects (keys requeued: {count}), generation {} the others",
            self.slot.name,
            self.generation.number,
            percent(permille),
            self.lineup.live.number
        );
        true
    }

    /// The canary has ended. After an abort, gives the candidate's keys back to the live version.
    async fn settle(&self) {
        let (canary, slot) = (&self.canary, &self.slot);
        match canary.is_aborted() {
            true => self.put_back().await,
            false => canary.until(Stage::Over).await,
        }
        canary.controllers().for_each(|(_, keys)| drop(keys.end()));
        drop(canary.take_component());
        if let Some(ended) = canary.ended() {
            let labels = [slot.name.as_str(), ended.how.word()];
            let ends = &self.plugins.metrics.canary.ends;
            ends.with_label_values(&labels).inc();
        }
        canary.finish();
    }

    /// Gives the keys of an aborted candidate back to the live version, and announces that.
    async fn put_back(&self) {
        let (canary, slot) = (&self.canary, &self.slot);
        // Whoever aborted the canary may not have come so far yet.
        slot.take_out(canary);
        // After this, no call starts on the candidate any more.
        self.lineup.started().await;
        let mut count = 0;
        for (name, keys) in canary.controllers() {
            if let Some(wired) = self.generation.controllers.get(name) {
                let back = keys.end();
                count += back.len();
                let of = (name, &wired.controller.kind);
                slot.again(of, &back, Cause::Canary, |controller| {
                    controller.forgive_these(&back);
                });
            }
        }
        if let Some(Ended {
            how: End::Aborted(why),
            ..
        }) = canary.ended()
        {
            tracing::warn!(
                plugin = slot.name,
                generation = self.generation.number,
                "canary {} aborted: {why}; generation {} runs all objects (keys requeued: {count}, objects that the candidate wrote: {}, see `vmhost canary status {}`)",
                slot.name,
                slot.current().number,
                canary.written_count(),
                slot.name
            );
        }
    }
}

/// The keys of objects that a weight takes and the one before did not.
fn objects(wired: &Wired, weight: &Weight, before: Option<&Weight>) -> Vec<ObjectName> {
    let mut names = wired.sources.names();
    names.retain(|name| {
        wired.sources.snapshot(name).is_some_and(|object| {
            let uid = object.uid();
            weight.takes(uid) && before.is_none_or(|before| !before.takes(uid))
        })
    });
    names
}
