//! Compares the queue with a naive twin: random operations, every observable value compared.
//!
//! The twin uses only vectors and linear scans, and a map of the tags that no run has taken yet.
//! Where the order is not promised (keys released by `clear_back_offs`) it accepts any order within
//! the group.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::*;
use crate::{BackOff, LOW_LANE_EVERY, Lease, Metrics, Stats};

const BASE: u64 = 5;
const CAP: u64 = 60;

/// A tag with one bit for each add that it joins, so that a lost or repeated add shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Marks(u64);

impl Tag for Marks {
    fn join(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Marks {
    /// Returns one of 64 marks, so that two adds of one run seldom have the same.
    fn random(random: &mut fastrand::Rng) -> Self {
        Self(1 << random.u32(0..u64::BITS))
    }
}

#[derive(Clone, Copy)]
struct Delay {
    key: u32,
    due: Instant,
    lane: Lane,
    plain: bool,
    back_off: bool,
    /// As of [`Queued`].
    group: u64,
}

#[derive(Clone, Copy)]
struct Failures {
    key: u32,
    count: u32,
    until: Option<Instant>,
}

#[derive(Clone, Copy)]
struct Queued {
    key: u32,
    since: Instant,
    /// Shared by the keys that one `clear_back_offs` queued.
    group: u64,
}

struct Run {
    key: u32,
    lane: Lane,
    started: Instant,
    early: bool,
    again: Option<Lane>,
    again_own: bool,
    dirty_since: Instant,
    lease: Lease<u32, Marks>,
}

struct Twin {
    high: Vec<Queued>,
    low: Vec<Queued>,
    runs: Vec<Run>,
    /// In the order in which they were set.
    delays: Vec<Delay>,
    failures: Vec<Failures>,
    /// Keys that are not handed out before a time.
    floors: Vec<(u32, Instant)>,
    /// The joined tags of all adds of a key since it was last taken.
    tags: HashMap<u32, Marks>,
    passed_over: u32,
    group: u64,
    now: Instant,
}

impl Twin {
    /// Notes the tag of an add that follows.
    fn tagged(&mut self, key: u32, tag: Marks) -> &mut Self {
        let known = self.tags.entry(key).or_default();
        *known = known.join(tag);
        self
    }

    fn failures(&self, key: u32) -> u32 {
        self.failures
            .iter()
            .find(|failures| failures.key == key)
            .map_or(0, |failures| failures.count)
    }

    fn until(&self, key: u32) -> Option<Instant> {
        self.failures
            .iter()
            .find(|failures| failures.key == key)?
            .until
    }

    fn delay(&self, key: u32) -> Option<Delay> {
        self.delays.iter().find(|delay| delay.key == key).copied()
    }

    /// The end of a key's floor, if it is in the future.
    fn floor(&self, key: u32) -> Option<Instant> {
        let of = |(of, floor): &(u32, Instant)| (*of == key && *floor > self.now).then_some(*floor);
        self.floors.iter().filter_map(of).max()
    }

    fn hold(&mut self, key: u32, due: Instant, lane: Lane) {
        self.set_delay(Delay {
            key,
            due,
            lane,
            plain: true,
            back_off: false,
            group: self.group,
        });
    }

    fn run(&mut self, key: u32) -> Option<&mut Run> {
        self.runs.iter_mut().find(|run| run.key == key)
    }

    fn enqueue(&mut self, key: u32, lane: Lane) {
        let now = self.now;
        if let Some(run) = self.run(key) {
            if run.again.is_none() && !run.again_own {
                run.dirty_since = now;
            }
            run.again = run.again.max(Some(lane));
            return;
        }
        if let Some(floor) = self.floor(key) {
            return self.hold(key, floor, lane);
        }
        if self.high.iter().any(|queued| queued.key == key) {
            return;
        }
        let waits_low = self.low.iter().position(|queued| queued.key == key);
        let mut queued = Queued {
            key,
            since: now,
            group: self.group,
        };
        match (waits_low, lane) {
            (Some(_), Lane::Low) => {}
            (Some(at), Lane::High) => {
                queued.since = self.low.remove(at).since;
                self.high.push(queued);
            }
            (None, Lane::Low) => self.low.push(queued),
            (None, Lane::High) => self.high.push(queued),
        }
    }

    fn add(&mut self, key: u32) {
        self.delays.retain(|delay| delay.key != key);
        self.enqueue(key, Lane::High);
    }

    fn add_own(&mut self, key: u32) {
        if self.delay(key).is_some_and(|delay| delay.back_off) {
            return;
        }
        let now = self.now;
        match self.run(key) {
            None => self.add(key),
            Some(run) => {
                if run.again.is_none() && !run.again_own {
                    run.dirty_since = now;
                }
                run.again_own = true;
                self.delays.retain(|delay| delay.key != key);
            }
        }
    }

    fn set_delay(&mut self, new: Delay) {
        let Some(at) = self.delays.iter().position(|delay| delay.key == new.key) else {
            self.delays.push(new);
            return;
        };
        let old = &mut self.delays[at];
        old.lane = old.lane.max(new.lane);
        old.plain |= new.plain;
        old.back_off |= new.back_off;
        if new.due < old.due {
            let mut moved = self.delays.remove(at);
            (moved.due, moved.group) = (new.due, new.group);
            self.delays.push(moved);
        }
    }

    fn add_after(&mut self, key: u32, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        let due = self.now + delay;
        self.set_delay(Delay {
            key,
            due,
            lane: Lane::High,
            plain: true,
            back_off: false,
            group: self.group,
        });
    }

    fn rate_limit(&mut self, key: u32, at_least: Duration, not_before: Duration) {
        let due = self.retry_due(key, at_least.max(not_before));
        if !not_before.is_zero() {
            self.raise_floor(key, not_before);
        }
        self.retry(key, due);
    }

    fn raise_floor(&mut self, key: u32, not_before: Duration) {
        self.floors.push((key, self.now + not_before));
        if let Some(floor) = self.floor(key) {
            for lane in [Lane::High, Lane::Low] {
                let queued = match lane {
                    Lane::High => &mut self.high,
                    Lane::Low => &mut self.low,
                };
                let before = queued.len();
                queued.retain(|queued| queued.key != key);
                if queued.len() < before {
                    self.hold(key, floor, lane);
                }
            }
        }
    }

    /// Counts a failure. Returns when the key is due again, and in which lane.
    fn retry_due(&mut self, key: u32, at_least: Duration) -> (Instant, Lane) {
        let now = self.now;
        let until = self.until(key);
        let pending = self.delay(key).filter(|delay| delay.back_off);
        let count = self.failures(key);
        let mut lane = Lane::High;
        let mut early = false;
        if let Some(run) = self.run(key) {
            run.again_own = false;
            lane = run.lane;
            early = run.early;
        }
        let due = match until {
            Some(until) if early => until.max(now + at_least),
            _ => now + ms((BASE << count.min(20)).min(CAP)).max(at_least),
        };
        let count = if early { count } else { count + 1 };
        let until = Some(match (pending, until) {
            (Some(_), Some(until)) => until.min(due),
            (Some(forgotten), None) => forgotten.due.min(due),
            (None, _) => due,
        });
        self.failures.retain(|failures| failures.key != key);
        self.failures.push(Failures { key, count, until });
        (due, lane)
    }

    fn retry(&mut self, key: u32, (due, lane): (Instant, Lane)) {
        if due <= self.now {
            return self.enqueue(key, lane);
        }
        self.set_delay(Delay {
            key,
            due,
            lane,
            plain: false,
            back_off: true,
            group: self.group,
        });
    }

    fn forget(&mut self, key: u32) {
        self.failures.retain(|failures| failures.key != key);
        if let Some(run) = self.run(key) {
            run.early = false;
        }
    }

    fn clear_back_off(&mut self, key: u32) {
        self.forget(key);
        let delay = self.delay(key).filter(|delay| delay.back_off);
        if delay.is_none() {
            return;
        }
        self.delays.retain(|delay| delay.key != key || delay.plain);
        let mut rest = self.delays.iter_mut();
        if let Some(plain) = rest.find(|delay| delay.key == key) {
            plain.back_off = false;
        }
        self.enqueue(key, Lane::Low);
    }

    fn clear_back_offs(&mut self) {
        self.group += 1;
        self.failures.clear();
        self.runs.iter_mut().for_each(|run| run.early = false);
        for delay in self.delays.clone() {
            if delay.back_off {
                self.delays
                    .retain(|other| other.key != delay.key || other.plain);
                self.enqueue(delay.key, Lane::Low);
            }
        }
        self.delays
            .iter_mut()
            .for_each(|delay| delay.back_off = false);
        self.group += 1;
    }

    fn fire(&mut self) {
        while let Some(first) = self
            .delays
            .iter()
            .filter(|delay| delay.due <= self.now)
            .min_by_key(|delay| delay.due)
            .copied()
        {
            self.delays.retain(|delay| delay.key != first.key);
            let group = std::mem::replace(&mut self.group, first.group);
            self.enqueue(first.key, first.lane);
            self.group = group + 1;
        }
    }

    /// Checks that the queue handed out the key that the twin expects.
    fn take(&mut self, lease: Option<Lease<u32, Marks>>) {
        self.fire();
        let from_low = match (self.high.is_empty(), self.low.is_empty()) {
            (true, true) => {
                assert!(lease.is_none(), "nothing to take: {lease:?}");
                return;
            }
            (true, false) => true,
            (false, true) => {
                self.passed_over = 0;
                false
            }
            (false, false) => self.passed_over + 1 == LOW_LANE_EVERY,
        };
        let lane = if from_low {
            &mut self.low
        } else {
            &mut self.high
        };
        let lease = lease.expect("a key is ready");
        let group = lane[0].group;
        let at = lane
            .iter()
            .position(|queued| queued.key == *lease.key() && queued.group == group);
        let queued = lane.remove(at.unwrap_or_else(|| panic!("{lease:?} is not first")));
        if from_low {
            self.passed_over = 0;
        } else if !self.low.is_empty() {
            self.passed_over += 1;
        }
        let key = queued.key;
        let lane = if from_low { Lane::Low } else { Lane::High };
        assert_eq!(
            (lease.lane(), lease.attempt(), lease.wait()),
            (lane, self.failures(key), self.now - queued.since)
        );
        let tag = self.tags.remove(&key).unwrap_or_default();
        assert_eq!(lease.tag(), tag, "the tags of the adds of {key}");
        let early = self.until(key).is_some_and(|until| until > self.now);
        if !early
            && let Some(failures) = self
                .failures
                .iter_mut()
                .find(|failures| failures.key == key)
        {
            failures.until = None;
        }
        self.delays.retain(|delay| delay.key != key || delay.plain);
        self.floors.retain(|(of, _)| *of != key);
        let (started, dirty_since) = (self.now, self.now);
        self.runs.push(Run {
            key,
            lane,
            started,
            early,
            again: None,
            again_own: false,
            dirty_since,
            lease,
        });
    }

    fn finish(&mut self, at: usize, decision: Decision) {
        let run = &self.runs[at];
        let (key, lane, is_dirty) = (run.key, run.lane, run.again.is_some() || run.again_own);
        match decision {
            Decision::Forget => self.forget(key),
            Decision::Now => self.add(key),
            Decision::After(delay) => {
                self.forget(key);
                if !is_dirty {
                    self.add_after(key, delay);
                }
            }
            Decision::Postpone(delay) if delay.is_zero() => {
                self.delays.retain(|delay| delay.key != key);
                self.enqueue(key, lane);
            }
            Decision::Postpone(delay) => {
                let due = self.now + delay;
                self.hold(key, due, lane);
            }
            Decision::RateLimited {
                at_least,
                not_before,
                anew,
            } => {
                if anew {
                    self.forget(key);
                }
                self.rate_limit(key, at_least, not_before);
            }
        }
        let run = self.runs.remove(at);
        run.lease.finish(decision);
        let queued = Queued {
            key: run.key,
            since: run.dirty_since,
            group: self.group,
        };
        let again = match run.again_own {
            true => Some(Lane::High),
            false => run.again,
        };
        match (again, self.floor(run.key)) {
            (Some(lane), Some(floor)) => self.hold(run.key, floor, lane),
            (Some(Lane::High), None) => self.high.push(queued),
            (Some(Lane::Low), None) => self.low.push(queued),
            (None, _) => {}
        }
    }

    fn stats(&mut self) -> Stats {
        self.fire();
        let ran = |run: &Run| self.now - run.started;
        Stats {
            high: self.high.len(),
            low: self.low.len(),
            delayed: self.delays.len(),
            backing_off: self.delays.iter().filter(|delay| delay.back_off).count(),
            failing: self.failures.len(),
            processing: self.runs.len(),
            longest_running: self.runs.iter().map(ran).max().unwrap_or_default(),
            unfinished: self.runs.iter().map(ran).sum(),
        }
    }

    /// Number of keys that the queue must remember.
    fn known(&self, keys: u32) -> u32 {
        let known = |&key: &u32| {
            self.high
                .iter()
                .chain(&self.low)
                .any(|queued| queued.key == key)
                || self.runs.iter().any(|run| run.key == key)
                || self.delay(key).is_some()
                || self.failures(key) > 0
        };
        (0..keys).filter(known).count() as u32
    }
}

struct Times;

impl Metrics for Times {}

fn decision(random: &mut fastrand::Rng, delay: Duration) -> Decision {
    let mut some = || if random.bool() { delay } else { Duration::ZERO };
    let (at_least, not_before) = (some(), some());
    match random.u32(0..8) {
        0 => Decision::Now,
        1 => Decision::After(at_least),
        2 => Decision::Postpone(at_least),
        3..6 => Decision::RateLimited {
            at_least,
            not_before,
            anew: random.u32(0..4) == 0,
        },
        _ => Decision::Forget,
    }
}

async fn check(seed: u64, steps: u32) {
    let mut random = fastrand::Rng::with_seed(seed);
    // The tags have their own generator, so that they do not change the sequence of operations.
    let mut marks = fastrand::Rng::with_seed(!seed);
    let keys = [2, 8, 40, 200][random.usize(0..4)];
    let back_off = BackOff {
        base: ms(BASE),
        cap: ms(CAP),
    };
    let queue: Queue<u32, Marks> = Queue::new(Config {
        back_off,
        bucket: None,
        metrics: Arc::new(Times),
    });
    let (high, low, runs, delays, failures) = (vec![], vec![], vec![], vec![], vec![]);
    let mut twin = Twin {
        high,
        low,
        runs,
        delays,
        failures,
        floors: vec![],
        tags: HashMap::new(),
        passed_over: 0,
        group: 0,
        now: Instant::now(),
    };
    for step in 0..steps {
        let mut key = random.u32(0..keys);
        // Mostly about a key that a worker holds.
        if !twin.runs.is_empty() && random.bool() {
            key = twin.runs[random.usize(0..twin.runs.len())].key;
        }
        let delay = ms(random.u64(0..40));
        twin.group += 1;
        let tag = Marks::random(&mut marks);
        let tagged = queue.tagged(tag);
        match random.u32(0..100) {
            0..14 => (tagged.add(key), twin.tagged(key, tag).add(key)),
            14..24 => (
                tagged.add_low(key),
                twin.tagged(key, tag).enqueue(key, Lane::Low),
            ),
            24..34 => (
                tagged.add_unless_backing_off(key),
                twin.tagged(key, tag).add_own(key),
            ),
            34..42 => (
                tagged.add_after(key, delay),
                twin.tagged(key, tag).add_after(key, delay),
            ),
            // For keys in a run and for others: only the internal rules accept the latter.
            42..50 => {
                let none = Duration::ZERO;
                let (at_least, not_before) =
                    [(none, none), (delay, none), (none, delay)][random.usize(0..3)];
                rate_limit(&queue, key, at_least, not_before);
                (twin.rate_limit(key, at_least, not_before), ())
            }
            50..57 => (queue.forget(&key), twin.forget(key)),
            57..60 => (queue.clear_back_off(&key), twin.clear_back_off(key)),
            60 => (queue.clear_back_offs(), twin.clear_back_offs()),
            61 => {
                let some: Vec<u32> = (0..random.u32(0..50))
                    .map(|_| random.u32(0..keys))
                    .collect();
                tagged.add_low_all(some.iter().copied());
                // Each key has its own group, because their order is promised.
                for key in some {
                    twin.group += 1;
                    twin.tagged(key, tag).enqueue(key, Lane::Low);
                }
                ((), ())
            }
            62..76 => (twin.take(queue.try_get()), ()),
            76..90 if !twin.runs.is_empty() => {
                let at = random.usize(0..twin.runs.len());
                (twin.finish(at, decision(&mut random, delay)), ())
            }
            90..94 => (
                assert_eq!(queue.stats(), twin.stats(), "seed {seed}, step {step}"),
                (),
            ),
            _ => {
                advance(ms(random.u64(0..20))).await;
                twin.now = Instant::now();
                ((), ())
            }
        };
        assert_eq!(
            queue.num_requeues(&key),
            twin.failures(key),
            "seed {seed}, step {step}"
        );
        if step % 16 != 0 {
            continue;
        }
        let live = queue.shared.with(|state| state.slots.live());
        assert_eq!(
            live,
            twin.known(keys),
            "seed {seed}, step {step}: keys remembered"
        );
    }
    // Drain the queue. It ignores adds from here on, and their tags.
    queue.shut_down();
    let late = queue.tagged(Marks(u64::MAX));
    for key in 0..keys {
        late.add(key);
        late.add_low(key);
        late.add_unless_backing_off(key);
        late.add_after(key, ms(1));
    }
    late.add_low_all(0..keys);
    while !twin.runs.is_empty() {
        twin.finish(0, Decision::Forget);
    }
    twin.delays.clear();
    while !twin.high.is_empty() || !twin.low.is_empty() {
        twin.take(queue.try_get());
        twin.finish(0, Decision::Forget);
    }
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_its_twin() {
    for seed in 0..150 {
        check(seed, 2000).await;
    }
}
