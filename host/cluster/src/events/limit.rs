//! The limit on the Normal Events of a plugin: a token bucket, as the kubelet's `--event-qps` and
//! `--event-burst`.
//!
//! Without the limit, a burst of successful objects would cost the API server a second request for
//! each. Warnings are not limited, because operators look for them.

use tokio::time::Instant;
use vmhost_core::EventType;

/// How many Normal Events each plugin may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLimit {
    /// Average number per second.
    pub per_second: u32,
    /// Maximum number at once.
    pub burst: u32,
}

/// A plugin's token bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    plugin: String,
    /// `None` for no limit.
    limit: Option<EventLimit>,
    tokens: f64,
    at: Instant,
    left_out: u64,
}

impl Bucket {
    /// Creates a full bucket.
    pub(super) fn new(plugin: &str, limit: Option<EventLimit>) -> Self {
        Self {
            plugin: plugin.to_owned(),
            limit,
            tokens: limit.map_or(0.0, |limit| limit.burst.into()),
            at: Instant::now(),
            left_out: 0,
        }
    }

    /// Returns whether one more event may be written, and counts an event that may not.
    pub(super) fn admit(&mut self, kind: EventType) -> bool {
        let Some(limit) = self.limit.filter(|_| kind == EventType::Normal) else {
            return true;
        };
        let now = Instant::now();
        let gained = now.duration_since(self.at).as_secs_f64() * f64::from(limit.per_second);
        (self.tokens, self.at) = ((self.tokens + gained).min(limit.burst.into()), now);
        let admitted = self.tokens >= 1.0;
        if admitted {
            self.tokens -= 1.0;
        } else {
            self.left_out += 1;
        }
        admitted
    }

    /// Logs how many events were left out since the last call.
    pub(super) fn tell(&mut self) {
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            tracing::info!(
                plugin = self.plugin,
                "dropped {left_out} Normal Events: over the limits of --event-qps and --event-burst"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn warnings_pass() {
        let mut bucket = Bucket::new(
            "vm",
            Some(EventLimit {
                per_second: 2,
                burst: 3,
            }),
        );
        let mut admitted = |kind| (0..9).filter(|_| bucket.admit(kind)).count();
        assert_eq!(admitted(EventType::Normal), 3);
        assert_eq!(admitted(EventType::Warning), 9);
        tokio::time::advance(Duration::from_millis(1000)).await;
        assert_eq!(admitted(EventType::Normal), 2);
        tokio::time::advance(Duration::from_secs(3600)).await;
        let burst = admitted(EventType::Normal);
        assert_eq!(burst, 3, "no more than a burst is saved up");
        assert_eq!(bucket.left_out, 6 + 7 + 6);
        bucket.tell();
        assert_eq!(bucket.left_out, 0);
        assert!((0..999).all(|_| Bucket::new("vm", None).admit(EventType::Normal)));
    }
}
