//! How long to wait before the next try: client-go's reflector, 800 ms to 30 s.

use std::time::Duration;

use tokio::time::Instant;

/// First delay, and what a healthy time resets to.
const FIRST: Duration = Duration::from_millis(800);
/// Longest delay.
const LONGEST: Duration = Duration::from_secs(30);
/// After so long without a failure the next one is a first one again.
const HEALTHY: Duration = Duration::from_secs(120);

/// Doubles with each failure; each delay is drawn from its upper half, so that hosts that failed together do not return together.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    longest: Duration,
    used: Option<Instant>,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self::up_to(LONGEST)
    }

    /// The same with a lower ceiling.
    pub(crate) fn up_to(longest: Duration) -> Self {
        Self {
            next: FIRST,
            longest,
            used: None,
        }
    }

    pub(crate) fn delay(&mut self) -> Duration {
        let now = Instant::now();
        if self
            .used
            .is_some_and(|used| now.duration_since(used) > self.next + HEALTHY)
        {
            self.next = FIRST;
        }
        self.used = Some(now);
        let ceiling = self.next.min(self.longest);
        self.next = (ceiling * 2).min(self.longest);
        ceiling.mul_f64(0.5 + fastrand::f64() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn delays_double_and_health_resets_them() {
        let mut backoff = Backoff::new();
        for ceiling in [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000] {
            let delay = backoff.delay().as_millis();
            assert!(
                (ceiling / 2..=ceiling).contains(&delay),
                "{delay} for {ceiling}"
            );
        }
        tokio::time::advance(LONGEST + HEALTHY + Duration::from_secs(1)).await;
        assert!(backoff.delay() <= FIRST);
    }
}
