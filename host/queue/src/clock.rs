//! The queue's clock. It is read at most once in a hold of the lock, because reading it costs more
//! than the rest of an add. This module does not know what the times are for.

use std::time::Duration;

use tokio::time::Instant;

use crate::limit::nanos;

/// A clock in nanoseconds since it was created. No time is 0.
pub(crate) struct Clock {
    /// Time zero: one nanosecond before the clock was created.
    epoch: Instant,
    /// The time of this hold of the lock; 0 until it is first read.
    read: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            epoch: now.checked_sub(Duration::from_nanos(1)).unwrap_or(now),
            read: 0,
        }
    }

    /// Begins a hold of the lock.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.read = 0;
    }

    /// The time, which stands still throughout a hold of the lock.
    #[inline]
    pub(crate) fn now(&mut self) -> u64 {
        if self.read == 0 {
            self.read = nanos(Instant::now().saturating_duration_since(self.epoch));
        }
        self.read
    }

    /// Converts a time of this clock to an instant for a sleep, at most a year ahead; the sleeper
    /// then checks again.
    pub(crate) fn instant(&self, time: u64) -> Instant {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        let now = Instant::now();
        self.epoch
            .checked_add(Duration::from_nanos(time))
            .unwrap_or(now + YEAR)
            .min(now + YEAR)
    }
}
