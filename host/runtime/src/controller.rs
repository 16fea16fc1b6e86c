//! One controller: its queue, what wakes its keys, and what is remembered of keys that fail. It lives on across swaps; code and stores come with the generation.
//!
//! Only names go through the queue. What happened to an object is forgotten here: the policy sees the newest snapshot, never an event.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use vmhost_cluster::NoticeCause;
use vmhost_core::{Change, ControllerDescription, Description, Gvk, ObjectName, Timer};
use vmhost_queue::{BackOff, Bucket, Config, Queue};

pub mod changes;
pub mod memory;

use crate::controller::changes::Mapper;
use crate::controller::changes::buffer::MapBuffer;
use crate::controller::memory::own_writes::{Came, Origin};
use crate::controller::memory::{Awaited, KeyMemory};
use crate::observe::metrics::controller::{ControllerMetrics, controller_label};
use crate::rights::access::Required;
use crate::wake::triggers::Wake;

/// Workers of a controller whose description and flags say nothing.
const WORKERS: u32 = 4;

/// A queue of names and all that belongs to it.
pub struct Controller {
    /// Its name in the description.
    pub name: String,
    /// Its name in logs and metrics.
    pub label: Arc<str>,
    /// The kind whose objects are its keys.
    pub kind: Gvk,
    /// The name under which it owns fields: `vmhost/<plugin>/<controller>`.
    pub field_manager: String,
    /// How many keys it works on at once.
    pub workers: u32,
    /// When a key is given up, and how long it rests.
    pub limits: Limits,
    /// The keys.
    pub queue: Queue<ObjectName>,
    /// Its metrics.
    pub metrics: ControllerMetrics,
    /// What is remembered of its keys.
    pub memory: Arc<KeyMemory>,
    /// Changes that the policy maps itself.
    pub mapper: Mapper,
    clock: Option<Clock>,
    settings: Settings,
    started: AtomicBool,
}

/// What a controller allows its keys.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Retries of a failure after which a key is given up. Without it, no key is.
    pub max_retries: Option<u32>,
    /// The longest back-off of a key: how long a terminal failure rests.
    pub cap: Duration,
}

/// What makes a controller another one: a swap that changes it starts a new queue.
#[derive(Clone, Debug, PartialEq)]
struct Settings {
    kind: Gvk,
    workers: u32,
    back_off: BackOff,
    bucket: Option<Bucket>,
    max_retries: Option<u32>,
    timer: Option<Timer>,
}

/// When a timer's key comes up: at multiples of the period since the start, so that long turns do not shift it.
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
    /// A controller as a description wants it. `workers` is the operator's word. `map_buffer` is
    /// the plugin's. `before`: the one whose place it takes.
    pub fn new(
        plugin: &Description,
        description: &ControllerDescription,
        workers: Option<u32>,
        metrics: ControllerMetrics,
        map_buffer: &Arc<MapBuffer>,
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
            clock: match settings.timer {
                Some(Timer::EveryMs(ms)) => Some(Clock {
                    start: Instant::now(),
                    period: Duration::from_millis(ms.into()),
                }),
                _ => None,
            },
            started: AtomicBool::new(false),
            settings,
        })
    }

    /// Can a generation with this description go on with this controller's queue?
    pub fn fits(&self, description: &ControllerDescription, workers: Option<u32>) -> bool {
        self.name == description.name && self.settings == Settings::of(description, workers)
    }

    /// Its workers are about to run. False: somebody else has started them.
    pub fn start(&self) -> bool {
        !self.started.swap(true, Ordering::AcqRel)
    }

    /// Do its workers run?
    pub fn has_started(&self) -> bool {
        self.started.load(Ordering::Acquire)
    }

    /// Does its one key come up by itself?
    pub fn is_timer(&self) -> bool {
        self.settings.timer.is_some()
    }

    /// A timer's key comes up by the clock, however its turn ends.
    pub fn arm_timer(&self, key: &ObjectName) {
        if let Some(clock) = self.clock {
            self.queue.add_after(key.clone(), clock.next());
        }
    }

    /// A right that the key waits for was granted meanwhile: its turn comes, behind fresh changes,
    /// and its back-off begins anew.
    pub fn granted(&self, key: &ObjectName, required: &Arc<Required>) {
        if self.memory.end_wait(key, required, Awaited::None) {
            self.queue.forget(key);
            self.queue.add_low(key.clone());
        }
    }

    /// The rights that the key waits for were granted before: its turn comes after a pause, and if
    /// it is refused again, it is for another reason.
    pub fn granted_before(&self, key: &ObjectName, required: &Arc<Required>, pause: Duration) {
        if self.memory.end_wait(key, required, Awaited::Granted) {
            self.queue.add_after(key.clone(), pause);
        }
    }

    /// Keys that another controller has to look at in its stead: what its queue knows, and what it has not told the end of.
    pub fn unfinished(&self) -> Vec<ObjectName> {
        let mut keys = self.queue.keys();
        keys.extend(self.memory.unfinished());
        keys
    }

    /// A swap: every key gets its chance, in the low lane, and nobody backs off for what the old code did. How many keys.
    pub fn renew(&self, keys: Vec<ObjectName>) -> usize {
        let count = keys.len();
        self.memory.forgive();
        self.queue.clear_back_offs();
        self.queue.add_low_all(keys);
        count
    }

    /// The writes of a key's turn are over: the events that were held back meanwhile count now.
    pub fn end_writes(&self, key: &ObjectName) {
        match self.memory.end_writes(key) {
            Came::Nothing => {}
            Came::OnlyOwn => self.queue.add_unless_backing_off(key.clone()),
            Came::Foreign => self.queue.add(key.clone()),
        }
    }

    /// Events of its watches, of which one or more concern a key, and nobody knows which. Only if all are the key's own writes its back-off stays.
    pub fn wake_by_one_of(&self, key: &ObjectName, events: &[(u16, u64)]) {
        let mut own = false;
        for &(source, version) in events {
            match self.memory.origin(key, source, version) {
                Origin::Held => {}
                Origin::Own => own = true,
                Origin::Foreign => return self.queue.add(key.clone()),
            }
        }
        if own {
            self.queue.add_unless_backing_off(key.clone());
        }
    }

    /// No new keys: its workers end with what they have.
    pub fn shut_down(&self) {
        self.queue.shut_down_now();
        self.mapper.close();
        // No key waits for a right any more.
        self.memory.forgive();
    }
}

impl Wake for Controller {
    fn label(&self) -> &str {
        &self.label
    }

    fn wake(&self, key: &ObjectName, source: u16, cause: NoticeCause, version: u64) {
        match self.memory.origin(key, source, version) {
            Origin::Held => {}
            Origin::Own => self.queue.add_unless_backing_off(key.clone()),
            Origin::Foreign if is_fresh(cause) => self.queue.add(key.clone()),
            Origin::Foreign => self.queue.add_low(key.clone()),
        }
    }

    fn map(&self, source: u16, object: &ObjectName, change: Change) {
        self.mapper.push((source, object.clone()), change);
    }

    fn filtered(&self) {
        self.metrics.wakes.filtered.inc();
    }

    fn undecided(&self) {
        self.metrics.wakes.predicate_errors.inc();
    }
}

/// The lane of a cause: what nobody has changed just now waits behind what somebody has.
fn is_fresh(cause: NoticeCause) -> bool {
    matches!(cause, NoticeCause::Changed | NoticeCause::Deleted)
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
