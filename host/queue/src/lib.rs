//! A rate-limited workqueue with two lanes: the queue of a Kubernetes controller, generic over its key.
//!
//! It is client-go's `util/workqueue` (queue, delaying queue and rate-limiting queue in one type), with its promises:
//!
//! * **Stingy**: a key that is added many times before it is taken is handed out once (the *dirty* mark).
//! * **Single flight**: a key is never with two workers at once (the *processing* mark).
//! * **No lost wake-up**: a key that is added while it is processed is handed out again afterwards.
//! * **Fair**: keys of one lane are handed out in the order in which they were added.
//! * **Many producers, many consumers**, on any threads and any tokio runtimes, and a shutdown that drains or does not.
//!
//! and with these differences, all wanted:
//!
//! * **Two lanes.** [`Queue::add`] is a fresh change and goes to the high lane; [`Queue::add_low`] is for initial lists and
//!   resyncs. High goes first; one take in [`LOW_LANE_EVERY`] is from the low lane, so that neither starves.
//! * **Corrected back-off** (kubernetes/kubernetes#132805). A fresh change runs a key at once although it is backing off, but
//!   if that early run fails, the failure is not counted: it is retried when the back-off that it cut short would have ended.
//!   A run that begins after the back-off is over counts.
//! * **Own writes do not shorten a back-off** ([`Queue::add_unless_backing_off`]), even when the event comes back during the
//!   run that wrote and then failed.
//! * **A floor under a back-off** ([`Queue::add_rate_limited_not_before`]): a server's
//!   `Retry-After` is kept whatever is added meanwhile, while a back-off of the queue's own gives
//!   way to a fresh change.
//! * **A fresh add replaces a pending delayed add** instead of running the key a second time when the delay ends.
//! * **No background task.** A waiting [`Queue::get`] is the timer. A constructor that spawns is a trap.
//! * **Flat latency.** Nothing in the queue is ever copied to grow: slots, hash buckets and timers live in fixed-size blocks
//!   and the hash index splits one bucket at a time. An add into a million keys costs what an add into ten does. The memory
//!   of keys that are gone is given back.
//!
//! ```
//! # async fn f() {
//! use std::time::Duration;
//! use vmhost_queue::{Config, Queue};
//!
//! let queue = Queue::new(Config::default());
//! queue.add("default/web-1");
//! while let Some(lease) = queue.get().await {
//!     match reconcile(lease.key()).await {
//!         Ok(None) => queue.forget(lease.key()),
//!         Ok(Some(after)) => {
//!             queue.forget(lease.key());
//!             queue.add_after(*lease.key(), after);
//!         }
//!         Err(()) => queue.add_rate_limited(*lease.key()),
//!     }
//!     // Dropping the lease ends the run: say what comes next before that.
//! }
//! # }
//! # async fn reconcile(_: &str) -> Result<Option<std::time::Duration>, ()> { Ok(None) }
//! ```
//!
//! What this crate does not know: Kubernetes, objects, errors and their meaning, how many workers there are, and what a
//! metrics library looks like.

mod index;
mod lease;
mod limit;
mod lists;
mod lock;
mod metrics;
mod queue;
mod rules;
mod segments;
mod slots;
mod state;
#[cfg(test)]
mod tests;
mod timers;
mod wait;

pub use lease::Lease;
pub use limit::{BackOff, Bucket};
pub use metrics::{Lane, Metrics, NoMetrics, Stats};
pub use queue::{Config, Queue};
pub use state::LOW_LANE_EVERY;
