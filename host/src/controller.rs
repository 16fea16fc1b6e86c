//! One controller: its queue, what wakes its keys, and what is remembered of keys that fail. It lives on across swaps; code and stores come with the generation.
//!
//! Only names go through the queue. What happened to an object is forgotten here: the policy sees the newest snapshot, never an event.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use vmhost_cluster::Cause;
use vmhost_core::{ControllerDescription, Description, Gvk, ObjectName, Refusal, Timer};
use vmhost_queue::{BackOff, Bucket, Config, Queue};

use crate::hot::HotKeys;
use crate::last_writes::LastWrites;
use crate::mapper::{MapBuffer, Mapper};
use crate::own_writes::{Came, Origin, OwnWrites};
use crate::permissions::Required;
use crate::previous::Previous;
use crate::telemetry::{ControllerMetrics, Metrics, controller_label};
use crate::triggers::is_fresh;

/// Collisions in a row that are nobody's business: somebody else was faster. More look like a name
/// that is taken, or a patch that never fits.
pub const COLLISIONS: u32 = 3;

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
    /// Longest back-off of a key: how long a terminal failure rests.
    pub cap: Duration,
    /// The keys.
    pub queue: Queue<ObjectName>,
    /// Its metrics.
    pub metrics: ControllerMetrics,
    /// Which events are the host's own writes.
    pub own_writes: OwnWrites,
    /// What was written last, to leave out applies that change nothing.
    pub last_writes: LastWrites,
    /// What its keys looked like when their last turn succeeded, if the description asks for that.
    pub previous: Arc<Previous>,
    /// Keys that keep themselves busy.
    pub hot: HotKeys,
    /// Changes that the policy maps itself.
    pub mapper: Mapper,
    /// Retries of a failure after which a key is given up; none: never.
    pub max_retries: Option<u32>,
    clock: Option<Clock>,
    /// Keys whose last turn was no success: most are not here.
    failing: Mutex<HashMap<ObjectName, Failing>>,
    /// Whether any is there, for all those turns that would only learn that none is.
    fails: AtomicBool,
    settings: Settings,
    started: AtomicBool,
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

/// What is remembered of a key between a failure and its next success.
#[derive(Clone, Debug, Default)]
pub struct Failing {
    /// Failures since the last success.
    pub attempt: u32,
    /// The refused effect of the last turn.
    pub last: Option<Refusal>,
    /// Turns in a row that ended in a collision with what others wrote, up to the last one.
    pub collisions: u32,
    /// What is known of the rights for want of which the last turn ended.
    pub rights: Awaited,
}

impl Failing {
    /// Retries that count against `maxRetries`.
    fn retries(&self) -> u32 {
        let too_many = self.collisions.saturating_sub(COLLISIONS);
        self.attempt.saturating_add(too_many)
    }
}

/// Rights that a key waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Awaited {
    /// It waits for none.
    #[default]
    None,
    /// It is woken when these are granted.
    Missing(Arc<Required>),
    /// All that it waited for was granted already when it was refused.
    Granted,
}

impl Awaited {
    fn is(&self, required: &Arc<Required>) -> bool {
        matches!(self, Self::Missing(these) if Arc::ptr_eq(these, required))
    }
}

impl Controller {
    /// A controller as a description wants it. `workers` is the operator's word. `map_buffer` is
    /// the plugin's. `before`: the one whose place it takes.
    pub fn new(
        plugin: &Description,
        description: &ControllerDescription,
        workers: Option<u32>,
        metrics: &Metrics,
        map_buffer: &Arc<MapBuffer>,
        before: Option<&Self>,
    ) -> Arc<Self> {
        let settings = Settings::of(description, workers);
        let metrics = metrics.controller(&plugin.name, &description.name);
        Arc::new(Self {
            name: description.name.clone(),
            label: controller_label(&plugin.name, &description.name).into(),
            kind: settings.kind.clone(),
            field_manager: plugin.field_manager(&description.name),
            workers: settings.workers,
            cap: settings.back_off.cap,
            queue: Queue::new(Config {
                back_off: settings.back_off,
                bucket: settings.bucket,
                metrics: Arc::new(metrics.clone()),
            }),
            metrics,
            own_writes: OwnWrites::default(),
            last_writes: LastWrites::default(),
            previous: before
                .filter(|before| before.kind == settings.kind)
                .map(|before| before.previous.clone())
                .unwrap_or_default(),
            hot: HotKeys::default(),
            mapper: Mapper::new(map_buffer.clone()),
            max_retries: settings.max_retries,
            clock: match settings.timer {
                Some(Timer::EveryMs(ms)) => Some(Clock {
                    start: Instant::now(),
                    period: Duration::from_millis(ms.into()),
                }),
                _ => None,
            },
            failing: Mutex::default(),
            fails: AtomicBool::new(false),
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

    /// What is remembered of a key.
    pub fn failing(&self, key: &ObjectName) -> Option<Failing> {
        if !self.fails.load(Ordering::Relaxed) {
            return None;
        }
        self.lock().get(key).cloned()
    }

    /// How many keys are remembered, and some of them, in no order.
    pub fn some_failing(&self, limit: usize) -> (usize, Vec<(ObjectName, Failing)>) {
        let failing = self.lock();
        let some = failing.iter().take(limit);
        (
            failing.len(),
            some.map(|(key, failing)| (key.clone(), failing.clone()))
                .collect(),
        )
    }

    /// The key's turn was a success, or it is gone.
    pub fn forget(&self, key: &ObjectName) {
        if self.fails.load(Ordering::Relaxed) {
            let mut failing = self.lock();
            failing.remove(key);
            self.fails.store(!failing.is_empty(), Ordering::Relaxed);
        }
        self.queue.forget(key);
    }

    /// Does its one key come up by itself?
    pub fn is_timer(&self) -> bool {
        self.settings.timer.is_some()
    }

    /// After how long a timer's key comes up again; none: it is no timer, or one that comes up once.
    pub fn until_tick(&self) -> Option<Duration> {
        self.clock.map(|clock| clock.next())
    }

    /// The key's turn was no success: what the policy is told in its next one. A collision is
    /// nobody's failure, and raises no `attempt`. Returns the retries since the last success that
    /// count against `maxRetries`, this one included.
    pub fn remember(&self, key: &ObjectName, last: Option<Refusal>, collision: bool) -> u32 {
        let mut failing = self.lock();
        self.fails.store(true, Ordering::Relaxed);
        let entry = failing.entry(key.clone()).or_default();
        if collision {
            entry.collisions = entry.collisions.saturating_add(1);
        } else {
            entry.attempt = entry.attempt.saturating_add(1);
            entry.collisions = 0;
        }
        entry.last = last;
        entry.rights = Awaited::None;
        entry.retries()
    }

    /// The key's refused effect takes these rights: what asks for them wakes it when they are
    /// granted.
    pub fn await_rights(&self, key: &ObjectName, required: Arc<Required>) {
        if let Some(entry) = self.lock().get_mut(key) {
            entry.rights = Awaited::Missing(required);
        }
    }

    /// Returns whether the key still waits for these rights.
    pub fn awaits(&self, key: &ObjectName, required: &Arc<Required>) -> bool {
        let failing = self.lock();
        failing
            .get(key)
            .is_some_and(|entry| entry.rights.is(required))
    }

    /// A right that the key waits for was granted meanwhile: its turn comes, behind fresh changes,
    /// and its back-off begins anew.
    pub fn granted(&self, key: &ObjectName, required: &Arc<Required>) {
        if self.end_wait(key, required, Awaited::None) {
            self.queue.forget(key);
            self.queue.add_low(key.clone());
        }
    }

    /// The rights that the key waits for were granted before: its turn comes after a pause, and if
    /// it is refused again, it is for another reason.
    pub fn granted_before(&self, key: &ObjectName, required: &Arc<Required>, pause: Duration) {
        if self.end_wait(key, required, Awaited::Granted) {
            self.queue.add_after(key.clone(), pause);
        }
    }

    fn end_wait(&self, key: &ObjectName, required: &Arc<Required>, now: Awaited) -> bool {
        let mut failing = self.lock();
        let entry = failing.get_mut(key);
        let waiting = entry.filter(|entry| entry.rights.is(required));
        waiting.map(|entry| entry.rights = now).is_some()
    }

    /// The policy asked for another turn, and all effects were carried out.
    pub fn requeued(&self, key: &ObjectName) {
        if let Some(entry) = self.lock().get_mut(key) {
            entry.last = None;
            entry.collisions = 0;
            entry.rights = Awaited::None;
        }
    }

    /// Keys that another controller has to look at in its stead: what its queue knows, and what it has not told the end of.
    pub fn unfinished(&self) -> Vec<ObjectName> {
        let mut keys = self.queue.keys();
        keys.extend(self.lock().keys().cloned());
        keys.extend(self.previous.keys());
        keys
    }

    /// A swap: every key gets its chance, in the low lane, and nobody backs off for what the old code did. How many keys.
    pub fn renew(&self, keys: Vec<ObjectName>) -> usize {
        let count = keys.len();
        // Dropped outside of the lock: all workers ask here.
        let mut failing = self.lock();
        let forgiven = std::mem::take(&mut *failing);
        self.fails.store(false, Ordering::Relaxed);
        drop(failing);
        drop(forgiven);
        self.hot.clear();
        self.queue.clear_back_offs();
        self.queue.add_low_all(keys);
        count
    }

    /// The writes of a key's turn are over: the events that were held back meanwhile count now.
    pub fn end_writes(&self, key: &ObjectName) {
        match self.own_writes.end(key) {
            Came::Nothing => {}
            Came::OnlyOwn => self.queue.add_unless_backing_off(key.clone()),
            Came::Foreign => self.queue.add(key.clone()),
        }
    }

    /// An event of one of its watches concerns a key.
    pub fn wake(&self, key: &ObjectName, source: u16, cause: Cause, version: u64) {
        match self.own_writes.origin(key, source, version) {
            Origin::Held => {}
            Origin::Own => self.queue.add_unless_backing_off(key.clone()),
            Origin::Foreign if is_fresh(cause) => self.queue.add(key.clone()),
            Origin::Foreign => self.queue.add_low(key.clone()),
        }
    }

    /// Events of its watches, of which one or more concern a key, and nobody knows which. Only if all are the key's own writes its back-off stays.
    pub fn wake_by_one_of(&self, key: &ObjectName, events: &[(u16, u64)]) {
        let mut own = false;
        for &(source, version) in events {
            match self.own_writes.origin(key, source, version) {
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
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ObjectName, Failing>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
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
