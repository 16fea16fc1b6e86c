//! A rate-limited workqueue with two lanes: the queue of a Kubernetes controller, generic over its
//! key.
//!
//! This crate ports client-go's `util/workqueue` (queue, delaying queue and rate-limiting queue in
//! one type), with its promises:
//!
//! * **Stingy**: a key that is added many times before a worker takes it is handed out once (the
//!   *dirty* mark).
//! * **Single flight**: two workers never process the same key at once (the *processing* mark).
//! * **No lost wake-up**: a key that is added while a worker processes it is handed out again
//!   afterwards.
//! * **Fair**: keys of one lane are handed out in the order in which they were added.
//! * **Many producers, many consumers**, on any threads and any tokio runtimes, and a shutdown with
//!   or without draining.
//!
//! The differences, all deliberate:
//!
//! * **Two lanes.** [`Queue::add`] is for fresh changes and uses the high lane; [`Queue::add_low`]
//!   is for initial lists and resyncs. The high lane goes first; one take in [`LOW_LANE_EVERY`] is
//!   from the low lane, so that neither lane starves.
//! * **Corrected backoff** (kubernetes/kubernetes#132805). A fresh change runs a key at once, even
//!   during its backoff. If that early run fails, its failure does not count: the key is retried
//!   when the interrupted backoff would have ended. The failure of a run that begins after the
//!   backoff counts.
//! * **Own writes do not shorten a backoff** ([`Queue::add_unless_backing_off`]), even if the event
//!   of the write arrives during the run that wrote and then failed.
//! * **A floor under a backoff** ([`Decision::RateLimited`]): the queue respects a server's
//!   `Retry-After` whatever is added meanwhile, while a fresh change overrides a backoff of the
//!   queue itself.
//! * **One decision per run.** [`Lease::finish`] ends a run and decides about the key in one step.
//!   A lease that is dropped without a decision (a panic, a cancelled task) counts as a failure:
//!   the key is rate limited, never lost.
//! * **A fresh add replaces a pending delayed add**, so the key does not run a second time when the
//!   delay ends.
//! * **No background task.** A waiting [`Queue::get`] is the timer, so the constructor spawns
//!   nothing.
//! * **Flat latency.** Slots live in fixed-size blocks, so that the queue never copies its keys to
//!   grow; only the index of slot numbers, eight bytes a key, doubles. The queue frees the memory
//!   of keys that are gone.
//!
//! ```
//! # async fn f() {
//! use std::time::Duration;
//! use vmhost_queue::{Config, Decision, Queue};
//!
//! let queue: Queue<&str> = Queue::new(Config::default());
//! queue.add("default/web-1");
//! while let Some(lease) = queue.get().await {
//!     let decision = match reconcile(lease.key()).await {
//!         Ok(None) => Decision::Forget,
//!         Ok(Some(after)) => Decision::After(after),
//!         Err(()) => Decision::RATE_LIMITED,
//!     };
//!     lease.finish(decision);
//! }
//! # }
//! # async fn reconcile(_: &str) -> Result<Option<std::time::Duration>, ()> { Ok(None) }
//! ```
//!
//! This crate must not know Kubernetes, objects, the meaning of errors, the number of workers, or
//! any metrics library.

mod clock;
mod config;
mod decision;
mod index;
mod lease;
mod limit;
mod lists;
mod metrics;
mod queue;
mod rules;
mod slots;
mod state;
mod tag;
mod tagged;
#[cfg(test)]
mod tests;
mod timers;
mod wait;

pub use config::Config;
pub use decision::Decision;
pub use lease::Lease;
pub use limit::{BackOff, Bucket};
pub use metrics::{Lane, Metrics, NoMetrics, Stats};
pub use queue::Queue;
pub use state::LOW_LANE_EVERY;
pub use tag::Tag;
pub use tagged::Tagged;
