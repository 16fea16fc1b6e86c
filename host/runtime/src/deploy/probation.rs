//! The first minutes of a version after its swap. If all its calls fail in that time, the version
//! is probably at fault, and the host rolls it back or suggests that; later, the cause is more
//! likely something else.
//!
//! This module must not know how a rollback is done.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::deploy::history::report::RollbackSuggested;

/// How long a version is on probation.
pub(crate) const PROBATION: Duration = Duration::from_secs(300);

/// Which generation of a plugin is on probation, if any.
#[derive(Default)]
pub(crate) struct Probation {
    trial: Mutex<Option<Trial>>,
}

struct Trial {
    generation: u64,
    since: Instant,
    /// The rollback that is suggested, once the version has failed.
    suggested: Option<RollbackSuggested>,
}

impl Probation {
    /// Begins the probation of this generation, after a swap to it.
    pub(crate) fn begin(&self, generation: u64) {
        *self.trial.lock() = Some(Trial {
            generation,
            since: Instant::now(),
            suggested: None,
        });
    }

    /// Ends the probation, since an older version runs again.
    pub(crate) fn end(&self) {
        *self.trial.lock() = None;
    }

    /// Returns whether this generation is on probation and has not failed yet.
    pub(crate) fn is_on(&self, generation: u64) -> bool {
        let trial = self.trial.lock();
        trial.as_ref().is_some_and(|trial| {
            trial.generation == generation
                && trial.suggested.is_none()
                && trial.since.elapsed() < PROBATION
        })
    }

    /// Suggests a rollback of this generation, which has failed.
    pub(crate) fn suggest(&self, generation: u64, suggested: RollbackSuggested) {
        let mut trial = self.trial.lock();
        if let Some(trial) = trial
            .as_mut()
            .filter(|trial| trial.generation == generation)
        {
            trial.suggested = Some(suggested);
        }
    }

    /// The suggested rollback of this generation, if there is one.
    pub(crate) fn suggested(&self, generation: u64) -> Option<RollbackSuggested> {
        let trial = self.trial.lock();
        let trial = trial
            .as_ref()
            .filter(|trial| trial.generation == generation)?;
        trial.suggested.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_version_is_on_probation_for_five_minutes_after_its_swap() {
        let probation = Probation::default();
        assert!(!probation.is_on(1), "the first one was not swapped in");
        probation.begin(2);
        assert!(probation.is_on(2) && !probation.is_on(1));
        tokio::time::advance(PROBATION - Duration::from_secs(1)).await;
        assert!(probation.is_on(2));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!probation.is_on(2));
        probation.begin(3);
        probation.end();
        assert!(!probation.is_on(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_rollback_is_suggested_once_and_for_one_generation() {
        let probation = Probation::default();
        let suggested = || RollbackSuggested {
            to: "sha256:ab".to_owned(),
            ..RollbackSuggested::default()
        };
        probation.suggest(2, suggested());
        assert_eq!(probation.suggested(2), None);
        probation.begin(2);
        probation.suggest(1, suggested());
        assert_eq!(probation.suggested(2), None);
        probation.suggest(2, suggested());
        assert_eq!(probation.suggested(2), Some(suggested()));
        assert!(!probation.is_on(2), "it has failed already");
        probation.begin(3);
        assert_eq!(probation.suggested(2), None);
        assert_eq!(probation.suggested(3), None);
    }
}
