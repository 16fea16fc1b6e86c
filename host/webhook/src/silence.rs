//! Notices that nothing is asked on a connection.
//!
//! HTTP/1.1 has a limit for the head of a request. HTTP/2 has none in hyper: a client that sends
//! nothing after the TLS handshake, or only answers pings, would keep its place for ever. This
//! module must not know connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The requests of one connection. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Requests(Arc<Counts>);

struct Counts {
    made: Instant,
    begun: AtomicU64,
    ended: AtomicU64,
    /// When the last request ended, in microseconds since `made`.
    last: AtomicU64,
}

/// A request that is being answered.
pub(crate) struct InFlight(Requests);

impl Requests {
    /// Counts a request until the guard is dropped.
    pub fn begin(&self) -> InFlight {
        self.0.begun.fetch_add(1, Ordering::AcqRel);
        InFlight(self.clone())
    }

    /// Returns since when nothing has been asked; `None` while a request is in flight.
    pub fn rest_since(&self) -> Option<Instant> {
        let counts = &self.0;
        // In this order: a request that begins in between counts as one in flight.
        let ended = counts.ended.load(Ordering::Acquire);
        let begun = counts.begun.load(Ordering::Acquire);
        let last = Duration::from_micros(counts.last.load(Ordering::Relaxed));
        (begun == ended).then(|| counts.made + last)
    }

    /// Resolves after a `period` without a request, at the latest when two have passed.
    pub async fn silent(&self, period: Duration) {
        let mut before = 0;
        loop {
            tokio::time::sleep(period).await;
            let ended = self.0.ended.load(Ordering::Relaxed);
            let begun = self.0.begun.load(Ordering::Relaxed);
            if begun == before && ended == begun {
                return;
            }
            before = begun;
        }
    }
}

impl Default for Requests {
    fn default() -> Self {
        Self(Arc::new(Counts {
            made: Instant::now(),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            last: AtomicU64::new(0),
        }))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let counts = &self.0.0;
        let last = counts.made.elapsed().as_micros() as u64;
        counts.last.store(last, Ordering::Relaxed);
        counts.ended.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const PERIOD: Duration = Duration::from_secs(120);

    #[tokio::test(start_paused = true)]
    async fn only_a_connection_without_requests_is_silent() {
        let requests = Requests::default();
        let began = Instant::now();
        requests.silent(PERIOD).await;
        assert!(began.elapsed() < PERIOD * 2, "nothing was ever asked");

        let first = requests.begin();
        let waited = timeout(PERIOD * 10, requests.silent(PERIOD)).await;
        assert!(waited.is_err(), "one is being answered");
        drop(first);
        let began = Instant::now();
        requests.silent(PERIOD).await;
        assert!(began.elapsed() >= PERIOD * 2, "one came before");
    }
}
