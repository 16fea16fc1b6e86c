//! A world in which nothing happens by itself: the clock stands still, and chance is the same each time. It must not know what is called in it.

use std::cell::Cell;
use std::time::Duration;

use wasmtime_wasi::{Deterministic, HostMonotonicClock, HostWallClock, WasiCtxBuilder};

/// Which time and chance a guest meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum World {
    /// The machine's.
    Real,
    /// The same for every instance.
    Still,
}

/// What the wall clock says: 2000-01-01T00:00:00Z.
const NOW: Duration = Duration::from_secs(946_684_800);

/// What the monotonic clock goes on at each look: a guest that waits until some time has passed does not wait for ever.
const STEP: u64 = 1_000_000;

/// What seeds a guest's hash maps, and the generators below.
const SEED: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834;

/// Bytes of chance before they repeat themselves.
const CHANCE: usize = 1024;

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

/// Takes time and chance out of a context.
pub(crate) fn still(wasi: &mut WasiCtxBuilder) {
    wasi.wall_clock(StillClock)
        .monotonic_clock(CountingClock(Cell::default()))
        .secure_random(Deterministic::new(chance()))
        .insecure_random(Deterministic::new(chance()))
        .insecure_random_seed(SEED);
}

/// Bytes without a pattern (Marsaglia's xorshift), always the same.
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
