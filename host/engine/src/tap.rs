//! Gives a guest the clocks and random numbers of the machine, and notes each draw, so that the
//! host can run the call again with the same ones. This module must not know which function is
//! called.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng, TryRng};
use vmhost_core::trace::Drawn;
use wasmtime_wasi::clocks::{MonotonicClock, WallClock};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtxBuilder};

/// The notes of one guest. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Taps(Arc<Notes>);

#[derive(Default)]
struct Notes {
    /// Whether there is a note. Most calls draw nothing, and their end must not cost a lock.
    any: AtomicBool,
    drawn: Mutex<Drawn>,
}

impl Taps {
    /// Returns the notes since the last call of this function, if there are any.
    pub(crate) fn take(&self) -> Option<Drawn> {
        if !self.0.any.load(Ordering::Relaxed) {
            return None;
        }
        self.0.any.store(false, Ordering::Relaxed);
        Some(std::mem::take(&mut self.0.drawn.lock()))
    }

    fn note(&self, note: impl FnOnce(&mut Drawn)) {
        self.0.any.store(true, Ordering::Relaxed);
        note(&mut self.0.drawn.lock());
    }

    fn reading(&self, of: impl FnOnce(&mut Drawn) -> &mut Vec<u64>, reading: u64) {
        self.note(|drawn| {
            let readings = of(drawn);
            let is_full = readings.len() >= Drawn::MOST;
            if !is_full {
                readings.push(reading);
            }
            drawn.cut |= is_full;
        });
    }

    /// Notes a reading of the wall clock.
    pub(crate) fn wall(&self, nanos: u64) {
        self.reading(|drawn| &mut drawn.wall, nanos);
    }

    /// Notes a reading of the monotonic clock.
    pub(crate) fn monotonic(&self, nanos: u64) {
        self.reading(|drawn| &mut drawn.monotonic, nanos);
    }

    /// Notes random bytes.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        self.note(|drawn| {
            // If bytes were left out in between, a replay would give these bytes to the wrong draw.
            drawn.cut |= drawn.random.len() + bytes.len() > Drawn::MOST;
            if !drawn.cut {
                drawn.random.extend_from_slice(bytes);
            }
        });
    }
}

/// Gives a guest the machine's clocks and random numbers. Returns the notes, and the seed.
pub(crate) fn tapped(wasi: &mut WasiCtxBuilder) -> (Taps, u128) {
    let taps = Taps::default();
    let seed = rand::random();
    wasi.wall_clock(Wall(taps.clone(), WallClock))
        .monotonic_clock(Monotonic(taps.clone(), MonotonicClock::default()))
        .secure_random(Chance(taps.clone(), fresh()))
        .insecure_random(Chance(taps.clone(), fresh()))
        .insecure_random_seed(seed);
    (taps, seed)
}

fn fresh() -> StdRng {
    StdRng::from_rng(&mut rand::rng())
}

struct Wall(Taps, WallClock);

impl HostWallClock for Wall {
    fn resolution(&self) -> Duration {
        self.1.resolution()
    }

    fn now(&self) -> Duration {
        let now = self.1.now();
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.0.wall(nanos);
        now
    }
}

struct Monotonic(Taps, MonotonicClock);

impl HostMonotonicClock for Monotonic {
    fn resolution(&self) -> u64 {
        self.1.resolution()
    }

    fn now(&self) -> u64 {
        let now = self.1.now();
        self.0.monotonic(now);
        now
    }
}

/// Random numbers. Each is noted as its bytes in little-endian order.
struct Chance(Taps, StdRng);

impl TryRng for Chance {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let number = self.1.next_u32();
        self.0.bytes(&number.to_le_bytes());
        Ok(number)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let number = self.1.next_u64();
        self.0.bytes(&number.to_le_bytes());
        Ok(number)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.1.fill_bytes(bytes);
        self.0.bytes(bytes);
        Ok(())
    }
}
