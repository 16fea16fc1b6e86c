//! A frozen environment: the clock stands still, and random numbers are always the same. This
//! module must not know which function is called in it.

use std::cell::Cell;
use std::time::Duration;

use wasmtime_wasi::{Deterministic, HostMonotonicClock, HostWallClock, WasiCtxBuilder};

/// The wall clock: 2000-01-01T00:00:00Z.
const NOW: Duration = Duration::from_secs(946_684_800);

/// How far the monotonic clock advances with each read, in nanoseconds. A guest that waits for some
/// time to pass does not wait forever.
pub(crate) const STEP: u64 = 1_000_000;

/// The seed of a guest's hash maps and of the generators below.
const SEED: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834;

/// The number of random bytes before they repeat.
const CHANCE: usize = 1024;

/// The time that the wall clock shows, in nanoseconds since 1970.
pub(crate) fn still_time() -> u64 {
    NOW.as_nanos() as u64
}

struct StillClock;

impl HostWallClock for StillClock {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        NOW
    }
}

struct CountingClock(Cell<u64>);

impl HostMonotonicClock for CountingClock {
    fn resolution(&self) -> u64 {
        STEP
    }

    fn now(&self) -> u64 {
        let now = self.0.get() + STEP;
        self.0.set(now);
        now
    }
}

/// Replaces the clocks and random numbers of a WASI context.
pub(crate) fn still(wasi: &mut WasiCtxBuilder) {
    wasi.wall_clock(StillClock)
        .monotonic_clock(CountingClock(Cell::default()))
        .secure_random(Deterministic::new(chance()))
        .insecure_random(Deterministic::new(chance()))
        .insecure_random_seed(SEED);
}

/// Returns pseudo-random bytes (Marsaglia's xorshift), always the same.
fn chance() -> Vec<u8> {
    let mut state = SEED as u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(CHANCE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_depends_on_when_it_is_asked() {
        assert_eq!(chance(), chance());
        assert!(chance().iter().any(|byte| *byte != chance()[0]));
        let clock = CountingClock(Cell::default());
        assert_eq!((clock.now(), clock.now()), (STEP, 2 * STEP));
        assert_eq!(StillClock.now(), StillClock.now());
    }
}
