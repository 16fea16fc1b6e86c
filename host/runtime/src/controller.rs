//! One controller: its workqueue, the events that wake its keys, and its memory of failing keys. A
//! controller outlives a swap of its plugin; the code and the stores belong to the generation.
//!
//! Only names go through the queue: a turn reads the newest snapshot from the store. `waking` drops
//! the type of an event. This module must not know workers, or how a turn runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use tokio::time::Instant;
use vmhost_core::{ControllerDescription, Description, Gvk, ObjectName, Timer};
use vmhost_queue::{BackOff, Bucket, Config, Queue};

pub mod changes;
pub(crate) mod memory;
mod waking;

use crate::controller::changes::Mapper;
use crate::controller::changes::buffer::MapBuffer;
use crate::controller::memory::{Awaited, KeyMemory};
use crate::journal::tag::{Cause, WakeTag};
use crate::journal::wakes::WakeLog;
use crate::observe::metrics::controller::{ControllerMetrics, controller_label};
use crate::rights::access::Required;
use crate::site::member::Member;

/// The number of workers if neither the description nor a flag sets one.
const WORKERS: u32 = 4;

/// A workqueue with its settings, metrics and memory.
pub struct Controller {
    /// The name in the plugin's description.
    pub(crate) name: String,
    /// The name in logs and records; in a member cluster with `@` and the cluster's name behind it.
    pub(crate) label: Arc<str>,
    /// The kind of the objects that are the controller's keys.
    pub kind: Gvk,
    /// The field manager: `vmhost/<plugin>/<controller>`.
    pub(crate) field_manager: String,
    /// How many keys are processed at once.
    pub(crate) workers: u32,
    /// The retry limits of a key.
    pub(crate) limits: Limits,
    /// The workqueue of keys.
    pub queue: Queue<ObjectName, WakeTag>,
    /// The controller's metrics.
    pub(crate) metrics: ControllerMetrics,
    /// The state that is kept per key between turns.
    pub(crate) memory: Arc<KeyMemory>,
    /// Changes that wait for the plugin's own mapping function.
    pub(crate) mapper: Mapper,
    /// Keeps the changes that woke keys.
    wakes: Arc<WakeLog>,
    clock: Option<Clock>,
    settings: Settings,
    started: AtomicBool,
    told: Once,
    /// The cluster of its keys; `None` at home.
    pub(crate) member: Option<Arc<Member>>,
}

/// The retry limits of a controller's keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The number of retries before a key is given up. `None` retries forever.
    pub(crate) max_retries: Option<u32>,
    /// The longest back-off of a key, and the pause after a terminal failure.
    pub(crate) cap: Duration,
}

/// The settings that a queue is built from. A swap that changes one of them starts a new queue.
#[derive(Clone, Debug, PartialEq)]
struct Settings {
    kind: Gvk,
    workers: u32,
    back_off: BackOff,
    bucket: Option<Bucket>,
    max_retries: Option<u32>,
    timer: Option<Timer>,
}

/// The clock of a timer controller. Its key comes up at multiples of the period since the start, so
/// that a long turn does not shift the later ones.
#[derive(Clone, Copy, Debug)]
struct Clock {
    start: Instant,
    period: Duration,
}

impl Clock {
    fn next(&self) -> Duration {
        let into = self.start.elapsed().as_nanos() % self.period.as_nanos();
        self.period - Duration::from_nanos_u128(into)
    }
}

impl Controller {
    /// A controller with an empty queue. `workers` is the operator's flag and overrides the
    /// description. `map_buffer` is shared by the plugin's controllers. If `before`, the controller
    /// that this one replaces, has the same kind, the new controller takes over its memory.
    pub(crate) fn new(
        plugin: &Description,
        description: &ControllerDescription,
        workers: Option<u32>,
        metrics: ControllerMetrics,
        map_buffer: &Arc<MapBuffer>,
        wakes: &Arc<WakeLog>,
        before: Option<&Self>,
    ) -> Arc<Self> {
        let settings = Settings::of(description, workers);
        Arc::new(Self {
            name: description.name.clone(),
            label: controller_label(&plugin.name, &description.name).into(),
            kind: settings.kind.clone(),
            field_manager: plugin.field_manager(&description.name),
            workers: settings.workers,
            limits: Limits {
                max_retries: settings.max_retries,
                cap: settings.back_off.cap,
            },
            queue: Queue::new(Config {
                back_off: settings.back_off,
                bucket: settings.bucket,
                metrics: Arc::new(metrics.clone()),
            }),
            metrics,
            memory: before
                .filter(|before| before.kind == settings.kind)
                .map(|before| before.memory.clone())
                .unwrap_or_default(),
            mapper: Mapper::new(map_buffer.clone()),
            wakes: wakes.clone(),
            clock: match settings.timer {
                Some(Timer::EveryMs(ms)) => Some(Clock {
                    start: Instant::now(),
                    period: Duration::from_millis(ms.into()),
                }),
                _ => None,
            },
            started: AtomicBool::new(false),
            told: Once::new(),
            settings,
            member: None,
        })
    }

    /// Puts a controller that was just made, and that nothing else has yet, into a member cluster:
    /// logs and records name it with the cluster, metrics without.
    pub(crate) fn within(mut self: Arc<Self>, member: &Arc<Member>) -> Arc<Self> {
        if let Some(own) = Arc::get_mut(&mut self) {
            own.label = format!("{}@{}", own.label, member.name).into();
            own.member = Some(member.clone());
        }
        self
    }

    /// Returns whether a generation with this description can use this controller's queue.
    pub(crate) fn fits(&self, description: &ControllerDescription, workers: Option<u32>) -> bool {
        self.name == description.name && self.settings == Settings::of(description, workers)
    }

    /// Marks the workers as started. Returns `false` if they were started before.
    pub(crate) fn start(&self) -> bool {
        !self.started.swap(true, Ordering::AcqRel)
    }

    /// Logs that the workers start to take keys; only the first call does.
    pub(crate) fn tell_of_start(&self) {
        self.told.call_once(|| {
            tracing::info!(
                controller = &*self.label,
                workers = self.workers,
                "starting workers"
            );
        });
    }

    /// Returns whether the workers have been started.
    pub(crate) fn has_started(&self) -> bool {
        self.started.load(Ordering::Acquire)
    }

    /// Returns whether this is a timer controller, whose only key comes up by the clock.
    pub(crate) fn is_timer(&self) -> bool {
        self.settings.timer.is_some()
    }

    /// Schedules the key of a timer controller for the next period. Does nothing for other
    /// controllers.
    pub(crate) fn arm_timer(&self, key: &ObjectName) {
        if let Some(clock) = self.clock {
            let timer = self.queue.tagged(Cause::Timer.into());
            timer.add_after(key.clone(), clock.next());
        }
    }

    /// A right that the key waited for was granted meanwhile: enqueues the key in the low lane and
    /// resets its back-off.
    pub(crate) fn granted(&self, key: &ObjectName, required: &Arc<Required>) {
        if self.memory.end_wait(key, required, Awaited::None) {
            self.queue.forget(key);
            self.queue
                .tagged(Cause::Granted.into())
                .add_low(key.clone());
        }
    }

    /// The rights that the key waits for had been granted before the wait began: enqueues the key
    /// after a pause. If the next turn is refused too, missing rights are not the cause.
    pub(crate) fn granted_before(
        &self,
        key: &ObjectName,
        required: &Arc<Required>,
        pause: Duration,
    ) {
        if self.memory.end_wait(key, required, Awaited::Granted) {
            self.queue
                .tagged(Cause::Granted.into())
                .add_after(key.clone(), pause);
        }
    }

    /// The keys that a controller in this one's place has to process: those in the queue, and those
    /// whose deletion or failure is still open.
    pub(crate) fn unfinished(&self) -> Vec<ObjectName> {
        let mut keys = self.queue.keys();
        keys.extend(self.memory.unfinished());
        keys
    }

    /// Prepares the controller for a new generation: clears all back-offs and enqueues all keys in
    /// the low lane. Returns the number of keys.
    pub fn renew(&self, keys: Vec<ObjectName>) -> usize {
        let count = keys.len();
        self.memory.forgive();
        self.queue.clear_back_offs();
        self.queue.tagged(Cause::Swap.into()).add_low_all(keys);
        count
    }

    /// Clears the failures and the back-offs of these keys, because another version runs them now.
    pub(crate) fn forgive_these(&self, keys: &[ObjectName]) {
        self.memory.forgive_these(keys);
        keys.iter().for_each(|key| self.queue.clear_back_off(key));
    }

    /// Hands keys over to another version: clears their failures and back-offs, and enqueues them
    /// in the low lane.
    pub(crate) fn take_over(&self, keys: Vec<ObjectName>) {
        self.forgive_these(&keys);
        self.queue.tagged(Cause::Canary.into()).add_low_all(keys);
    }

    /// Closes the queue. The workers finish the keys that they hold.
    pub(crate) fn shut_down(&self) {
        self.queue.shut_down_now();
        self.mapper.close();
        // Ends every wait for a right.
        self.memory.forgive();
    }
}

impl Settings {
    fn of(description: &ControllerDescription, workers: Option<u32>) -> Self {
        let retry = description.retry.clone().unwrap_or_default();
        Self {
            kind: description.kind(),
            bucket: retry.bucket.map(|bucket| Bucket {
                rate_per_second: bucket.per_second.into(),
                burst: bucket.burst,
            }),
            max_retries: retry.max_retries,
            timer: description.timer,
            workers: workers.or(description.concurrency).unwrap_or(WORKERS),
            back_off: BackOff {
                base: Duration::from_millis(retry.base_ms.into()),
                cap: Duration::from_millis(retry.cap_ms.into()),
            },
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
