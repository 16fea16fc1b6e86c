//! Keys that keep themselves busy: each turn writes, the write wakes the key, and so on at wire speed. Such a key is held for a while and reported, so that one policy
//! that fights with itself, or with another controller, costs neither a worker nor the API server. (The idea is Crossplane's circuit breaker per resource.)
//!
//! Only turns that wrote something, or asked to come back at once, are counted: a key that others change often is none of this.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use vmhost_core::ObjectName;

/// In which so many busy turns make a key hot.
const WINDOW: Duration = Duration::from_secs(60);
/// Two a second, for a minute.
pub const TURNS: u32 = 120;
/// How long it is held.
pub const HOLD: Duration = Duration::from_secs(30);

/// Counts a controller's keys.
#[derive(Debug, Default)]
pub struct HotKeys {
    state: Mutex<State>,
    /// `state.held` as of its last change, for all those turns that would only learn that no key is held.
    held: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    /// When the window began. All counts of a window are forgotten at once: a drain of many keys that write once leaves nothing behind.
    since: Option<Instant>,
    turns: HashMap<ObjectName, u32>,
    held: HashMap<ObjectName, Instant>,
}

impl HotKeys {
    /// How long the key is still held; none: it may run.
    pub fn pause(&self, key: &ObjectName) -> Option<Duration> {
        if self.held.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut state = self.lock();
        let until = *state.held.get(key)?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            state.held.remove(key);
            self.held.store(state.held.len(), Ordering::Relaxed);
            return None;
        }
        Some(left)
    }

    /// A busy turn of the key ended. True: it is held from now on.
    pub fn is_hot(&self, key: &ObjectName) -> bool {
        let now = Instant::now();
        let mut state = self.lock();
        if state.since.is_none_or(|since| now - since >= WINDOW) {
            state.since = Some(now);
            state.turns = HashMap::default();
        }
        let turns = state.turns.entry(key.clone()).or_default();
        *turns += 1;
        if *turns < TURNS {
            return false;
        }
        state.turns.remove(key);
        state.held.insert(key.clone(), now + HOLD);
        self.held.store(state.held.len(), Ordering::Relaxed);
        true
    }

    /// How many keys are held.
    pub fn held(&self) -> usize {
        self.lock().held.len()
    }

    /// A swap: the new code gets its chance.
    pub fn clear(&self) {
        // Dropped outside of the lock: all workers ask here.
        let mut state = self.lock();
        let old = std::mem::take(&mut *state);
        self.held.store(0, Ordering::Relaxed);
        drop(state);
        drop(old);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectName {
        ObjectName::new(Some("a"), name)
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_key_is_held_and_then_let_go() {
        let hot = HotKeys::default();
        for _ in 1..TURNS {
            assert!(!hot.is_hot(&key("x")));
            assert!(
                !hot.is_hot(&key(&fastrand::u64(..).to_string())),
                "many keys that write once"
            );
        }
        assert_eq!(hot.pause(&key("x")), None);
        assert!(hot.is_hot(&key("x")));
        assert_eq!(hot.pause(&key("x")), Some(HOLD));
        assert_eq!(hot.pause(&key("y")), None, "the others go on");
        tokio::time::advance(HOLD).await;
        assert_eq!(hot.pause(&key("x")), None);
        assert_eq!(hot.held(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_takes_its_time_is_not_hot() {
        let hot = HotKeys::default();
        for _ in 0..10 * TURNS {
            assert!(!hot.is_hot(&key("x")));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    }
}
