//! Keys that keep themselves busy: each turn writes, the write wakes the key, and so on at wire
//! speed. Such a key is held for a while and reported, so that one policy that fights with itself,
//! or with another controller, costs neither a worker nor the API server. (The idea is Crossplane's
//! circuit breaker per resource.)
//!
//! Only turns that wrote something, or asked to come back at once, are counted, and not those of a
//! key that others change often.

use std::collections::HashMap;
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
    /// When the window began. All counts of a window are forgotten at once: a drain of many keys
    /// that write once leaves nothing behind.
    since: Option<Instant>,
    turns: HashMap<ObjectName, u32>,
    held: HashMap<ObjectName, Instant>,
}

impl HotKeys {
    /// How long the key is still held; one that is not held may run.
    pub fn rest(&mut self, key: &ObjectName) -> Option<Duration> {
        let until = *self.held.get(key)?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            self.held.remove(key);
            return None;
        }
        Some(left)
    }

    /// A busy turn of the key ended. Returns whether it is held from now on.
    pub fn count(&mut self, key: &ObjectName) -> bool {
        let now = Instant::now();
        if self.since.is_none_or(|since| now - since >= WINDOW) {
            self.since = Some(now);
            self.turns = HashMap::default();
        }
        let turns = self.turns.entry(key.clone()).or_default();
        *turns += 1;
        if *turns < TURNS {
            return false;
        }
        self.turns.remove(key);
        self.held.insert(key.clone(), now + HOLD);
        true
    }

    /// How many keys are held.
    pub fn resting(&self) -> usize {
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
            assert!(!hot.count(&key("x")));
            assert!(
                !hot.count(&key(&fastrand::u64(..).to_string())),
                "many keys that write once"
            );
        }
        assert_eq!(hot.rest(&key("x")), None);
        assert!(hot.count(&key("x")));
        assert_eq!(hot.rest(&key("x")), Some(HOLD));
        assert_eq!(hot.rest(&key("y")), None, "the others go on");
        tokio::time::advance(HOLD).await;
        assert_eq!(hot.rest(&key("x")), None);
        assert_eq!(hot.resting(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_takes_its_time_is_not_hot() {
        let mut hot = HotKeys::default();
        for _ in 0..10 * TURNS {
            assert!(!hot.count(&key("x")));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    }
}
