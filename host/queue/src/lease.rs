//! **Done.** A key that a worker holds. This module knows only how to return the key.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::decision::Decision;
use crate::metrics::Lane;
use crate::state::Taken;
use crate::tag::Tag;
use crate::wait::Shared;

/// The right to process a key: no other worker gets the key until [`Lease::finish`] ends the lease.
/// A key that was added meanwhile then goes back into its lane.
///
/// A lease that is dropped without a decision, as in a panic, ends its run as a failure:
/// [`Decision::RATE_LIMITED`].
#[must_use = "dropping the lease ends the run as a failure"]
pub struct Lease<K, T: Tag = ()> {
    shared: Arc<Shared<K, T>>,
    /// The key's slot, which does not change while the key runs.
    slot: u32,
    key: K,
    tag: T,
    attempt: u32,
    lane: Lane,
    wait: Duration,
    decision: Decision,
}

impl<K, T: Tag> Lease<K, T> {
    pub(crate) fn new(shared: Arc<Shared<K, T>>, taken: Taken<K, T>) -> Self {
        let Taken {
            slot,
            key,
            tag,
            attempt,
            lane,
            wait,
        } = taken;
        Self {
            shared,
            slot,
            key,
            tag,
            attempt,
            lane,
            wait,
            decision: Decision::RATE_LIMITED,
        }
    }

    /// Ends the run (client-go's `Done`) with a decision about the key.
    pub fn finish(mut self, decision: Decision) {
        self.decision = decision;
        // `drop` does the rest.
    }

    /// The key.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The tags of all adds of the key since it was last taken, joined.
    pub fn tag(&self) -> T {
        self.tag
    }

    /// The key's failures when it was taken, as [`crate::Queue::num_requeues`].
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The lane in which the key waited.
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// How long the key waited since the add that made it dirty
    /// (`workqueue_queue_duration_seconds`). Zero if the metrics need no times.
    pub fn wait(&self) -> Duration {
        self.wait
    }
}

impl<K, T: Tag> Drop for Lease<K, T> {
    fn drop(&mut self) {
        self.shared
            .with(|state| state.finish(self.slot, self.decision));
    }
}

impl<K: fmt::Debug, T: Tag> fmt::Debug for Lease<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("key", &self.key)
            .field("attempt", &self.attempt)
            .field("lane", &self.lane)
            .finish()
    }
}
