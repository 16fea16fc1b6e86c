//! A circuit breaker per generation of a plugin: a policy whose calls all end in traps, deadlines
//! or memory kills is left in peace for a while, so that it does not cost a core for nothing. Keys
//! that come up meanwhile wait out the pause.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Failed calls in a row, over all keys, after which it opens. A single bad object among good ones never gets there.
const FAILURES: u32 = 20;
/// First pause; it doubles.
const FIRST: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(60);

/// Counts what calls end in.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    state: Mutex<State>,
    /// Whether a call has failed since the last that did not, for all those that would only learn that nothing is wrong.
    troubled: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    pause: Duration,
    until: Option<Instant>,
    /// A call was let through after the pause, and has not ended.
    trying: bool,
}

impl Breaker {
    /// How long calls have to wait; `None`: go on. After a pause one call is let through at a time until one succeeds.
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
        // Half open: this caller tries, the others wait for what it finds.
        state.until = Some(now + state.pause);
        state.trying = true;
        None
    }

    /// How long it is open yet, for calls of another kind, whose end says nothing about these;
    /// `None`: it is not. Changes nothing.
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

    /// A call returned an outcome.
    pub(crate) fn success(&self) {
        if self.troubled.load(Ordering::Relaxed) {
            let mut state = self.state.lock();
            *state = State::default();
            self.troubled.store(false, Ordering::Relaxed);
        }
    }

    /// A call did not return. The pause, if this one opened the breaker.
    pub(crate) fn failure(&self) -> Option<Duration> {
        let mut state = self.state.lock();
        self.troubled.store(true, Ordering::Relaxed);
        state.failures = state.failures.saturating_add(1);
        if state.failures < FAILURES {
            return None;
        }
        // Calls that were in flight when it opened say nothing new; the one that tries after the pause does.
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
        Some(state.pause)
    }

    /// Failed calls in a row, and how long calls have to wait. Changes nothing.
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
