//! Deduplicates the API server's warnings: each one is logged now and then, and not with every
//! write.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use lru::LruCache;
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long the same text is not logged again.
const QUIET: Duration = Duration::from_secs(3600);

/// The number of texts that are remembered, as hashes: 64 KiB. Beyond this limit the least recently
/// used text is forgotten, and may be logged again sooner.
const TEXTS: usize = 1024;

/// When each text was last logged.
#[derive(Debug)]
pub(crate) struct Warnings {
    logged: Mutex<LruCache<u64, Instant>>,
    hasher: RandomState,
}

impl Default for Warnings {
    fn default() -> Self {
        Self {
            logged: Mutex::new(LruCache::unbounded()),
            hasher: RandomState::new(),
        }
    }
}

impl Warnings {
    /// Logs the warnings about a write, as far as they are news.
    pub(super) fn tell(&self, what: &dyn fmt::Display, warnings: &[String]) {
        for warning in warnings.iter().filter(|text| self.is_news(text)) {
            tracing::warn!("the API server warns about {what}: {warning} (logged once an hour)");
        }
    }

    /// Returns whether a text should be logged, because it was not logged within the last hour.
    fn is_news(&self, text: &str) -> bool {
        let (now, text) = (Instant::now(), self.hasher.hash_one(text));
        let mut logged = self.logged.lock();
        if let Some(last) = logged.get(&text)
            && now.duration_since(*last) < QUIET
        {
            return false;
        }
        logged.put(text, now);
        if logged.len() > TEXTS {
            logged.pop_lru();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_text_is_news_once_an_hour() {
        let warnings = Warnings::default();
        for _ in 0..3 {
            assert!(warnings.is_news("unknown field \"spec.x\""));
            for _ in 0..59 {
                assert!(!warnings.is_news("unknown field \"spec.x\""));
                tokio::time::advance(Duration::from_secs(60)).await;
            }
            assert!(!warnings.is_news("unknown field \"spec.x\""));
            tokio::time::advance(Duration::from_secs(60)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn texts_without_end_take_a_bounded_room() {
        let warnings = Warnings::default();
        assert!(warnings.is_news("often"));
        for number in 0..3 * TEXTS {
            assert!(warnings.is_news(&number.to_string()));
            assert!(!warnings.is_news("often"), "{number}");
        }
        assert_eq!(warnings.logged.lock().len(), TEXTS);
    }
}
