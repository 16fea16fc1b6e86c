//! How reloads end: each end is counted, shown and logged, and what failed for a reason that may pass
//! is tried again, with a growing pause.
//!
//! It owns the pauses. It must not know what is tried: [`ReloadError`] says how long a pause may
//! get.

use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::deploy::error::ReloadError;
use crate::deploy::last::LastReload;
use crate::deploy::slot::Slot;
use crate::observe::metrics::Metrics;
use vmhost_core::chain;

/// The first pause; it doubles up to [`ReloadError::longest_pause`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// A pause grows by up to this part of itself at random, so that the plugins of a host, and the
/// hosts of a cluster, do not ask the API server in step.
const JITTER: f64 = 0.2;

/// The tries of one content, all of its steps together.
pub(crate) struct Tries<'a> {
    metrics: &'a Metrics,
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

    /// Takes a step until it succeeds. Returns nothing if only other content can mend it.
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

    /// Tells a failure and waits for the next try. Returns nothing if there is none.
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

/// A reload ended: `swapped`, `unchanged` or `failed`. `next_try`: after how long the same content
/// is tried again.
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

/// A reload failed, and only other content can mend it: that is counted, shown and logged, and that
/// is all.
fn failed(metrics: &Metrics, slot: &Slot, source: &Path, about: &str) {
    count(metrics, slot, "failed", about.to_owned(), None);
    tracing::error!(
        plugin = slot.name,
        "{} is not loaded, generation {} goes on: {about}",
        source.display(),
        slot.current().number
    );
}

/// As [`failed`], of what will be tried again. `is_news`: the last try did not end like this.
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
            "{source} is not loaded, generation {number} goes on, next try in {next_try:.1?}: {about}"
        );
    } else {
        tracing::debug!(
            plugin,
            "{source} is still not loaded, next try in {next_try:.1?}: {about}"
        );
    }
}
