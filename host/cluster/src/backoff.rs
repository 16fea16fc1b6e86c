//! The delay before the next retry, as in client-go's reflector: 800 ms to 30 s. This module must
//! not know what is tried again.

use std::time::Duration;

/// First delay.
const FIRST: Duration = Duration::from_millis(800);
/// Maximum delay.
const LONGEST: Duration = Duration::from_secs(30);

/// An exponential backoff. Each delay is drawn from the upper half of its range, so that hosts that
/// failed together do not retry together.
///
/// Unlike client-go's backoff, this one is not reset by two minutes without a failure: one list may
/// take longer than that, and still fail.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self::up_to(LONGEST)
    }

    /// As [`Backoff::new`], with a lower maximum.
    pub(crate) fn up_to(longest: Duration) -> Self {
        Self {
            next: FIRST,
            longest,
        }
    }

    pub(crate) fn delay(&mut self) -> Duration {
        let ceiling = self.next.min(self.longest);
        self.next = (ceiling * 2).min(self.longest);
        ceiling.mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// Resets the backoff: the next delay is the first one.
    pub(crate) fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_until_they_begin_anew() {
        let mut backoff = Backoff::new();
        for ceiling in [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000] {
            let delay = backoff.delay().as_millis();
            assert!(
                (ceiling / 2..=ceiling).contains(&delay),
                "{delay} for {ceiling}"
            );
        }
        backoff.reset();
        assert!(backoff.delay() <= FIRST);
    }
}
