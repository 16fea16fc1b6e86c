//! How many Normal Events a plugin may write: a bucket each, as the kubelet's `--event-qps` and `--event-burst`.
//!
//! A burst of objects that all end well would else cost the API server a second request for each. Warnings pass: they are what an operator looks for.

use std::collections::HashMap;

use tokio::time::Instant;
use vmhost_core::EventType;

use super::RecordedEvent;

/// How many Normal Events each plugin may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLimit {
    /// In the long run.
    pub per_second: u32,
    /// At once.
    pub burst: u32,
}

/// What is left to each plugin.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    /// None: no limit.
    limit: Option<EventLimit>,
    plugins: HashMap<String, Bucket>,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
    left_out: u64,
}

impl Buckets {
    pub(super) fn new(limit: Option<EventLimit>) -> Self {
        Self {
            limit,
            plugins: HashMap::new(),
        }
    }

    /// May it be written? What may not is counted.
    pub(super) fn admit(&mut self, event: &RecordedEvent) -> bool {
        let Some(limit) = self.limit.filter(|_| event.kind == EventType::Normal) else {
            return true;
        };
        let (now, burst) = (Instant::now(), f64::from(limit.burst));
        if !self.plugins.contains_key(&event.plugin) {
            let full = Bucket {
                tokens: burst,
                at: now,
                left_out: 0,
            };
            self.plugins.insert(event.plugin.clone(), full);
        }
        let Some(bucket) = self.plugins.get_mut(&event.plugin) else {
            return true;
        };
        let gained = now.duration_since(bucket.at).as_secs_f64() * f64::from(limit.per_second);
        (bucket.tokens, bucket.at) = ((bucket.tokens + gained).min(burst), now);
        let admitted = bucket.tokens >= 1.0;
        if admitted {
            bucket.tokens -= 1.0;
        } else {
            bucket.left_out += 1;
        }
        admitted
    }

    /// Says what was left out since the last time.
    pub(super) fn tell(&mut self) {
        for (plugin, bucket) in &mut self.plugins {
            let left_out = std::mem::take(&mut bucket.left_out);
            if left_out > 0 {
                tracing::info!(
                    plugin,
                    "{left_out} Normal Events were not written: more than --event-qps and --event-burst allow"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::tests::event;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn each_plugin_has_its_own_and_warnings_pass() {
        let mut buckets = Buckets::new(Some(EventLimit {
            per_second: 2,
            burst: 3,
        }));
        let of = |plugin: &str, kind| RecordedEvent {
            plugin: plugin.into(),
            kind,
            ..event("a", 1)
        };
        let normal = of("one", EventType::Normal);
        let mut admitted = |event: &RecordedEvent, times: usize| {
            (0..times).filter(|_| buckets.admit(event)).count()
        };
        assert_eq!(admitted(&normal, 9), 3);
        assert_eq!(admitted(&of("two", EventType::Normal), 9), 3);
        assert_eq!(admitted(&of("one", EventType::Warning), 9), 9);
        tokio::time::advance(Duration::from_millis(1000)).await;
        assert_eq!(admitted(&normal, 9), 2);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(admitted(&normal, 9), 3, "no more than a burst is saved up");
        assert_eq!(buckets.plugins["one"].left_out, 6 + 7 + 6);
        buckets.tell();
        assert_eq!(buckets.plugins["one"].left_out, 0);
        assert!((0..999).all(|_| Buckets::new(None).admit(&normal)));
    }
}
