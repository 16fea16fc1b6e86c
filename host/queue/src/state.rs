//! The state under the queue's lock, and how a key moves through it: into a lane, to a worker, and
//! back.
//!
//! `rules` defines what each kind of add means; `wait` puts getters to sleep and wakes them. This
//! module only notes in [`Wake`] which waiters the lock's holder must wake after it has released
//! the lock.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Clock;
use crate::config::Config;
use crate::index::Index;
use crate::limit::{BackOff, Tokens};
use crate::lists::List;
use crate::metrics::{Lane, Metrics, Stats};
use crate::slots::{Place, Slots};
use crate::tag::Tag;
use crate::timers::Timers;

/// While both lanes hold keys, one take in this many is from the low lane: a swap or resync makes
/// progress under any load of fresh changes, and costs them at most 7 % of their rate.
pub const LOW_LANE_EVERY: u32 = 16;

/// Number of timers that fire in one hold of the lock: some 10 us.
const FIRE_BATCH: usize = 64;

/// The phase of the shutdown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Open,
    /// No adds and no timers; queued keys are still handed out.
    Draining,
    /// Nothing is handed out.
    Closed,
}

/// The waiters to wake after the lock is released.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Wake {
    pub(crate) getters: u32,
    pub(crate) leader: bool,
    pub(crate) drained: bool,
}

/// A key that a worker takes.
pub(crate) struct Taken<K, T> {
    pub(crate) slot: u32,
    pub(crate) key: K,
    pub(crate) tag: T,
    pub(crate) attempt: u32,
    pub(crate) lane: Lane,
    pub(crate) wait: Duration,
}

/// The result of a getter's attempt to take a key.
pub(crate) enum Next<K, T> {
    Key(Taken<K, T>),
    Nothing,
    Closed,
}

/// The state; see the module.
pub(crate) struct State<K, T> {
    /// A key has a slot exactly as long as it is queued, running, delayed or has failures.
    pub(crate) slots: Slots<K, T>,
    pub(crate) index: Index,
    /// The slots whose place is `Queued`, by lane.
    pub(crate) high: List,
    pub(crate) low: List,
    /// The slots whose place is `Running`, oldest run first.
    pub(crate) running: List,
    pub(crate) timers: Timers,
    pub(crate) phase: Phase,
    /// Number of takes from the high lane since the last take from the low lane, while the low lane
    /// held keys.
    passed_over: u32,
    /// Number of slots with failures.
    pub(crate) failing: usize,
    /// Number of slots with `timer_back_off`.
    pub(crate) backing_off: usize,
    /// Number of getters that sleep, or were woken and have not run yet.
    pub(crate) waiting: u32,
    /// When the leader (the getter that also watches the timers) will wake, if there is a leader.
    /// While getters sleep and timers run there is a leader, or a getter is being woken that
    /// becomes the leader.
    pub(crate) leader: Option<u64>,
    /// Whether a task waits for the queue to be drained.
    pub(crate) drain_awaited: bool,
    pub(crate) wake: Wake,
    pub(crate) back_off: BackOff,
    pub(crate) bucket: Option<Tokens>,
    pub(crate) metrics: Arc<dyn Metrics>,
    times: bool,
    pub(crate) clock: Clock,
}

impl<K, T: Tag> State<K, T> {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            slots: Slots::new(),
            index: Index::new(),
            high: List::new(Place::Queued(Lane::High)),
            low: List::new(Place::Queued(Lane::Low)),
            running: List::new(Place::Running),
            timers: Timers::new(),
            phase: Phase::Open,
            passed_over: 0,
            failing: 0,
            backing_off: 0,
            waiting: 0,
            leader: None,
            drain_awaited: false,
            wake: Wake::default(),
            back_off: config.back_off,
            bucket: config.bucket.map(Tokens::new),
            times: config.metrics.wants_times(),
            metrics: config.metrics,
            clock: Clock::new(),
        }
    }

    fn stamp(&mut self) -> u64 {
        if self.times { self.clock.now() } else { 0 }
    }

    pub(crate) fn wake_getter(&mut self) {
        if self.wake.getters < self.waiting {
            self.wake.getters += 1;
        }
    }

    fn push(&mut self, at: u32, lane: Lane) {
        let list = match lane {
            Lane::High => &mut self.high,
            Lane::Low => &mut self.low,
        };
        list.push_back(&mut self.slots, at);
        self.wake_getter();
    }

    fn pull(&mut self, at: u32, lane: Lane) {
        let list = match lane {
            Lane::High => &mut self.high,
            Lane::Low => &mut self.low,
        };
        list.remove(&mut self.slots, at);
    }

    /// Marks a key as dirty. The key moves up a lane if needed, never down. A key that its floor
    /// holds is queued when the floor is over.
    pub(crate) fn enqueue(&mut self, at: u32, lane: Lane) {
        let slot = &mut self.slots[at];
        match slot.place {
            Place::Idle if slot.is_held(&mut self.clock) => self.hold(at, lane),
            Place::Idle => {
                slot.queued_at = if self.times { self.clock.now() } else { 0 };
                self.metrics.add(lane);
                self.push(at, lane);
            }
            Place::Queued(Lane::Low) if lane == Lane::High => {
                self.pull(at, Lane::Low);
                self.push(at, Lane::High);
            }
            Place::Queued(_) => {}
            Place::Running => {
                self.note_dirty_run(at, lane);
                let slot = &mut self.slots[at];
                slot.again = slot.again.max(Some(lane));
            }
        }
    }

    /// Counts the first add of a running key. Must be called before the mark is set.
    pub(crate) fn note_dirty_run(&mut self, at: u32, lane: Lane) {
        if !self.slots[at].is_dirty() {
            self.slots[at].queued_at = self.stamp();
            self.metrics.add(lane);
        }
    }

    /// Queues keys whose delay is over, at most one batch. Returns whether more are due.
    #[inline]
    pub(crate) fn fire(&mut self) -> bool {
        self.timers.len() > 0 && self.phase == Phase::Open && self.fire_some()
    }

    fn fire_some(&mut self) -> bool {
        let now = self.clock.now();
        for _ in 0..FIRE_BATCH {
            let Some((_, at)) = self.timers.first().filter(|(due, _)| *due <= now) else {
                return false;
            };
            let lane = self.slots[at].timer_lane;
            self.stop_timer(at);
            self.enqueue(at, lane);
        }
        self.timers.first().is_some_and(|(due, _)| due <= now)
    }

    /// Starts the timer that queues a key at its floor. The key is in no list.
    fn hold(&mut self, at: u32, lane: Lane) {
        self.start_timer(at, self.slots[at].floor, lane, false);
    }

    /// Raises the key's floor: no run begins before it. A queued key leaves its lane until then.
    pub(crate) fn raise_floor(&mut self, at: u32, floor: u64) {
        let slot = &mut self.slots[at];
        slot.floor = slot.floor.max(floor);
        if let Place::Queued(lane) = slot.place
            && slot.is_held(&mut self.clock)
        {
            self.pull(at, lane);
            self.hold(at, lane);
        }
    }

    /// Starts the timer of a key, or moves it to an earlier time.
    pub(crate) fn start_timer(&mut self, at: u32, due: u64, lane: Lane, back_off: bool) {
        let slot = &mut self.slots[at];
        if slot.timer.is_none() {
            slot.timer_lane = lane;
        }
        slot.timer_lane = slot.timer_lane.max(lane);
        if back_off {
            self.backing_off += usize::from(!slot.timer_back_off);
            slot.timer_back_off = true;
        } else {
            slot.timer_plain = true;
        }
        if slot.timer.is_some_and(|timer| timer.due <= due) {
            return;
        }
        self.timers.remove(&mut self.slots, at);
        self.timers.insert(&mut self.slots, at, due);
        match self.leader {
            Some(wakes) if wakes <= due => {}
            Some(_) => {
                self.leader = Some(due);
                self.wake.leader = true;
            }
            None => self.wake_getter(),
        }
    }

    /// Cancels a pending delayed add.
    pub(crate) fn stop_timer(&mut self, at: u32) {
        if self.slots[at].timer.is_none() {
            return;
        }
        self.timers.remove(&mut self.slots, at);
        let slot = &mut self.slots[at];
        slot.timer_plain = false;
        if std::mem::take(&mut slot.timer_back_off) {
            self.backing_off -= 1;
        }
    }

    fn pick(&mut self) -> Option<(Lane, u32)> {
        match (self.high.front(), self.low.front()) {
            (Some(high), None) => {
                self.passed_over = 0;
                Some((Lane::High, high))
            }
            (Some(high), Some(_)) if self.passed_over + 1 < LOW_LANE_EVERY => {
                self.passed_over += 1;
                Some((Lane::High, high))
            }
            (_, Some(low)) => {
                self.passed_over = 0;
                Some((Lane::Low, low))
            }
            (None, None) => None,
        }
    }

    /// Hands out the next key, if one is ready.
    pub(crate) fn next(&mut self) -> Next<K, T>
    where
        K: Clone,
    {
        if self.phase == Phase::Closed {
            return Next::Closed;
        }
        self.fire();
        let Some((lane, at)) = self.pick() else {
            return if self.phase == Phase::Open {
                Next::Nothing
            } else {
                Next::Closed
            };
        };
        self.pull(at, lane);
        self.running.push_back(&mut self.slots, at);
        let slot = &mut self.slots[at];
        let now = if self.times || slot.back_off_until != 0 {
            self.clock.now()
        } else {
            0
        };
        slot.floor = 0;
        slot.ran_in = lane;
        slot.early = slot.back_off_until > now;
        if !slot.early {
            slot.back_off_until = 0;
        }
        let mut wait = Duration::ZERO;
        if self.times {
            slot.started_at = now;
            wait = Duration::from_nanos(now.saturating_sub(slot.queued_at));
        }
        let (attempt, key) = (slot.failures, slot.key.clone());
        let tag = std::mem::take(&mut slot.tag);
        // This run is the retry, so its decision replaces the timer.
        if slot.timer_back_off && !slot.timer_plain {
            self.stop_timer(at);
        }
        if self.wake.getters == 0 && self.leader.is_none() && self.timers.len() > 0 {
            self.wake_getter();
        }
        match key {
            Some(key) => Next::Key(Taken {
                slot: at,
                key,
                tag,
                attempt,
                lane,
                wait,
            }),
            None => Next::Nothing,
        }
    }

    /// Ends the run of a key.
    pub(crate) fn done(&mut self, at: u32) {
        self.running.remove(&mut self.slots, at);
        let slot = &mut self.slots[at];
        let mut again = slot.again.take();
        if std::mem::take(&mut slot.again_own) {
            again = Some(Lane::High);
        }
        match again {
            Some(lane) if slot.is_held(&mut self.clock) => self.hold(at, lane),
            Some(lane) => self.push(at, lane),
            None if slot.is_over() => self.free(at),
            None => {}
        }
        if self.drain_awaited && self.running.len() == 0 {
            self.drain_awaited = false;
            self.wake.drained = true;
        }
    }

    /// Frees the slot of a key if no state is left in it.
    pub(crate) fn release(&mut self, at: u32) {
        if self.slots[at].is_over() {
            self.free(at);
        }
    }

    fn free(&mut self, at: u32) {
        let hash = self.slots.remove(at);
        self.index.remove(hash, at);
    }

    /// Registers a sleeping getter. Returns when the getter must wake at the latest if it becomes
    /// the leader.
    pub(crate) fn park(&mut self) -> Option<Instant> {
        self.waiting += 1;
        match (self.leader, self.timers.first()) {
            (None, Some((first, _))) => {
                self.leader = Some(first);
                Some(self.clock.instant(first))
            }
            _ => None,
        }
    }

    /// Registers that a getter woke up. If it led and is `gone`, another getter is woken to lead.
    pub(crate) fn unpark(&mut self, led: bool, gone: bool) {
        self.waiting -= 1;
        if led {
            self.leader = None;
            if gone && self.timers.len() > 0 {
                self.wake_getter();
            }
        }
    }

    pub(crate) fn shut_down(&mut self, phase: Phase) {
        if self.phase != Phase::Closed {
            self.phase = phase;
        }
        self.wake.drained |= std::mem::take(&mut self.drain_awaited);
    }

    /// Returns whether nothing runs and, while draining, nothing is queued. If not, the waiter is
    /// woken when that may have changed.
    pub(crate) fn is_drained(&mut self) -> bool {
        let queued = self.high.len() + self.low.len();
        let drained = self.running.len() == 0 && (self.phase != Phase::Draining || queued == 0);
        self.drain_awaited |= !drained;
        drained
    }

    pub(crate) fn stats(&mut self) -> Stats {
        let now = self.stamp();
        let open = self.phase == Phase::Open;
        let ran = |at: u32| Duration::from_nanos(now.saturating_sub(self.slots[at].started_at));
        Stats {
            high: self.high.len(),
            low: self.low.len(),
            delayed: if open { self.timers.len() } else { 0 },
            backing_off: if open { self.backing_off } else { 0 },
            failing: self.failing,
            processing: self.running.len(),
            longest_running: self.running.front().map(ran).unwrap_or_default(),
            unfinished: self
                .running
                .iter(&self.slots)
                .map(ran)
                .fold(Duration::ZERO, Duration::saturating_add),
        }
    }
}
