//! Gives a guest the clock readings and random numbers of a record, so that a recorded call can be
//! made again. This module must not know which function is called, or where a record comes from.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand::TryRng;
use vmhost_core::Trace;
use vmhost_core::trace::Drawn;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtxBuilder};

use crate::still::{STEP, still, still_time};
use crate::tap::Taps;

/// The clock readings and random numbers of a recorded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The time that the wall clock shows if the record has no reading of it, in nanoseconds since
    /// 1970.
    pub now: u64,
    /// The seed that the guest may ask for. `None` if no random numbers are recorded; then the
    /// guest gets the same ones in each call, as without a record.
    pub seed: Option<u128>,
    /// What the instance drew while it started.
    pub start: Drawn,
    /// What the call drew.
    pub call: Drawn,
}

/// How the draws of a call that was made again differ from those of its record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draws {
    /// The call drew more than is recorded. It then got clock readings one millisecond apart, and
    /// zeros as random bytes.
    pub more: bool,
    /// The call drew less than is recorded.
    pub less: bool,
}

impl Default for Told {
    /// An empty record: the guest gets the time and the random numbers of a call without a record.
    fn default() -> Self {
        Self {
            now: still_time(),
            seed: None,
            start: Drawn::default(),
            call: Drawn::default(),
        }
    }
}

impl Told {
    /// Compares the draws of a call with those of the record.
    pub(crate) fn compare(&self, trace: &Trace) -> Draws {
        let mut draws = Draws::default();
        if let Some(start) = &trace.start {
            draws.add(&self.start, &start.drawn, self.seed.is_some());
            draws.add(&self.call, &trace.drawn, self.seed.is_some());
        }
        draws
    }
}

impl Draws {
    fn add(&mut self, recorded: &Drawn, drawn: &Drawn, has_random: bool) {
        let mut counts = vec![
            (recorded.wall.len(), drawn.wall.len()),
            (recorded.monotonic.len(), drawn.monotonic.len()),
        ];
        if has_random {
            counts.push((recorded.random.len(), drawn.random.len()));
        }
        let is_more = |(recorded, drawn): &(usize, usize)| recorded < drawn;
        let is_less = |(recorded, drawn): &(usize, usize)| recorded > drawn;
        self.more |= (drawn.cut && !recorded.cut) || counts.iter().any(is_more);
        self.less |= counts.iter().any(is_less);
    }
}

/// The part of a record that the guest has not drawn yet. Clones share it.
#[derive(Clone)]
pub(crate) struct Tape(Arc<Shared>);

struct Shared {
    told: Arc<Told>,
    left: Mutex<Left>,
}

#[derive(Default)]
struct Left {
    wall: Readings,
    monotonic: Readings,
    random: VecDeque<u8>,
}

#[derive(Default)]
struct Readings {
    recorded: VecDeque<u64>,
    /// The next reading after the recorded ones.
    next: u64,
}

impl Readings {
    fn read(&mut self) -> u64 {
        let now = self.recorded.pop_front().unwrap_or(self.next);
        self.next = now.saturating_add(STEP);
        now
    }
}

impl Tape {
    /// Creates the tape of a guest that is about to be instantiated.
    fn new(told: Arc<Told>) -> Self {
        let mut left = Left::default();
        left.monotonic.next = STEP;
        left.turn_to(&told.start, told.now);
        let left = Mutex::new(left);
        Self(Arc::new(Shared { told, left }))
    }

    /// Begins the call. What is left of the record of the start is dropped.
    pub(crate) fn begin(&self) {
        let Shared { told, left } = &*self.0;
        left.lock().turn_to(&told.call, told.now);
    }

    fn fill(&self, bytes: &mut [u8]) {
        let mut left = self.0.left.lock();
        for byte in bytes {
            *byte = left.random.pop_front().unwrap_or_default();
        }
    }
}

impl Left {
    fn turn_to(&mut self, drawn: &Drawn, now: u64) {
        self.wall = Readings {
            recorded: drawn.wall.clone().into(),
            next: now,
        };
        self.monotonic.recorded = drawn.monotonic.clone().into();
        self.random = drawn.random.clone().into();
    }
}

/// Gives a guest the clock readings and random numbers of a record. Returns the notes of its draws,
/// the seed, and the tape.
pub(crate) fn tell(wasi: &mut WasiCtxBuilder, told: Arc<Told>) -> (Taps, u128, Tape) {
    let seed = told.seed;
    let (taps, tape) = (Taps::default(), Tape::new(told));
    // For a record without random numbers; the clocks are replaced.
    still(wasi);
    wasi.wall_clock(Wall(taps.clone(), tape.clone()))
        .monotonic_clock(Monotonic(taps.clone(), tape.clone()));
    if let Some(seed) = seed {
        wasi.secure_random(Chance(taps.clone(), tape.clone()))
            .insecure_random(Chance(taps.clone(), tape.clone()))
            .insecure_random_seed(seed);
    }
    (taps, seed.unwrap_or_default(), tape)
}

struct Wall(Taps, Tape);

impl HostWallClock for Wall {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn now(&self) -> Duration {
        let now = self.1.0.left.lock().wall.read();
        self.0.wall(now);
        Duration::from_nanos(now)
    }
}

struct Monotonic(Taps, Tape);

impl HostMonotonicClock for Monotonic {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        let now = self.1.0.left.lock().monotonic.read();
        self.0.monotonic(now);
        now
    }
}

/// Random numbers, made from the recorded bytes as the taps note them: in little-endian order.
struct Chance(Taps, Tape);

impl Chance {
    fn draw(&self, bytes: &mut [u8]) {
        self.1.fill(bytes);
        self.0.bytes(bytes);
    }
}

impl TryRng for Chance {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.draw(&mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.draw(&mut bytes);
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.draw(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
