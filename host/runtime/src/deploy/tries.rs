//! The attempts of a reload: each result is counted, shown in the status and logged, and a failure
//! that may pass is retried with a growing pause.
//!
//! This module owns the pauses and must not know the steps that are retried. [`ReloadError`] says
//! how long a pause may get.

use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::deploy::error::ReloadError;
use crate::deploy::last::LastReload;
use crate::deploy::slot::Slot;
use crate::observe::metrics::Metrics;
use vmhost_core::chain;

/// The first pause. It doubles up to [`ReloadError::longest_pause`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// A pause is extended at random by up to this fraction, so that the plugins of a host and the
/// hosts of a cluster do not send requests in step.
const JITTER: f64 = 0.2;

/// The attempts to load one content, over all steps.
pub(crate) struct Tries<'a> {
    metrics: &'a Metrics,
    slot: &'a Slot,
    source: &'a Path,
    /// How long the first failure is held back.
    grace: Duration,
    pause: Duration,
    /// The text of the last failure.
    told: Option<String>,
}

impl<'a> Tries<'a> {
    /// No attempt yet. Failures are logged for `source`.
    pub(crate) fn new(
        metrics: &'a Metrics,
        slot: &'a Slot,
        source: &'a Path,
        grace: Duration,
    ) -> Self {
        Self {
            metrics,
            slot,
            source,
            grace,
            pause: FIRST_PAUSE,
            told: None,
        }
    }

    /// Repeats a step until it succeeds. Returns `None` if only other content can succeed.
    pub(crate) async fn until<'s, T>(
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

    /// Reports a failure and waits for the next attempt. Returns `None` if there is none.
    async fn failed(&mut self, error: &ReloadError) -> Option<()> {
        if self.told.is_none() {
            tokio::time::sleep(self.grace).await;
        }
        let about = chain(error);
        let Some(longest) = error.longest_pause() else {
            failed(self.metrics, self.slot, self.source, &about);
            return None;
        };
        let pause = self.pause.min(longest);
        self.pause = 2 * pause;
        let next_try = pause.mul_f64(1.0 + JITTER * fastrand::f64());
        let is_news = self.told.as_ref() != Some(&about);
        failed_for_now(
            self.metrics,
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

/// Counts and shows the result of a reload: one of the words of [`LastReload::result`]. `next_try`
/// is the pause before the same content is tried again.
pub(crate) fn count(
    metrics: &Metrics,
    slot: &Slot,
    result: &str,
    about: String,
    next_try: Option<Duration>,
) {
    metrics
        .reloads
        .with_label_values(&[slot.name.as_str(), result])
        .inc();
    slot.last_reload
        .store(Some(LastReload::now(result, about, next_try)));
}

/// Counts, shows and logs a failed reload that only other content can fix.
fn failed(metrics: &Metrics, slot: &Slot, source: &Path, about: &str) {
    count(metrics, slot, "failed", about.to_owned(), None);
    tracing::error!(
        plugin = slot.name,
        "cannot load {}; generation {} keeps running: {about}",
        source.display(),
        slot.current().number
    );
}

/// Like [`failed`], for a failure that will be retried. `is_news` is false if the previous attempt
/// failed with the same error.
fn failed_for_now(
    metrics: &Metrics,
    slot: &Slot,
    source: &Path,
    about: &str,
    next_try: Duration,
    is_news: bool,
) {
    count(metrics, slot, "failed", about.to_owned(), Some(next_try));
    let (plugin, source, number) = (&slot.name, source.display(), slot.current().number);
    if is_news {
        tracing::error!(
            plugin,
            "cannot load {source}; generation {number} keeps running; retrying in {next_try:.1?}: {about}"
        );
    } else {
        tracing::debug!(
            plugin,
            "still cannot load {source}; retrying in {next_try:.1?}: {about}"
        );
    }
}
