//! How long the thread of a shadow rests after a call of the candidate. This module must not know
//! what a call does.

use std::time::Duration;

/// How long the thread sleeps after a call that failed, times the number of failed calls in the
/// sum, and at most. The instance of such a call is given back to the kernel, which holds up the
/// threads that use memory for the first time; turns that come meanwhile are dropped and counted.
const REST: Duration = Duration::from_millis(1);
const RESTS: u32 = 100;

/// So many calls that return make up for one that failed: a candidate that fails one call in ten
/// rests as long as one that always fails, and one that fails one in a hundred hardly rests.
const MAKE_UP: u32 = 32;

/// The failed calls of late.
#[derive(Debug, Default)]
pub(super) struct Rests {
    /// In parts of a failed call, of which each call that returns takes one.
    failed: u32,
}

impl Rests {
    /// Counts a call. Returns how long to rest after it.
    pub(super) fn after(&mut self, failed: bool) -> Option<Duration> {
        if !failed {
            self.failed = self.failed.saturating_sub(1);
            return None;
        }
        self.failed = (self.failed + MAKE_UP).min(RESTS * MAKE_UP);
        Some(REST * self.failed.div_ceil(MAKE_UP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the longest rest in this many calls, each `every`th of which fails.
    fn longest(calls: u32, every: u32) -> Duration {
        let mut rests = Rests::default();
        let all = (1..=calls).filter_map(|call| rests.after(call % every == 0));
        all.max().unwrap_or_default()
    }

    #[test]
    fn the_more_calls_fail_the_longer_it_rests() {
        let ms = Duration::from_millis;
        assert_eq!(longest(3, 1), ms(3));
        assert_eq!(longest(100_000, 1), ms(100), "it goes on trying");
        assert_eq!(longest(100_000, 2), ms(100));
        assert_eq!(longest(100_000, 10), ms(100));
        assert_eq!(longest(100_000, 100), ms(1));
        assert_eq!(longest(100_000, 100_001), ms(0));
    }
}
