//! Repeats what failed for a reason that may pass, with a growing pause, and tells each failure.
//!
//! It owns the pauses. It must not know what is tried: [`ReloadError`] says how long a pause may
//! get.

use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::error::ReloadError;
use super::report;
use crate::manager::Manager;
use crate::registry::Slot;
use crate::verdict::chain;

/// The first pause; it doubles up to [`ReloadError::longest_pause`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// A pause grows by up to this part of itself at random, so that the plugins of a host, and the
/// hosts of a cluster, do not ask the API server in step.
const JITTER: f64 = 0.2;

/// The tries of one content, all of its steps together.
pub struct Tries<'a> {
    manager: &'a Manager,
    slot: &'a Slot,
    source: &'a Path,
    /// How long the first failure is kept quiet.
    grace: Duration,
    pause: Duration,
    /// What the last failure was.
    told: Option<String>,
}

impl<'a> Tries<'a> {
    /// No try yet. `source`: what failures are told of.
    pub fn new(manager: &'a Manager, slot: &'a Slot, source: &'a Path, grace: Duration) -> Self {
        Self {
            manager,
            slot,
            source,
            grace,
            pause: FIRST_PAUSE,
            told: None,
        }
    }

    /// Takes a step until it succeeds. Returns nothing if only other content can mend it.
    pub async fn until<'s, T>(
        &mut self,
        mut step: impl FnMut() -> BoxFuture<'s, Result<T, ReloadError>>,
    ) -> Option<T> {
        loop {
            match step().await {
                Ok(done) => return Some(done),
                Err(error) => self.failed(&error).await?,
            }
        }
    }

    /// Tells a failure and waits for the next try. Returns nothing if there is none.
    async fn failed(&mut self, error: &ReloadError) -> Option<()> {
        if self.told.is_none() {
            tokio::time::sleep(self.grace).await;
        }
        let about = chain(error);
        let Some(longest) = error.longest_pause() else {
            report::failed(self.manager, self.slot, self.source, &about);
            return None;
        };
        let pause = self.pause.min(longest);
        self.pause = 2 * pause;
        let next_try = pause.mul_f64(1.0 + JITTER * fastrand::f64());
        let is_news = self.told.as_ref() != Some(&about);
        report::failed_for_now(
            self.manager,
            self.slot,
            self.source,
            &about,
            next_try,
            is_news,
        );
        self.told = Some(about);
        tokio::time::sleep(next_try).await;
        Some(())
    }
}
