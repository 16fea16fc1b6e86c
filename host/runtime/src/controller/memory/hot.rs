//! Keys that keep waking themselves: each turn writes, the write wakes the key, and so on at wire
//! speed. The host holds such a key for a while and reports it, so that one plugin that fights with
//! itself or with another controller costs neither a worker nor the API server. (Crossplane's
//! circuit breaker per resource works alike.)
//!
//! Only turns that wrote something or asked to be requeued at once count. A key that other writers
//! change often is not affected. This module must not know what a turn wrote.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use vmhost_core::ObjectName;

/// The window in which [`TURNS`] busy turns make a key hot.
const WINDOW: Duration = Duration::from_secs(60);
/// Busy turns in a window that make a key hot: two per second.
pub(crate) const TURNS: u32 = 120;
/// How long a hot key is held.
pub(crate) const HOLD: Duration = Duration::from_secs(30);

/// Counts the busy turns of a controller's keys.
#[derive(Debug, Default)]
pub(crate) struct HotKeys {
    /// When the window began. All counts end with their window, so that many keys that write once
    /// leave nothing behind.
    since: Option<Instant>,
    turns: HashMap<ObjectName, u32>,
    held: HashMap<ObjectName, Instant>,
}

impl HotKeys {
    /// How much longer the key is held. `None` if it may run.
    pub(crate) fn rest(&mut self, key: &ObjectName) -> Option<Duration> {
        let until = *self.held.get(key)?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            self.held.remove(key);
            return None;
        }
        Some(left)
    }

    /// Counts a busy turn of the key. Returns whether the key is held from now on, and the counts
    /// of a window that is over.
    pub(crate) fn count(&mut self, key: &ObjectName) -> (bool, HashMap<ObjectName, u32>) {
        let now = Instant::now();
        let mut over = HashMap::new();
        if self.since.is_none_or(|since| now - since >= WINDOW) {
            self.since = Some(now);
            over = std::mem::take(&mut self.turns);
        }
        let turns = self.turns.entry(key.clone()).or_default();
        *turns += 1;
        if *turns < TURNS {
            return (false, over);
        }
        self.turns.remove(key);
        self.held.insert(key.clone(), now + HOLD);
        (true, over)
    }

    /// Forgets the key's busy turns, so that the key runs again. Returns whether it was held.
    pub(crate) fn forgive(&mut self, key: &ObjectName) -> bool {
        self.turns.remove(key);
        self.held.remove(key).is_some()
    }

    /// The held keys, in no order.
    pub(crate) fn held(&self) -> impl Iterator<Item = &ObjectName> {
        let now = Instant::now();
        let held = self.held.iter().filter(move |(_, until)| **until > now);
        held.map(|(key, _)| key)
    }

    /// The number of held keys.
    pub(crate) fn resting(&self) -> usize {
        self.held.len()
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
        let mut hot = HotKeys::default();
        for _ in 1..TURNS {
            assert!(!hot.count(&key("x")).0);
            assert!(
                !hot.count(&key(&fastrand::u64(..).to_string())).0,
                "many keys that write once"
            );
        }
        assert_eq!(hot.rest(&key("x")), None);
        assert!(hot.count(&key("x")).0);
        assert_eq!(hot.held().collect::<Vec<_>>(), [&key("x")]);
        assert_eq!(hot.rest(&key("x")), Some(HOLD));
        assert_eq!(hot.rest(&key("y")), None, "the others go on");
        tokio::time::advance(HOLD).await;
        assert_eq!(hot.held().count(), 0);
        assert_eq!(hot.rest(&key("x")), None);
        assert_eq!(hot.resting(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_is_forgiven_runs_and_counts_anew() {
        let mut hot = HotKeys::default();
        assert!(!hot.forgive(&key("x")));
        for _ in 0..TURNS {
            hot.count(&key("x"));
        }
        assert!(hot.forgive(&key("x")));
        assert_eq!(hot.rest(&key("x")), None);
        hot.count(&key("x"));
        hot.forgive(&key("x"));
        for _ in 1..TURNS {
            assert!(!hot.count(&key("x")).0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_takes_its_time_is_not_hot() {
        let mut hot = HotKeys::default();
        for _ in 0..10 * TURNS {
            assert!(!hot.count(&key("x")).0);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    }
}
