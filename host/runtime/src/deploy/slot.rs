//! A slot: a plugin under its name, with the generations that run now. A swap replaces the live
//! generation in one step, and a turn keeps the generation that it started with.
//!
//! A generation is immutable and does not know whether it is current. This module must not know
//! what a turn does, nor when a plugin is swapped.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use vmhost_cluster::Recorder;
use vmhost_core::{
    ControllerDescription, Description, Grants, Gvk, ObjectName, Permission, Watched,
};
use vmhost_engine::Plugin;

use crate::canary::Canary;
use crate::canary::end::{Abort, End};
use crate::config::terms::Terms;
use crate::controller::Controller;
use crate::controller::changes::buffer::MapBuffer;
use crate::deploy::branch::Branch;
use crate::deploy::breaker::Breaker;
use crate::deploy::last::LastReload;
use crate::deploy::lineup;
use crate::deploy::loaded::Loaded;
use crate::deploy::orders::Orders;
use crate::deploy::probation::Probation;
use crate::deploy::starts::Starting;
use crate::journal::tag::Cause;
use crate::outgoing::{Granted, HttpRequests};
use crate::shadow::place::Place;
use crate::wake::live::LiveReads;
use crate::wake::sources::Sources;

mod optimising;
mod places;
mod retired;

/// The code, description and stores that a turn uses from get to settle.
pub struct Generation {
    /// The load number: from 1, per plugin.
    pub number: u64,
    /// The plugin with its compiled code. A rollback makes a new generation that shares the plugin
    /// of an older one.
    pub plugin: Arc<Plugin>,
    /// The terms that the plugin runs under.
    pub(crate) terms: Arc<Terms>,
    /// The allowed effects: those that the plugin declared, which the slot's grants cover, or those
    /// of them that its terms name.
    pub(crate) grants: Grants,
    /// The controllers at home, by name.
    pub controllers: HashMap<String, Wired>,
    /// The controllers in member clusters, which come and go.
    pub(crate) seats: ArcSwap<Seats>,
    /// What webhooks and conversions read, by their names.
    pub(crate) readers: Readers,
    /// Places for reviews that are being answered.
    pub(crate) reviews: Semaphore,
    /// Opens when all reconcile calls fail.
    pub(crate) breaker: Breaker,
    /// Opens when all `map-changes` calls fail. It is separate, because either kind of call may
    /// fail while the other works.
    pub(crate) map_breaker: Breaker,
    /// The parts that all generations of the plugin share.
    pub(crate) share: Arc<Share>,
}

/// The maximum number of reviews that a generation answers at once: a quarter of the instances that
/// a plugin may have, so that a flood of requests leaves the others to its controllers.
const REVIEWS: usize = 128;

/// The stores of each webhook and conversion of a generation, by name.
pub(crate) type Readers = HashMap<String, Arc<Sources>>;

/// The generations that a slot runs at one time.
pub type Lineup = lineup::Lineup<Generation, Canary>;

/// The candidate of a canary: a generation that runs a share of the objects.
pub(crate) type Candidate = lineup::Candidate<Generation, Canary>;

/// A plugin's own share of the host's services, used by all its generations.
pub struct Share {
    /// Records the plugin's Events.
    pub recorder: Recorder,
    /// Sends the plugin's live reads.
    pub live: Arc<LiveReads>,
    /// Sends the plugin's HTTP requests.
    pub http: HttpRequests,
    /// Limits the bytes of the plugin's unmapped changes.
    pub map_buffer: Arc<MapBuffer>,
    /// The kinds that any of the plugin's generations may read or write.
    pub handled: Mutex<BTreeSet<Gvk>>,
}

/// A controller of a generation: the queue, which survives swaps, and the stores of this
/// generation.
#[derive(Clone)]
pub struct Wired {
    /// The queue, the metrics and the memory of failing keys.
    pub controller: Arc<Controller>,
    /// The stores that the controller reads.
    pub sources: Arc<Sources>,
}

/// A generation's controllers in one member cluster.
#[derive(Clone)]
pub(crate) struct Seat {
    /// What they share.
    pub(crate) branch: Arc<Branch>,
    /// The controllers, by name.
    pub(crate) controllers: HashMap<String, Wired>,
}

/// A generation's controllers in member clusters, by the number of the member.
pub(crate) type Seats = BTreeMap<u64, Seat>;

/// The kinds that a plugin may read or write.
pub(crate) fn kinds(description: &Description) -> impl Iterator<Item = Gvk> {
    let controllers = description.controllers.iter();
    let read = controllers.flat_map(ControllerDescription::kinds);
    let read = read.map(|(_, watched)| watched);
    let read = read.chain(description.reviews().flat_map(|(_, _, reads)| reads));
    let read = read.map(Watched::gvk);
    read.chain(description.permissions.iter().map(Permission::gvk))
}

impl Generation {
    /// A generation of this plugin. Its grants are what the plugin declared.
    pub fn new(
        number: u64,
        plugin: impl Into<Arc<Plugin>>,
        controllers: HashMap<String, Wired>,
        share: Arc<Share>,
    ) -> Self {
        let plugin: Arc<Plugin> = plugin.into();
        let description = plugin.description();
        share.handled.lock().extend(kinds(description));
        Self {
            number,
            terms: Arc::default(),
            grants: Grants::of(description),
            plugin,
            controllers,
            seats: ArcSwap::default(),
            readers: Readers::new(),
            reviews: Semaphore::new(REVIEWS),
            breaker: Breaker::default(),
            map_breaker: Breaker::default(),
            share,
        }
    }

    /// This generation, under these terms.
    #[must_use]
    pub(crate) fn under(mut self, terms: Arc<Terms>) -> Self {
        if let Some(permissions) = &terms.permissions {
            self.grants = self.grants.narrowed(permissions.clone());
        }
        self.terms = terms;
        self
    }

    /// This generation, with what its webhooks and conversions read.
    #[must_use]
    pub(crate) fn with_readers(mut self, readers: Readers) -> Self {
        self.readers = readers;
        self
    }

    /// The HTTP requests that its calls may send.
    pub(crate) fn granted(&self) -> Granted<'_> {
        Granted {
            grants: &self.description().http,
            terms: &self.terms,
        }
    }

    /// Resolves when one of the circuit breakers opens, or at once if one has opened since the last
    /// call of this function.
    pub(crate) async fn breaker_opened(&self) {
        tokio::select! {
            () = self.breaker.opened() => {}
            () = self.map_breaker.opened() => {}
        }
    }

    /// The plugin's description.
    pub(crate) fn description(&self) -> &Description {
        self.plugin.description()
    }
}

/// Everything that a swap needs.
pub(crate) struct Ready {
    pub(crate) loaded: Loaded<Arc<Plugin>>,
    /// The terms that the new generation runs under.
    pub(crate) terms: Arc<Terms>,
    /// The controllers at home, with filled stores.
    pub(crate) controllers: HashMap<String, Wired>,
    /// The controllers in member clusters, as far as they were wired before the swap.
    pub(crate) seats: Seats,
    /// What webhooks and conversions read, with filled stores.
    pub(crate) readers: Readers,
    /// The time for the checks and for filling the stores, pauses included.
    pub(crate) check: Duration,
}

/// Starts the workers of a controller as soon as its stores are ready.
pub(crate) trait StartWorkers: Send + Sync {
    /// Returns at once. If a swap gives the controller other stores before these are ready, nothing
    /// starts, since the swap starts the workers itself.
    fn start(&self, slot: &Arc<Slot>, wired: Wired);

    /// Drops what the workers shared in the member cluster of this number, which was left.
    fn forget(&self, member: u64);
}

/// A plugin's name, its grants, and the generations that run now.
pub struct Slot {
    /// The name in the plugin's description, which never changes.
    pub name: String,
    /// The rights that a new generation may ask for: what the first one declared.
    pub(crate) grants: Grants,
    /// The result of the last change of the plugin's file.
    pub last_reload: ArcSwapOption<LastReload>,
    /// The channel to the task that swaps the plugin.
    pub(crate) orders: Orders,
    /// The place where turns are handed to the plugin's shadow.
    pub(crate) shadow: Place,
    /// The probation of the current generation, for a short time after its swap.
    pub(crate) probation: Probation,
    lineups: lineup::Lineups<Generation, Canary>,
    /// The canary that runs, or the last one.
    pub(crate) canary: ArcSwapOption<Canary>,
    last_number: AtomicU64,
    /// Held while the controllers in member clusters change, or a generation replaces another.
    pub(crate) seating: Mutex<()>,
    /// Controllers that a swap replaced or dropped, until their last turns end.
    retired: Mutex<Vec<Arc<Controller>>>,
    /// The components that the optimising compiler works on, by digest, each with its task.
    optimising: Mutex<Vec<(String, AbortHandle)>>,
}

impl Slot {
    /// A slot with its first generation.
    pub fn new(first: Generation) -> Self {
        let description = first.plugin.description();
        Self {
            name: description.name.clone(),
            grants: Grants::of(description),
            last_reload: ArcSwapOption::empty(),
            orders: Orders::default(),
            shadow: Place::default(),
            probation: Probation::default(),
            last_number: AtomicU64::new(first.number),
            seating: Mutex::default(),
            lineups: lineup::Lineups::new(Arc::new(first)),
            canary: ArcSwapOption::empty(),
            retired: Mutex::default(),
            optimising: Mutex::default(),
        }
    }

    /// Counts a call that is about to start under this line-up. While the guard lives, a newer
    /// line-up is not announced. Returns `None` if the line-up was already replaced.
    pub fn begin<'a>(&self, lineup: &'a Arc<Lineup>) -> Option<Starting<'a>> {
        self.lineups.begin(lineup)
    }

    /// The generations that run now.
    pub fn lineup(&self) -> Arc<Lineup> {
        self.lineups.present()
    }

    /// The live generation.
    pub fn current(&self) -> Arc<Generation> {
        self.lineup().live.clone()
    }

    /// Reserves the number of the next generation.
    pub fn next_number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Makes a generation the only one, and returns the line-up before. No turn starts under that
    /// any more.
    pub fn replace(&self, generation: Arc<Generation>) -> Arc<Lineup> {
        self.lineups.replace(Lineup::alone(generation))
    }

    /// Replaces the line-up `present` by one with a candidate. Returns the new one, or `None` if
    /// `present` has been replaced already.
    pub(crate) fn try_out(&self, present: &Arc<Lineup>, lineup: &Lineup) -> Option<Arc<Lineup>> {
        self.lineups.replace_if(present, lineup)
    }

    /// Aborts a canary: no turn starts on its candidate any more, and no running turn of the
    /// candidate sends its first write. Returns `false` if the end of the canary was decided
    /// before.
    pub(crate) fn abort(&self, canary: &Arc<Canary>, why: Abort) -> bool {
        let is_first = canary.end(End::Aborted(why));
        if is_first {
            self.take_out(canary);
        }
        is_first
    }

    /// Takes the candidate of a canary out of the line-up, if it is in it.
    pub(crate) fn take_out(&self, canary: &Arc<Canary>) {
        self.lineups.take_out(canary);
    }

    /// Returns whether turns may start on this generation.
    pub(crate) fn runs(&self, generation: &Arc<Generation>) -> bool {
        self.lineup().has(generation)
    }

    /// Enqueues keys again, in the low lane, if the live generation has a controller of the same
    /// name, cluster and kind. `prepare` is called with that controller first.
    pub(crate) fn again(
        &self,
        controller: &Controller,
        keys: &[ObjectName],
        cause: Cause,
        prepare: impl Fn(&Controller),
    ) {
        loop {
            let present = self.current();
            if let Some(wired) = present.successor(controller)
                && wired.controller.kind == controller.kind
            {
                prepare(&wired.controller);
                let queue = wired.controller.queue.tagged(cause.into());
                queue.add_low_all(keys.iter().cloned());
            }
            // A swap that comes after the keys were added finds them in the queue; one that came
            // before shows here.
            if Arc::ptr_eq(&present, &self.current()) {
                return;
            }
        }
    }
}
