//! The journal: a record of each turn, and the changes that woke its key, in memory and bounded in
//! bytes. `vmhost why`, the warnings and the page read it.
//!
//! ```text
//! notice, timer, swap -> WakeTag (12 bytes in the queue's slot) -> Lease -> TurnRecord -> Journal
//!    |                                                                                      |
//!    +-> WakeLog -------------------------------------------------------------- story <-----+
//!                                                                                 |
//!                                                                    redact: the only way out
//! ```
//! Each thread of workers has its own part, so that workers share no memory that they write. A part
//! has three shares: turns, failed turns (so that a swap of all keys does not push them out), and
//! quiet turns, of which only the last of a key is kept, with a count. Reviews that were denied or
//! not answered, which other threads record, are in a part of their own. They take at most half of
//! the share of failed turns, in equal shares from all parts, and nothing if there are none.
//!
//! This module must not know queues or plugins, and nothing reads the journal on the hot path.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Instant, SystemTime};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use vmhost_core::{ObjectName, Striped};

pub mod case;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod form;
pub(crate) mod managers;
pub(crate) mod path;
mod paths;
pub(crate) mod record;
pub(crate) mod redact;
mod ring;
pub mod sensitive;
pub mod shown;
pub mod story;
pub mod tag;
pub(crate) mod tell;
pub(crate) mod wakes;
pub(crate) mod warnings;
pub mod watch;
mod woken;

use record::{AnswerEnd, Quiet, TurnRecord};
use ring::{Kept, Ring};
use wakes::{WakeLog, Wakened};

/// The default of `--record-bytes`.
pub const RECORD_BYTES: usize = 4 << 20;

/// Eighths of the budget: for the wake log, failed turns, quiet turns and all others.
const WAKES: usize = 2;
const FAILED: usize = 2;
const QUIET: usize = 1;
const TURNS: usize = 3;

/// For each place for quiet turns, so many bytes of names may be kept; all places share them.
const NAME: usize = 48;

/// The journal of a host; see the module.
#[derive(Debug)]
pub(crate) struct Journal {
    parts: Striped<Mutex<Part>>,
    reviews: Mutex<Reviews>,
    /// The bytes that reviews take from the share of failed turns of each part.
    reviewed: AtomicUsize,
    /// The changes that woke keys.
    pub(crate) wakes: Arc<WakeLog>,
    shares: Shares,
    /// Two clocks read at one time, to convert from one to the other.
    start: (Instant, SystemTime),
}

/// The bytes of one part's shares.
#[derive(Clone, Copy, Debug)]
struct Shares {
    turns: usize,
    failed: usize,
    quiet: usize,
    /// The bytes of reviews.
    reviews: usize,
    /// How many parts there are.
    threads: usize,
}

/// The records of one thread.
#[derive(Debug, Default)]
struct Part {
    turns: Ring<TurnRecord>,
    failed: Ring<TurnRecord>,
    /// One place for each value of the shortened hash of a key. Of several keys with the same
    /// value, the last record stays.
    quiet: Vec<Option<Quiet>>,
    /// With a key of its own, so that names cannot be chosen to make way for one another.
    hasher: RandomState,
    /// The bytes of the names of the keys in `quiet`.
    names: usize,
    /// The place at which room for long names is made next.
    hand: usize,
    /// Number of quiet turns.
    quiet_turns: u64,
    /// Whether a key's quiet turns were dropped for those of another key, or controller.
    quiet_gone: bool,
    /// Number of records that were dropped for newer ones.
    dropped: u64,
}

impl Part {
    /// Records a quiet turn, in at most this many bytes together with all others.
    fn quiet(&mut self, turn: Quiet, most: usize) {
        self.quiet_turns += 1;
        if self.quiet.is_empty() {
            let places = most / (size_of::<Option<Quiet>>() + NAME);
            self.quiet.resize(places.max(1), None);
        }
        let hash = self.hasher.hash_one(&turn.key) as usize;
        let at = hash % self.quiet.len();
        let place = &mut self.quiet[at];
        if let Some(known) = place
            && known.is_of(&turn)
        {
            known.add(turn);
            return;
        }
        self.quiet_gone |= place.as_ref().is_some_and(|known| !known.is_of_key(&turn));
        self.names += turn.key.as_str().len();
        let before = place.replace(turn);
        self.names -= before.map_or(0, |before| before.key.as_str().len());
        self.make_room(at);
    }

    /// Drops records whose names leave no room for those of others, but not the one at this place.
    fn make_room(&mut self, keep: usize) {
        let places = self.quiet.len();
        let mut left = places;
        while self.names > places * NAME && left > 0 {
            left -= 1;
            self.hand = (self.hand + 1) % places;
            if self.hand != keep
                && let Some(gone) = self.quiet[self.hand].take()
            {
                self.names -= gone.key.as_str().len();
                self.quiet_gone = true;
            }
        }
    }
}

impl Kept for TurnRecord {
    fn size(&self) -> usize {
        self.bytes()
    }
}

/// Reviews that were denied or not answered.
#[derive(Debug, Default)]
struct Reviews {
    ring: Ring<TurnRecord>,
    /// Number of records that were dropped for newer ones.
    dropped: u64,
}

impl Journal {
    /// Creates a journal of at most this many bytes, which this many threads write. With 0 bytes
    /// nothing is kept.
    pub(crate) fn new(bytes: usize, threads: usize) -> Self {
        let (eighth, threads) = (bytes / 8, threads.max(1));
        let of = |eighths: usize| eighth * eighths / threads;
        Self {
            parts: Striped::default(),
            reviews: Mutex::default(),
            reviewed: AtomicUsize::new(0),
            wakes: Arc::new(WakeLog::new(eighth * WAKES)),
            shares: Shares {
                turns: of(TURNS),
                failed: of(FAILED),
                quiet: of(QUIET),
                reviews: eighth * FAILED / 2,
                threads,
            },
            start: (Instant::now(), SystemTime::now()),
        }
    }

    /// Returns whether records are kept.
    pub(crate) fn is_on(&self) -> bool {
        self.shares.turns > 0
    }

    /// Records a turn that did something, or failed. Above [`record::LARGEST`] bytes, or a quarter
    /// of the smallest share, digests take the place of its texts.
    pub(crate) fn turn(&self, mut turn: TurnRecord) {
        if !self.is_on() {
            return;
        }
        if turn.trace.cut || turn.bytes() > record::LARGEST.min(self.shares.failed / 4) {
            turn.cut();
        }
        let turn = Box::new(turn);
        let mut gone = Vec::new();
        let mut part = self.parts.mine().lock();
        if turn.is_failure() {
            part.failed.push(turn, self.most_failed(), &mut gone);
        } else {
            part.turns.push(turn, self.shares.turns, &mut gone);
        }
        part.dropped += gone.len() as u64;
        // Freed after the lock is released.
        drop(part);
    }

    /// The bytes that a part may have of failed turns. To be read with the lock of the part, so
    /// that reviews which come later find the part's turn in it.
    fn most_failed(&self) -> usize {
        let reviewed = self.reviewed.load(Ordering::Relaxed);
        self.shares.failed.saturating_sub(reviewed)
    }

    /// Records a review that was denied or not answered, without its objects. However many come,
    /// they push out no turns but failed ones above half of the share of those.
    pub(crate) fn review(&self, mut review: TurnRecord) {
        review.cut();
        let review = Box::new(review);
        let mut gone = Vec::new();
        let mut reviews = self.reviews.lock();
        let ring = &mut reviews.ring;
        ring.push(review, self.shares.reviews, &mut gone);
        let taken = ring.bytes.div_ceil(self.shares.threads);
        reviews.dropped += gone.len() as u64;
        let before = self.reviewed.swap(taken, Ordering::Relaxed);
        if taken > before {
            // Until the ring is full; then a review makes way for another one.
            for part in self.parts.iter() {
                let (mut part, kept) = (part.lock(), gone.len());
                part.failed.shrink(self.most_failed(), &mut gone);
                part.dropped += (gone.len() - kept) as u64;
            }
        }
        // Freed after the locks are released.
        drop(reviews);
    }

    /// Records a turn that did nothing and succeeded.
    pub(crate) fn quiet(&self, turn: Quiet) {
        if !self.is_on() {
            return;
        }
        self.parts.mine().lock().quiet(turn, self.shares.quiet);
    }

    /// The records of a key, in the order in which the turns began.
    pub(crate) fn of(&self, controller: &str, key: &ObjectName) -> (Vec<TurnRecord>, Vec<Quiet>) {
        self.pick(
            |turn| turn.key == *key && &*turn.origin.controller == controller,
            |quiet| quiet.key == *key && &*quiet.origin.controller == controller,
        )
    }

    /// The changes that woke a key, as far as they are still logged. `turns` are the records of the
    /// key, which tell which changes were the controller's own.
    pub(crate) fn woken(
        &self,
        controller: &str,
        key: &ObjectName,
        turns: &[TurnRecord],
    ) -> Vec<Wakened> {
        let is_about = |change: &Wakened| change.key == *key && &*change.controller == controller;
        let mut woken = self.wakes.pick(is_about);
        mark_own(&mut woken, turns);
        woken
    }

    /// The records of all turns that ended after `then`, in the order in which the turns began.
    pub(crate) fn since(&self, then: Instant) -> (Vec<TurnRecord>, Vec<Quiet>) {
        self.pick(|turn| turn.ended() > then, |quiet| quiet.ended() > then)
    }

    /// The records that these functions accept, in the order in which the turns began.
    pub(crate) fn pick(
        &self,
        turns: impl Fn(&TurnRecord) -> bool,
        quiet: impl Fn(&Quiet) -> bool,
    ) -> (Vec<TurnRecord>, Vec<Quiet>) {
        let mut found = (Vec::new(), Vec::new());
        self.walk(
            |record| {
                if turns(record) {
                    found.0.push(record.clone());
                }
            },
            |record| {
                if quiet(record) {
                    found.1.push(record.clone());
                }
            },
        );
        found.0.sort_by_key(|turn| turn.began);
        found.1.sort_by_key(|turn| turn.began);
        found
    }

    /// Calls the functions with each record, in no order. Workers wait in the meantime, so the
    /// functions must be quick.
    pub(crate) fn walk(&self, mut turns: impl FnMut(&TurnRecord), mut quiet: impl FnMut(&Quiet)) {
        for part in self.parts.iter() {
            let part = part.lock();
            let rings = [&part.turns, &part.failed];
            let records = rings.into_iter().flat_map(|ring| &ring.records);
            records.for_each(|record| turns(record));
            part.quiet.iter().flatten().for_each(&mut quiet);
        }
        let reviews = self.reviews.lock();
        reviews.ring.records.iter().for_each(|record| turns(record));
    }

    /// The number of quiet turns, and the number of records that were dropped for newer ones.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let counts = self.parts.iter().map(|part| {
            let part = part.lock();
            (part.quiet_turns, part.dropped)
        });
        let reviews = (0, self.reviews.lock().dropped);
        counts.fold(reviews, |all, one| (all.0 + one.0, all.1 + one.1))
    }

    /// Returns whether keys may have had turns of which there is no record any more.
    pub(crate) fn has_gaps(&self) -> bool {
        self.counts().1 > 0 || self.parts.iter().any(|part| part.lock().quiet_gone)
    }

    /// Converts a time of a record to the time of day.
    pub(crate) fn time(&self, at: Instant) -> SystemTime {
        let (start, then) = self.start;
        then + at.saturating_duration_since(start)
    }
}

/// Marks the changes of a key that the recorded turns of the key wrote. This is not done when an
/// event arrives, because its write may not be answered yet.
fn mark_own(woken: &mut [Wakened], turns: &[TurnRecord]) {
    mark(woken, &turns.iter().flat_map(written).collect());
}

/// Marks the changes to these versions.
fn mark(woken: &mut [Wakened], versions: &HashSet<u64>) {
    for change in woken {
        let new = change.new.as_ref();
        change.own = new.is_some_and(|new| versions.contains(&new.version));
    }
}

/// The versions that the turn wrote.
fn written(turn: &TurnRecord) -> impl Iterator<Item = u64> {
    turn.answers.iter().filter_map(|answer| match answer.end {
        AnswerEnd::Written(version) => Some(version),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
