//! A slot: a plugin under its name, with its current generation. A swap replaces the generation in
//! one step, and a turn keeps the generation that it started with.
//!
//! A generation is immutable and does not know whether it is current.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use vmhost_cluster::Recorder;
use vmhost_core::{Description, Grants, ObjectName};
use vmhost_engine::Plugin;

use crate::controller::Controller;
use crate::controller::changes::buffer::MapBuffer;
use crate::deploy::breaker::Breaker;
use crate::deploy::last::LastReload;
use crate::deploy::loaded::Loaded;
use crate::deploy::starts::{Starting, Starts};
use crate::journal::tag::Cause;
use crate::wake::live::LiveReads;
use crate::wake::sources::Sources;

/// The code, description and stores that a turn uses from get to settle.
pub struct Generation {
    /// The load number: from 1, per plugin.
    pub number: u64,
    /// The plugin with its compiled code.
    pub plugin: Plugin,
    /// The allowed effects: those that the plugin declared, which the slot's grants cover.
    pub(crate) grants: Grants,
    /// The controllers, by name.
    pub controllers: HashMap<String, Wired>,
    /// Opens when all reconcile calls fail.
    pub(crate) breaker: Breaker,
    /// Opens when all `map-changes` calls fail. It is separate, because either kind of call may
    /// fail while the other works.
    pub(crate) map_breaker: Breaker,
    /// The parts that all generations of the plugin share.
    pub(crate) share: Arc<Share>,
    /// The calls that are about to start.
    starts: Starts,
}

/// A plugin's own share of the host's services, used by all its generations.
pub struct Share {
    /// Records the plugin's Events.
    pub recorder: Recorder,
    /// Sends the plugin's live reads.
    pub live: Arc<LiveReads>,
    /// Limits the bytes of the plugin's unmapped changes.
    pub map_buffer: Arc<MapBuffer>,
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

impl Generation {
    /// A generation of this plugin. Its grants are what the plugin declared.
    pub fn new(
        number: u64,
        plugin: Plugin,
        controllers: HashMap<String, Wired>,
        share: Arc<Share>,
    ) -> Self {
        Self {
            number,
            grants: Grants::of(plugin.description()),
            plugin,
            controllers,
            breaker: Breaker::default(),
            map_breaker: Breaker::default(),
            share,
            starts: Starts::default(),
        }
    }

    /// Counts a call that is about to start, until the guard drops.
    pub(super) fn begin(&self) -> Starting<'_> {
        self.starts.begin()
    }

    /// Resolves when no call is about to start on this generation. After the generation was
    /// replaced, no further call can be.
    pub async fn started(&self) {
        self.starts.none().await;
    }

    /// Returns whether this generation has this controller with these stores.
    pub(crate) fn has(&self, wired: &Wired) -> bool {
        self.sources(&wired.controller)
            .is_some_and(|sources| Arc::ptr_eq(sources, &wired.sources))
    }

    /// The stores of a controller. `None` if this generation has no controller of the name, or
    /// another one.
    pub(crate) fn sources(&self, controller: &Arc<Controller>) -> Option<&Arc<Sources>> {
        let wired = self.controllers.get(&controller.name)?;
        Arc::ptr_eq(&wired.controller, controller).then_some(&wired.sources)
    }

    /// The plugin's description.
    pub(crate) fn description(&self) -> &Description {
        self.plugin.description()
    }
}

/// Everything that a swap needs.
pub(crate) struct Ready {
    pub(crate) loaded: Loaded,
    /// The controllers, with filled stores.
    pub(crate) controllers: HashMap<String, Wired>,
    /// The time for the checks and for filling the stores, pauses included.
    pub(crate) check: Duration,
}

/// Starts the workers of a controller as soon as its stores are ready.
pub(crate) trait StartWorkers: Send + Sync {
    /// Returns at once. If a swap gives the controller other stores before these are ready, nothing
    /// starts, since the swap starts the workers itself.
    fn start(&self, slot: &Arc<Slot>, wired: Wired);
}

/// A plugin's name, its grants, and its current generation.
pub struct Slot {
    /// The name in the plugin's description, which never changes.
    pub name: String,
    /// The rights that a new generation may ask for: what the first one declared.
    pub(crate) grants: Grants,
    /// The result of the last change of the plugin's file.
    pub last_reload: ArcSwapOption<LastReload>,
    current: ArcSwap<Generation>,
    last_number: AtomicU64,
    /// Controllers that a swap replaced or dropped, until their last turns end.
    retired: Mutex<Vec<Arc<Controller>>>,
    /// The digest of the component that the optimising compiler took last, and its task.
    optimising: Mutex<Option<(String, AbortHandle)>>,
}

impl Slot {
    /// A slot with its first generation.
    pub fn new(first: Generation) -> Self {
        let description = first.plugin.description();
        Self {
            name: description.name.clone(),
            grants: Grants::of(description),
            last_reload: ArcSwapOption::empty(),
            last_number: AtomicU64::new(first.number),
            current: ArcSwap::from_pointee(first),
            retired: Mutex::default(),
            optimising: Mutex::default(),
        }
    }

    /// Shuts down a controller that a swap has replaced or dropped.
    pub(crate) fn retire(&self, controller: &Arc<Controller>) {
        controller.shut_down();
        let mut retired = self.retired.lock();
        retired.retain(|other| other.queue.stats().processing > 0);
        retired.push(controller.clone());
    }

    /// Resolves when no turn of a retired controller of this name runs any more. A new controller
    /// waits for this, because the retired controller's last keys may be its first.
    pub(crate) async fn retired_have_ended(&self, name: &str) {
        loop {
            let next = self
                .retired
                .lock()
                .iter()
                .find(|other| other.name == name)
                .cloned();
            let Some(controller) = next else {
                return;
            };
            controller.queue.drained().await;
            self.retired
                .lock()
                .retain(|other| !Arc::ptr_eq(other, &controller));
        }
    }

    /// Starts the task that compiles optimised code for the newest generation's component, unless
    /// that task already runs. Aborts a task for another component.
    pub(crate) fn optimising(&self, component: &str, start: impl FnOnce() -> Option<AbortHandle>) {
        let mut newest = self.optimising.lock();
        if let Some((of, task)) = &*newest
            && of == component
            && !task.is_finished()
        {
            return;
        }
        if let Some((_, older)) = newest.take() {
            older.abort();
        }
        *newest = start().map(|task| (component.to_owned(), task));
    }

    /// Counts a call that is about to start on this generation. While the guard lives, a swap that
    /// replaces the generation is not announced. Returns `None` if the generation was already
    /// replaced.
    pub fn begin<'a>(&self, generation: &'a Arc<Generation>) -> Option<Starting<'a>> {
        let starting = generation.begin();
        // The call is counted before the generation is compared: either the swap sees the count, or
        // this function sees the swap.
        self.is_current(generation).then_some(starting)
    }

    /// The current generation.
    pub fn current(&self) -> Arc<Generation> {
        self.current.load_full()
    }

    /// Reserves the number of the next generation.
    pub fn next_number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Makes a generation current and returns the one before. From now on no turn starts on the old
    /// one.
    pub fn replace(&self, generation: Arc<Generation>) -> Arc<Generation> {
        self.current.swap(generation)
    }

    /// Returns whether this is the current generation.
    pub(crate) fn is_current(&self, generation: &Arc<Generation>) -> bool {
        Arc::ptr_eq(generation, &self.current.load())
    }

    /// Enqueues the key once more in the low lane, on the current generation, if that has this
    /// controller or a successor for the same kind.
    pub(crate) fn again(&self, controller: &Controller, key: &ObjectName) {
        loop {
            let present = self.current();
            if let Some(wired) = present.controllers.get(&controller.name)
                && wired.controller.kind == controller.kind
            {
                let queue = wired.controller.queue.tagged(Cause::Swap.into());
                queue.add_low(key.clone());
            }
            // Either the next swap finds the key in the queue, or this function sees the swap.
            if self.is_current(&present) {
                return;
            }
        }
    }
}
