//! The limit on the Events of a plugin: token buckets, as the kubelet's `--event-qps` and
//! `--event-burst`.
//!
//! Without the limit, a burst of successful objects would cost the API server a second request for
//! each, and a plugin could fill its storage. Warnings have a bucket of their own, because
//! operators look for them; those of the host itself pass.

use tokio::time::Instant;
use vmhost_core::EventType;

use super::record::Author;

/// How many Normal Events each plugin may write, and how many Warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLimit {
    /// Average number per second.
    pub per_second: u32,
    /// Maximum number at once.
    pub burst: u32,
}

/// A plugin's token buckets.
#[derive(Debug)]
pub(super) struct Buckets {
    plugin: String,
    /// `None` for no limit.
    limit: Option<EventLimit>,
    normal: Bucket,
    warnings: Bucket,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
    left_out: u64,
}

impl Buckets {
    /// Creates full buckets.
    pub(super) fn new(plugin: &str, limit: Option<EventLimit>) -> Self {
        let full = || Bucket {
            tokens: limit.map_or(0.0, |limit| limit.burst.into()),
            at: Instant::now(),
            left_out: 0,
        };
        Self {
            plugin: plugin.to_owned(),
            limit,
            normal: full(),
            warnings: full(),
        }
    }

    /// Returns whether this event may be written, and counts an event that may not.
    pub(super) fn admit(&mut self, kind: EventType, author: Author) -> bool {
        let bucket = match (kind, author) {
            (EventType::Warning, Author::Host) => return true,
            (EventType::Warning, Author::Plugin) => &mut self.warnings,
            (EventType::Normal, _) => &mut self.normal,
        };
        self.limit.is_none_or(|limit| bucket.admit(limit))
    }

    /// Logs how many events were left out since the last call.
    pub(super) fn tell(&mut self) {
        let buckets = [
            ("Normal", &mut self.normal),
            ("Warning", &mut self.warnings),
        ];
        for (kind, bucket) in buckets {
            let left_out = std::mem::take(&mut bucket.left_out);
            if left_out > 0 {
                tracing::info!(
                    plugin = self.plugin,
                    "dropped {left_out} {kind} Events: over the limits of --event-qps and --event-burst"
                );
            }
        }
    }
}

impl Bucket {
    fn admit(&mut self, limit: EventLimit) -> bool {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn the_hosts_warnings_pass() {
        let mut buckets = Buckets::new(
            "vm",
            Some(EventLimit {
                per_second: 2,
                burst: 3,
            }),
        );
        let mut admitted = |kind, author| (0..9).filter(|_| buckets.admit(kind, author)).count();
        assert_eq!(admitted(EventType::Normal, Author::Plugin), 3);
        assert_eq!(admitted(EventType::Normal, Author::Host), 0);
        assert_eq!(admitted(EventType::Warning, Author::Plugin), 3);
        assert_eq!(admitted(EventType::Warning, Author::Host), 9);
        tokio::time::advance(Duration::from_millis(1000)).await;
        assert_eq!(admitted(EventType::Normal, Author::Plugin), 2);
        assert_eq!(admitted(EventType::Warning, Author::Plugin), 2);
        tokio::time::advance(Duration::from_secs(3600)).await;
        let burst = admitted(EventType::Normal, Author::Plugin);
        assert_eq!(burst, 3, "no more than a burst is saved up");
        assert_eq!(buckets.normal.left_out, 6 + 9 + 7 + 6);
        assert_eq!(buckets.warnings.left_out, 6 + 7);
        buckets.tell();
        assert_eq!((buckets.normal.left_out, buckets.warnings.left_out), (0, 0));
        let mut none = Buckets::new("vm", None);
        assert!((0..999).all(|_| none.admit(EventType::Normal, Author::Plugin)));
    }
}
