//! The time that a call waits for the host's own limits, which does not count towards its deadline.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The waits of one instance, of which at most one is running. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The total of the completed waits.
    total: Duration,
    since: Option<Instant>,
}

impl Waits {
    /// Waits for the future. Returns its output and how long it took.
    pub(crate) async fn during<T>(&self, wait: impl Future<Output = T>) -> (T, Duration) {
        let began = Instant::now();
        self.0.lock().since = Some(began);
        let value = wait.await;
        let waited = began.elapsed();
        let mut state = self.0.lock();
        state.total += waited;
        state.since = None;
        (value, waited)
    }

    /// Returns the total of all waits, including the running one.
    pub(crate) fn so_far(&self) -> Duration {
        let state = self.0.lock();
        state.total + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}
