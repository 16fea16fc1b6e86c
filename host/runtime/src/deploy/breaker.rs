//! A circuit breaker per generation of a plugin. If all calls end in traps, deadlines or memory
//! limits, calls pause for a while, so that the plugin does not use a core for nothing. Keys that
//! become ready during the pause wait for its end. This module must not know what a call does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Consecutive failed calls, over all keys, that open the breaker. One bad object among good ones
/// never opens it.
const FAILURES: u32 = 20;
/// The first pause. Each further one is twice as long.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(60);

/// Counts consecutive failed calls.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    state: Mutex<State>,
    /// True if a call failed since the last success, so that the common case skips the lock.
    troubled: AtomicBool,
    /// Notified when the breaker opens.
    opened: Notify,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    pause: Duration,
    until: Option<Instant>,
    /// True while the trial call after a pause is in flight.
    trying: bool,
}

impl Breaker {
    /// How long calls have to wait. `None` if the caller may call now. After a pause one trial call
    /// at a time is let through until one succeeds.
    pub(crate) fn pause(&self) -> Option<Duration> {
        if !self.troubled.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.state.lock();
        let until = state.until?;
        let now = Instant::now();
        if now < until {
            return Some(until - now);
        }
        // Half open: this caller makes the trial call, and the others wait for its result.
        state.until = Some(now + state.pause);
        state.trying = true;
        None
    }

    /// How much longer the breaker is open. `None` if it is closed. For calls of another kind,
    /// whose result says nothing about the counted calls. Changes nothing.
    pub(crate) fn open(&self) -> Option<Duration> {
        if !self.troubled.load(Ordering::Relaxed) {
            return None;
        }
        let left = self
            .state
            .lock()
            .until?
            .saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Records a call that returned an outcome, and closes the breaker.
    pub(crate) fn success(&self) {
        if self.troubled.load(Ordering::Relaxed) {
            let mut state = self.state.lock();
            *state = State::default();
            self.troubled.store(false, Ordering::Relaxed);
        }
    }

    /// Records a call that did not return. Returns the pause if this failure opened the breaker.
    pub(crate) fn failure(&self) -> Option<Duration> {
        let mut state = self.state.lock();
        self.troubled.store(true, Ordering::Relaxed);
        state.failures = state.failures.saturating_add(1);
        if state.failures < FAILURES {
            return None;
        }
        // Calls in flight when the breaker opened tell nothing new. Only the trial call counts.
        if !state.trying && state.until.is_some() {
            return None;
        }
        state.trying = false;
        state.pause = if state.pause.is_zero() {
            FIRST
        } else {
            (state.pause * 2).min(LONGEST)
        };
        state.until = Some(Instant::now() + state.pause);
        self.opened.notify_one();
        Some(state.pause)
    }

    /// Closes the breaker, and forgets that it was ever open: calls count again as on a new
    /// breaker. To be called only while no task waits for the breaker to open.
    pub(crate) fn reset(&self) {
        self.success();
        let _ = self.opened.notified().now_or_never();
    }

    /// Resolves when the breaker opens, or at once if it has opened since the last call of this
    /// function. Only one task may wait.
    pub(crate) async fn opened(&self) {
        self.opened.notified().await;
    }

    /// The number of consecutive failed calls, and how long calls have to wait. Changes nothing.
    pub(crate) fn status(&self) -> (u32, Option<Duration>) {
        let state = self.state.lock();
        let until = state.until.map(|until| until - Instant::now());
        (state.failures, until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_failures_in_a_row_only() {
        let breaker = Breaker::default();
        for _ in 0..10 {
            for _ in 0..FAILURES - 1 {
                assert_eq!(breaker.failure(), None);
            }
            breaker.success();
        }
        assert_eq!(breaker.pause(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_pause_one_call_tries_and_decides() {
        let breaker = Breaker::default();
        for _ in 1..FAILURES {
            breaker.failure();
        }
        assert_eq!(breaker.failure(), Some(FIRST));
        assert_eq!(breaker.pause(), Some(FIRST));
        tokio::time::advance(FIRST).await;
        assert_eq!(breaker.pause(), None, "one tries");
        assert_eq!(breaker.pause(), Some(FIRST), "the others wait");
        assert_eq!(breaker.failure(), Some(FIRST * 2));
        tokio::time::advance(FIRST * 2).await;
        assert_eq!(breaker.pause(), None);
        breaker.success();
        assert_eq!(breaker.pause(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn each_opening_is_told_also_to_a_task_that_comes_later() {
        let breaker = Breaker::default();
        let told = async || tokio::time::timeout(FIRST, breaker.opened()).await.is_ok();
        for _ in 1..FAILURES {
            breaker.failure();
        }
        assert!(!told().await);
        breaker.failure();
        assert!(told().await);
        assert!(!told().await);
        assert_eq!(breaker.pause(), None, "a trial call");
        breaker.failure();
        assert!(told().await);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_reset_is_as_new() {
        let breaker = Breaker::default();
        for _ in 0..FAILURES {
            breaker.failure();
        }
        breaker.reset();
        assert_eq!(breaker.pause(), None);
        let opened = tokio::time::timeout(FIRST, breaker.opened());
        assert!(opened.await.is_err(), "it was told before");
        for _ in 1..FAILURES {
            assert_eq!(breaker.failure(), None);
        }
        assert_eq!(breaker.failure(), Some(FIRST));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_of_another_kind_wait_and_take_no_try() {
        let breaker = Breaker::default();
        for _ in 0..FAILURES {
            assert_eq!(breaker.open(), None);
            breaker.failure();
        }
        assert_eq!(breaker.open(), Some(FIRST));
        tokio::time::advance(FIRST).await;
        assert_eq!(breaker.open(), None);
        assert_eq!(breaker.pause(), None, "the try is left to its own calls");
        assert_eq!(breaker.open(), Some(FIRST), "which may fail again");
    }
}
