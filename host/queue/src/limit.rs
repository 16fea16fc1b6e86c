//! How long a failed key waits: an exponential backoff per key, and a token bucket shared by all
//! keys.
//!
//! This is client-go's `default_rate_limiters.go`: `ItemExponentialFailureRateLimiter` and
//! `BucketRateLimiter`; the longer wait counts. All arithmetic saturates. This module does not know
//! keys: callers pass the failure count, and times are in nanoseconds.

use std::time::Duration;

/// The wait after a failure: `base * 2^failures`, at most `cap`. Without jitter: the keys of one
/// outage differ by their failure counts, and the [`Bucket`], if set, spreads them further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// The wait after the first failure.
    pub base: Duration,
    /// The maximum wait.
    pub cap: Duration,
}

impl Default for BackOff {
    /// As in client-go: 5 ms to 1000 s.
    fn default() -> Self {
        Self {
            base: Duration::from_millis(5),
            cap: Duration::from_secs(1000),
        }
    }
}

impl BackOff {
    /// The wait in nanoseconds of a key with this many failures before the latest one.
    pub(crate) fn delay(&self, failures: u32) -> u64 {
        let delay = u128::from(nanos(self.base)) << failures.min(63);
        u64::try_from(delay)
            .unwrap_or(u64::MAX)
            .min(nanos(self.cap))
    }
}

/// A rate limit over the retries of all keys: `burst` at once, then `rate_per_second`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// Average retries per second. Zero, negative values and not-a-number mean one retry in 584
    /// years.
    pub rate_per_second: f64,
    /// Maximum number of retries at once after an idle time.
    pub burst: u32,
}

impl Default for Bucket {
    /// As in client-go: 10 per second, burst 100.
    fn default() -> Self {
        Self {
            rate_per_second: 10.0,
            burst: 100,
        }
    }
}

/// The state of a bucket. As in `golang.org/x/time/rate`, each caller takes a token at once and
/// learns how long to wait for it.
pub(crate) struct Tokens {
    /// Nanoseconds per token.
    interval: i128,
    /// `burst` tokens, in nanoseconds.
    full: i128,
    /// The time at which the bucket was or will be exactly empty; the tokens are the intervals
    /// since then.
    empty_at: i128,
}

impl Tokens {
    pub(crate) fn new(bucket: Bucket) -> Self {
        // A cast from a float saturates; `max` also turns not-a-number into zero.
        let interval = i128::from((1e9 / bucket.rate_per_second.max(0.0)) as u64).max(1);
        let full = interval * i128::from(bucket.burst);
        Self {
            interval,
            full,
            empty_at: -full,
        }
    }

    /// Takes a token and returns how long to wait for it, in nanoseconds.
    pub(crate) fn take(&mut self, now: u64) -> u64 {
        let now = i128::from(now);
        self.empty_at = self
            .empty_at
            .max(now - self.full)
            .saturating_add(self.interval);
        u64::try_from((self.empty_at - now).max(0)).unwrap_or(u64::MAX)
    }
}

/// Converts a duration to nanoseconds, saturating at 584 years.
pub(crate) fn nanos(duration: Duration) -> u64 {
    let seconds = duration.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(u64::from(duration.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn back_off_doubles_to_its_cap_and_never_overflows() {
        let back_off = BackOff::default();
        for (failures, expected) in [
            (0, 5),
            (1, 10),
            (2, 20),
            (17, 655_360),
            (18, 1_000_000),
            (64, 1_000_000),
            (u32::MAX, 1_000_000),
        ] {
            assert_eq!(back_off.delay(failures), expected * MS, "after {failures}");
        }
        let endless = BackOff {
            base: Duration::MAX,
            cap: Duration::MAX,
        };
        assert_eq!(endless.delay(u32::MAX), u64::MAX);
        assert_eq!(
            BackOff {
                base: Duration::ZERO,
                ..endless
            }
            .delay(u32::MAX),
            0
        );
    }

    #[test]
    fn bucket_lets_a_burst_pass_then_paces() {
        let mut tokens = Tokens::new(Bucket {
            rate_per_second: 10.0,
            burst: 3,
        });
        let waits: Vec<u64> = (0..5).map(|_| tokens.take(0) / MS).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
        assert_eq!(tokens.take(150 * MS), 150 * MS);
        assert_eq!(tokens.take(60_000 * MS), 0);
        let mut never = Tokens::new(Bucket {
            rate_per_second: f64::NAN,
            burst: 0,
        });
        assert!(never.take(0) > 0 && never.take(u64::MAX) > 0);
    }
}
