//! The line of clusters that do not know yet which cluster they are. Of two names for one cluster
//! the older one has it, whichever answers first, so that a restart changes nothing.
//!
//! It must not know how a cluster is asked.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::found::Found;

/// How long a cluster waits for older ones.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a cluster that fails keeps its place. It may just be starting, as the host is.
const KEPT: Duration = Duration::from_secs(10);

/// The time when the object of a cluster was created, and the cluster's name.
type Place = (String, String);

/// The clusters in line, the oldest first.
#[derive(Clone, Default)]
pub(super) struct Line(Arc<watch::Sender<BTreeSet<Place>>>);

/// A place in the line, which is left when this is dropped.
pub(super) struct Spot {
    line: Line,
    place: Place,
    entered: Instant,
    /// Until when it waits, once it does.
    patience: OnceLock<Instant>,
}

impl Line {
    /// Takes a place.
    pub(super) fn enter(&self, found: &Found) -> Spot {
        let place = (found.born.clone(), found.name.clone());
        self.0.send_modify(|all| {
            all.insert(place.clone());
        });
        Spot {
            line: self.clone(),
            place,
            entered: Instant::now(),
            patience: OnceLock::new(),
        }
    }
}

impl Spot {
    /// Waits until all older ones have left, or have had enough time since the first call.
    pub(super) async fn turn(&self) {
        let patience = self.patience.get_or_init(|| Instant::now() + PATIENCE);
        let mut line = self.line.0.subscribe();
        let is_first = line.wait_for(|all| all.first().is_none_or(|first| *first >= self.place));
        // It is never closed while this exists.
        let _ = timeout_at(*patience, is_first).await;
    }

    /// Returns whether it has been in line for so long that it should leave.
    pub(super) fn is_old(&self) -> bool {
        self.entered.elapsed() >= KEPT
    }
}

impl Drop for Spot {
    fn drop(&mut self) {
        self.line.0.send_modify(|all| {
            all.remove(&self.place);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::member::Labels;

    fn found(born: &str, name: &str) -> Found {
        Found {
            name: name.to_owned(),
            born: born.to_owned(),
            labels: Labels::new(),
            target: Err("nowhere".to_owned()),
            stamp: 0,
            place: String::new(),
            carrier: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_older_one_comes_first_and_holds_nobody_up_for_long() {
        let line = Line::default();
        let start = Instant::now();
        let younger = line.enter(&found("2026-01-02T00:00:00Z", "a"));
        let older = line.enter(&found("2026-01-01T00:00:00Z", "b"));
        older.turn().await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        let ((), ()) = tokio::join!(younger.turn(), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            drop(older);
        });
        assert_eq!(start.elapsed(), Duration::from_millis(300));
        drop(younger);

        let start = Instant::now();
        let _ill = line.enter(&found("", "file"));
        let other = line.enter(&found("", "other"));
        tokio::time::sleep(PATIENCE).await;
        other.turn().await;
        assert_eq!(
            start.elapsed(),
            2 * PATIENCE,
            "it waits from its own answer on"
        );
        assert!(!other.is_old());
        other.turn().await;
        assert_eq!(start.elapsed(), 2 * PATIENCE, "once");
        tokio::time::sleep(KEPT - 2 * PATIENCE).await;
        assert!(other.is_old());
    }
}
