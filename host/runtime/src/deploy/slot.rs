//! A plugin as the operator knows it, and its present generation, which is replaced in one step: a
//! turn that has taken it keeps it to its end.
//!
//! A generation never changes, and does not know whether it is the present one.

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
use crate::wake::live::LiveReads;
use crate::wake::sources::Sources;

/// What a call sees from get to settle: code, description and stores belong together.
pub struct Generation {
    /// From 1, per plugin.
    pub number: u64,
    /// The code.
    pub plugin: Plugin,
    /// What its effects may do: what it declared, which the slot's grants cover.
    pub(crate) grants: Grants,
    /// Its controllers, by name.
    pub controllers: HashMap<String, Wired>,
    /// Opens when all calls of its policy fail.
    pub(crate) breaker: Breaker,
    /// The same of its `map-changes`, which may work while the policy fails, and fail while it
    /// works.
    pub(crate) map_breaker: Breaker,
    /// What it shares with the plugin's other generations.
    pub(crate) share: Arc<Share>,
    /// Calls that are about to start.
    starts: Starts,
}

/// A plugin's own part of what all plugins use, whichever generation runs.
pub struct Share {
    /// Takes its Events.
    pub recorder: Recorder,
    /// Sends its live reads.
    pub live: Arc<LiveReads>,
    /// Bounds the changes that it has still to map.
    pub map_buffer: Arc<MapBuffer>,
}

/// A controller of a generation: the queue that lives on across swaps, and the stores of this generation.
#[derive(Clone)]
pub struct Wired {
    /// Queue, metrics, memory of failures.
    pub controller: Arc<Controller>,
    /// What it reads.
    pub sources: Arc<Sources>,
}

impl Generation {
    /// Code and its controllers; it may do what it declared.
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

    /// A call is about to start.
    pub(super) fn begin(&self) -> Starting<'_> {
        self.starts.begin()
    }

    /// Resolves when no call is about to start on this generation. Once it was replaced, none ever
    /// will again.
    pub async fn started(&self) {
        self.starts.none().await;
    }

    /// Are these its controller of the name, and that one's stores?
    pub(crate) fn has(&self, wired: &Wired) -> bool {
        self.sources(&wired.controller)
            .is_some_and(|sources| Arc::ptr_eq(sources, &wired.sources))
    }

    /// The stores of a controller; none: this generation has no such controller, or another one of that name.
    pub(crate) fn sources(&self, controller: &Arc<Controller>) -> Option<&Arc<Sources>> {
        let wired = self.controllers.get(&controller.name)?;
        Arc::ptr_eq(&wired.controller, controller).then_some(&wired.sources)
    }

    /// What the plugin says about itself.
    pub(crate) fn description(&self) -> &Description {
        self.plugin.description()
    }
}

/// All that a swap needs.
pub(crate) struct Ready {
    pub(crate) loaded: Loaded,
    /// Its controllers, with stores that are filled.
    pub(crate) controllers: HashMap<String, Wired>,
    /// For the checks and the stores, pauses included.
    pub(crate) check: Duration,
}

/// Starts the workers of a controller, once its stores are ready.
pub(crate) trait StartWorkers: Send + Sync {
    /// Returns at once. Nothing starts if a swap has brought the controller other stores by then:
    /// those have been started for.
    fn start(&self, slot: &Arc<Slot>, wired: Wired);
}

/// A plugin as the operator knows it: a name, grants, and the generation that is current.
pub struct Slot {
    /// The name in its description, which never changes.
    pub name: String,
    /// What a new generation may ask for: what the first one declared.
    pub(crate) grants: Grants,
    /// How the last change of its file ended.
    pub last_reload: ArcSwapOption<LastReload>,
    current: ArcSwap<Generation>,
    last_number: AtomicU64,
    /// Controllers that a swap has replaced or dropped, until their last turns have ended.
    retired: Mutex<Vec<Arc<Controller>>>,
    /// The digest of the component that is compiled well, or was last, and the task that does it.
    optimising: Mutex<Option<(String, AbortHandle)>>,
}

impl Slot {
    /// A plugin with its first generation.
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

    /// A swap has replaced or dropped this controller: it gets no new keys.
    pub(crate) fn retire(&self, controller: &Arc<Controller>) {
        controller.shut_down();
        let mut retired = self.retired.lock();
        retired.retain(|other| other.queue.stats().processing > 0);
        retired.push(controller.clone());
    }

    /// Resolves when no turn of a retired controller of this name runs any more: their last keys may be its successor's first.
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

    /// Starts the task that compiles the newest generation's component well, unless one does that
    /// already. A task for another component is ended.
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

    /// A call is about to start on this generation. Until the guard drops, a swap that replaces the generation is not announced. None: it was replaced.
    pub fn begin<'a>(&self, generation: &'a Arc<Generation>) -> Option<Starting<'a>> {
        let starting = generation.begin();
        // Counted first, then compared: either the swap sees the count, or this sees the swap.
        self.is_current(generation).then_some(starting)
    }

    /// The present generation.
    pub fn current(&self) -> Arc<Generation> {
        self.current.load_full()
    }

    /// The number of the next generation.
    pub fn next_number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// From now on no turn starts on the generation before. Returns it.
    pub fn replace(&self, generation: Arc<Generation>) -> Arc<Generation> {
        self.current.swap(generation)
    }

    /// Returns whether this is the present generation.
    pub(crate) fn is_current(&self, generation: &Arc<Generation>) -> bool {
        Arc::ptr_eq(generation, &self.current.load())
    }

    /// The key comes up once more, on whichever generation is present, if that has the controller
    /// or one for the same kind in its place.
    pub(crate) fn again(&self, controller: &Controller, key: &ObjectName) {
        loop {
            let present = self.current();
            if let Some(wired) = present.controllers.get(&controller.name)
                && wired.controller.kind == controller.kind
            {
                wired.controller.queue.add_low(key.clone());
            }
            // Either the next swap finds the key in the queue, or this sees the swap.
            if self.is_current(&present) {
                return;
            }
        }
    }
}
