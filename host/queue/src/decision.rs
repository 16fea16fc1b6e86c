//! What a worker decides about a key at the end of a run. This module knows neither keys nor the
//! queue.

use std::time::Duration;

/// What happens to a key when its run ends; see [`crate::Lease::finish`]. Adds during the run count
/// as well: they queue the key again by their own rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The key succeeded, or its object is gone: the queue drops the key's failures (client-go's
    /// `Forget`). A pending delayed add stays.
    Forget,
    /// The key runs again now, in the high lane. Its failures stay.
    Now,
    /// The key succeeded: the queue drops its failures and runs it again after this delay (`Forget`
    /// and `AddAfter`). A dirty key runs again at once instead, and that run decides about the next
    /// one.
    After(Duration),
    /// The run failed: the key runs again after its backoff or the bucket's wait, whichever is
    /// longer, in the lane of this run, so that a swap that fails for every key does not overtake
    /// fresh changes (`AddRateLimited`).
    ///
    /// A failure does not count if the run cut a backoff short; the retry comes when that backoff
    /// ends.
    RateLimited {
        /// Minimum delay of the retry. As any backoff, it is cut short by [`crate::Queue::add`].
        at_least: Duration,
        /// A server's `Retry-After`: the queue does not hand the key out before this time is over,
        /// whatever adds it, even after [`crate::Queue::clear_back_offs`]. An add within that time
        /// takes effect at its end.
        not_before: Duration,
        /// Restart the backoff at its first step, because the previous failures had another cause.
        anew: bool,
    },
    /// The run did not take place: the key goes back to its lane after this delay. Its failures
    /// stay.
    Postpone(Duration),
}

impl Decision {
    /// The key stands for another object from now on: it runs again at once, without the failures
    /// and the backoff of the one before.
    pub const ANEW: Self = Self::After(Duration::ZERO);

    /// A failure with the key's backoff and no minimum delay.
    pub const RATE_LIMITED: Self = Self::RateLimited {
        at_least: Duration::ZERO,
        not_before: Duration::ZERO,
        anew: false,
    };
}
