//! How often one `Plugin` may be looked at: whoever may change it, or a ConfigMap that it names,
//! could otherwise keep the host busy with swaps, revisions and requests to a registry. The caller
//! brings the time. It must not know what a look does.

use std::time::Duration;

use tokio::time::Instant;

/// The looks that may follow each other at once.
const BURST: u32 = 10;

/// The time after which one more may.
const EACH: Duration = Duration::from_secs(1);

/// When the next look is due, if all were [`EACH`] apart.
pub(crate) struct Pace(Instant);

impl Pace {
    /// Allows a whole burst.
    pub(crate) fn new(now: Instant) -> Self {
        Self(now)
    }

    /// Counts one look. Returns how long it has to wait.
    pub(crate) fn wait(&mut self, now: Instant) -> Duration {
        let due = self.0.max(now);
        self.0 = due + EACH;
        let early = EACH * (BURST - 1);
        due.duration_since(now).saturating_sub(early)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_let_through_and_the_rest_is_spread() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let waits: Vec<u64> = (0..13).map(|_| pace.wait(start).as_secs()).collect();
        assert_eq!(waits[..10], [0; 10]);
        assert_eq!(waits[10..], [1, 2, 3]);
        let later = start + Duration::from_secs(60);
        let waits: Vec<u64> = (0..11).map(|_| pace.wait(later).as_secs()).collect();
        assert_eq!(
            (waits[9], waits[10]),
            (0, 1),
            "a pause allows a burst again"
        );
    }
}
