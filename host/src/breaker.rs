//! A circuit breaker per plugin: a policy whose calls all end in traps, deadlines or memory kills is left in peace for a while, so that it does not cost a
//! core for nothing. Keys that come up meanwhile wait out the pause.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Failed calls in a row, over all keys, after which it opens. A single bad object among good ones never gets there.
const FAILURES: u32 = 20;
/// First pause; it doubles.
const FIRST: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(60);

/// Counts what calls end in.
#[derive(Debug, Default)]
pub struct Breaker {
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
    pub fn pause(&self) -> Option<Duration> {
        if !self.troubled.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.lock();
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

    /// A call returned an outcome.
    pub fn success(&self) {
        if self.troubled.load(Ordering::Relaxed) {
            self.reset();
        }
    }

    /// A call did not return. The pause, if this one opened the breaker.
    pub fn failure(&self) -> Option<Duration> {
        let mut state = self.lock();
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
    pub fn status(&self) -> (u32, Option<Duration>) {
        let state = self.lock();
        let until = state.until.map(|until| until - Instant::now());
        (state.failures, until)
    }

    /// A new generation starts with a clean slate.
    pub fn reset(&self) {
        let mut state = self.lock();
        *state = State::default();
        self.troubled.store(false, Ordering::Relaxed);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
}
