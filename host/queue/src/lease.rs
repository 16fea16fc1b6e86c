//! A key that a worker has. Knows only how to give it back.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::metrics::Lane;
use crate::state::Taken;
use crate::wait::Shared;

/// The right to process a key: nobody else gets the key until this is dropped (client-go's `Done`), be it by a panic. A key
/// that was added meanwhile then goes back into its lane.
///
/// Say what comes next ([`crate::Queue::forget`], [`crate::Queue::add_after`], [`crate::Queue::add_rate_limited`]) before the
/// drop: the rules on back-off look at the run that is going on.
#[must_use = "dropping the lease ends the run"]
pub struct Lease<K> {
    shared: Arc<Shared<K>>,
    /// Stays that of the key while the key runs.
    slot: u32,
    key: K,
    attempt: u32,
    lane: Lane,
    wait: Duration,
}

impl<K> Lease<K> {
    pub(crate) fn new(shared: Arc<Shared<K>>, taken: Taken<K>) -> Self {
        let Taken {
            slot,
            key,
            attempt,
            lane,
            wait,
        } = taken;
        Self {
            shared,
            slot,
            key,
            attempt,
            lane,
            wait,
        }
    }

    /// The key.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Failures of the key when it was taken, as [`crate::Queue::num_requeues`].
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The lane in which the key waited.
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// How long the key waited, from the add that made it dirty (`workqueue_queue_duration_seconds`). Zero if the metrics want no times.
    pub fn wait(&self) -> Duration {
        self.wait
    }
}

impl<K> Drop for Lease<K> {
    fn drop(&mut self) {
        self.shared.with(|state| state.done(self.slot));
    }
}

impl<K: fmt::Debug> fmt::Debug for Lease<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("key", &self.key)
            .field("attempt", &self.attempt)
            .field("lane", &self.lane)
            .finish()
    }
}
