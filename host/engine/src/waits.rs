//! The time that a call waits for the host's own limits: it is no time of the call's.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The waits of one instance, one at a time. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Of those that are over.
    total: Duration,
    since: Option<Instant>,
}

impl Waits {
    /// Waits, and returns for how long with what was waited for.
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

    /// All waits so far, that of the moment included.
    pub(crate) fn so_far(&self) -> Duration {
        let state = self.0.lock();
        state.total + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}
