//! Tests of the whole queue through its handle. Time is paused: nothing here sleeps for real.

mod model;
mod rules;
mod stress;
mod waiting;

use std::hash::Hash;
use std::time::Duration;

use tokio::time::advance;

use crate::limit::nanos;
use crate::state::Phase;
use crate::{Config, Decision, Lane, Queue, Tag};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Builds a queue with string keys.
fn queue() -> Queue<&'static str> {
    Queue::new(Config::default())
}

/// Takes all ready keys and ends each run at once.
fn take_all(queue: &Queue<&'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| {
        let lease = queue.try_get()?;
        let key = *lease.key();
        lease.finish(Decision::Forget);
        Some(key)
    })
    .collect()
}

/// Advances the time and takes all ready keys.
async fn after(queue: &Queue<&'static str>, millis: u64) -> Vec<&'static str> {
    advance(ms(millis)).await;
    take_all(queue)
}

fn fail(queue: &Queue<&'static str>, key: &'static str) {
    fail_for(queue, key, Duration::ZERO, Duration::ZERO);
}

fn fail_for(
    queue: &Queue<&'static str>,
    key: &'static str,
    at_least: Duration,
    not_before: Duration,
) {
    let lease = queue.try_get().unwrap();
    assert_eq!(*lease.key(), key);
    lease.finish(Decision::RateLimited {
        at_least,
        not_before,
        anew: false,
    });
}

/// Records a failure of a key, which may be in no run: each failure counts, as in client-go.
fn rate_limit<K: Hash + Eq + Clone + Send + 'static, T: Tag>(
    queue: &Queue<K, T>,
    key: K,
    at_least: Duration,
    not_before: Duration,
) {
    let hash = queue.shared.hash(&key);
    queue.shared.with(|state| {
        if state.phase == Phase::Open {
            let at = state.entry(hash, key);
            state.rate_limit(at, nanos(at_least), nanos(not_before));
        }
    });
}

fn lane_of(queue: &Queue<&'static str>) -> Option<Lane> {
    let lease = queue.try_get()?;
    let lane = lease.lane();
    lease.finish(Decision::Forget);
    Some(lane)
}
