//! Runs the canaries of a plugin: puts a candidate into the line-up, raises its weight step by
//! step, watches it, and puts its keys back when it is aborted.
//!
//! ```text
//! start    check that the versions fit -> line-up with the candidate -> announce -> give it keys
//!   |
//! follow   the leadership is lost: abort. Each second: a warning? the next step, or the order to
//!   |      promote
//!   |
//! settle   aborted: announce -> forget the candidate's failures -> give its keys back
//! ```
//! Only the task that swaps the plugin starts and promotes a canary, so that no swap comes between.
//! Any task may abort it ([`Slot::abort`]): an abort takes the candidate out at once, and the task
//! that follows the canary does the rest. This module must not know what a turn does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::canary::end::Abort;
use crate::canary::fit::{Misfit, fit};
use crate::canary::keys::CandidateKeys;
use crate::canary::order::{Start, Warned};
use crate::canary::steps::Next;
use crate::canary::warned::{Names, names, strange};
use crate::canary::{About, Canary, Stage};
use crate::config::terms::Terms;
use crate::deploy::orders::{Order, OrderError};
use crate::deploy::plugins::Plugins;
use crate::deploy::slot::{Generation, Lineup, Slot};

mod end;
mod take;

/// The target of all log lines about canaries, which a user sees.
const TARGET: &str = module_path!();

/// The pause between two looks at a canary.
const TICK: Duration = Duration::from_secs(1);

/// A version that is being tried from now on.
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
    /// When the next step comes. `None` if an operator decides.
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
        tuning,
        warned,
        terms,
    } = start;
    let present = slot.lineup();
    let live = &present.live;
    let generation = generation(plugins, slot, live, loaded.plugin, terms).map_err(unfit)?;
    if let Some(settings) = &generation.terms.settings {
        // Before the first call that may tell them.
        plugins.loader.settings.hide(&slot.name, settings);
    }
    let known = names(&warned());
    let keys = generation
        .controllers
        .iter()
        .filter(|(_, wired)| !wired.controller.is_timer())
        .map(|(name, wired)| {
            let keys = CandidateKeys::new(wired.controller.label.clone());
            (name.clone(), Arc::new(keys))
        });
    let about = about(slot, &generation, live);
    let keys: BTreeMap<_, _> = keys.collect();
    let component = loaded.bytes;
    let canary = Canary::new(about, steps, tuning, keys, component.clone());
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

fn about(slot: &Slot, candidate: &Generation, live: &Generation) -> About {
    About {
        plugin: slot.name.clone(),
        version: candidate.description().version.clone(),
        generation: candidate.number,
        digest: candidate.plugin.digest().to_owned(),
        live: live.number,
        live_digest: live.plugin.digest().to_owned(),
        since: SystemTime::now(),
    }
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

/// Makes a generation that shares everything but the code with the live generation.
fn generation(
    plugins: &Plugins,
    slot: &Slot,
    live: &Generation,
    plugin: vmhost_engine::Plugin,
    terms: Arc<Terms>,
) -> Result<Arc<Generation>, Misfit> {
    if plugin.digest() == live.plugin.digest() && terms == live.terms {
        return Err(Misfit::Same);
    }
    fit(live.description(), plugin.description())?;
    let controllers = plugins.wire(plugin.description(), &terms, Some(live), &live.share);
    // Because the descriptions are equal, queues and stores have to be those of the live version.
    if let Some(other) = controllers.values().find(|wired| !live.has(wired)) {
        return Err(Misfit::Differs {
            controller: other.controller.name.clone(),
            what: "queue",
        });
    }
    let number = slot.next_number();
    let share = live.share.clone();
    let generation = Generation::new(number, plugin, controllers, share).under(terms);
    // Reviews go to the live version alone, and to the candidate when it is promoted.
    Ok(Arc::new(generation.with_readers(live.readers.clone())))
}

fn unfit(misfit: Misfit) -> OrderError {
    OrderError::Unfit(Box::new(misfit))
}

impl Watch {
    /// Follows the canary to its end.
    async fn follow(mut self) {
        let (canary, leadership) = (self.canary.clone(), self.plugins.leadership.clone());
        loop {
            let tick = Instant::now() + TICK;
            let next = self.due.map_or(tick, |due| due.min(tick));
            tokio::select! {
                biased;
                () = canary.until(Stage::Ending) => break,
                () = leadership.changes_from(true) => {
                    self.slot.abort(&canary, Abort::LeaderLost);
                }
                () = tokio::time::sleep_until(next) => self.look().await,
            }
        }
        self.settle().await;
    }

    /// Looks at the canary: aborts it, or goes on with the next step.
    async fn look(&mut self) {
        let turns = |label: &str, key: &str| {
            let mut controllers = self.canary.controllers();
            let keys = controllers.find(|(_, keys)| &*keys.label == label);
            keys.map_or(0, |(_, keys)| keys.turns(key))
        };
        if self.canary.rules.warnings
            && let Some(breach) = strange(&(self.warned)(), &self.known, turns)
        {
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
                // If this fails, the canary has ended.
                self.take(permille).await;
            }
            Next::Promote => {
                let generation = Some(self.generation.number);
                let order = |answer| Order::Promote { generation, answer };
                let asked = tokio::select! {
                    biased;
                    // The canary may end here: because this order promotes it, or because it is
                    // aborted while the order waits for another one, such as a rollback that fills
                    // stores. Then its keys do not wait for that other order.
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
}
