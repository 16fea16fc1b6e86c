//! Tests of the whole queue through its handle. Time is paused: nothing here sleeps for real.

mod model;
mod rules;
mod stress;
mod waiting;

use std::time::Duration;

use tokio::time::advance;

use crate::{Config, Lane, Queue};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A queue whose keys are names.
fn queue() -> Queue<&'static str> {
    Queue::new(Config::default())
}

/// Takes all that is ready, each run ending at once.
fn take_all(queue: &Queue<&'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| queue.try_get().map(|lease| *lease.key())).collect()
}

/// Steps time and takes all that is ready.
async fn after(queue: &Queue<&'static str>, millis: u64) -> Vec<&'static str> {
    advance(ms(millis)).await;
    take_all(queue)
}

fn fail(queue: &Queue<&'static str>, key: &'static str) {
    let lease = queue.try_get();
    assert_eq!(lease.as_ref().map(|lease| *lease.key()), Some(key));
    queue.add_rate_limited(key);
}

fn lane_of(queue: &Queue<&'static str>) -> Option<Lane> {
    queue.try_get().map(|lease| lease.lane())
}
