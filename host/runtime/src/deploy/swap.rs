//! Swaps a plugin to new content. A reload that fails leaves only a counter, a log line and a
//! status; and, with `--install-crds`, the definitions that it had installed by then.
//!
//! The steps: compile (on threads outside the runtimes) -> describe (on the guests' runtime) ->
//! check -> fill new stores -> exchange one pointer -> requeue all keys in the low lane ->
//! announce. Optimised code is installed later and changes no generation number.
//!
//! [`super::prepare`] does everything up to the new stores and changes nothing that runs.
//! [`super::tries`] retries a step of the preparation if [`super::error`] says that the failure may
//! pass. [`super::replace`] does the rest.

use std::path::Path;
use std::sync::Arc;

use crate::deploy::files::FileWatch;
use crate::deploy::optimise::optimise_later;
use crate::deploy::plugins::Plugins;
use crate::deploy::prepare::prepare;
use crate::deploy::slot::{Ready, Slot};
use crate::deploy::source::{Source, Watch};
use crate::deploy::{replace, tries};

/// Watches a plugin's source and swaps when its content changes. Never returns. A failed reload
/// leaves the current generation running.
pub async fn follow(plugins: Arc<Plugins>, slot: Arc<Slot>, source: Source) {
    let path = source.path().to_owned();
    let (mut watch, build) = match source {
        Source::File(path) => (Watch::File(watch_file(&plugins, &slot, &path)), None),
        Source::Folder(watch, build) => (Watch::Folder(watch), Some(build)),
    };
    let mut news = watch.changed().await;
    loop {
        let ready = tokio::select! {
            ready = prepare(&plugins, &slot, &path, build.as_deref(), news) => ready,
            // The content that is being built, compiled, checked or waited for is already out of
            // date.
            newer = watch.changed() => {
                news = newer;
                continue;
            }
        };
        if let Some(ready) = ready {
            // A task of its own: the shutdown cancels this one, and a swap that has begun runs to
            // its end, or the workers of a replaced controller would never end.
            let (plugins, slot) = (plugins.clone(), slot.clone());
            let swap = tokio::spawn(async move { swap(&plugins, &slot, ready).await });
            if let Err(error) = swap.await {
                tracing::error!("the swap ended early: {error}");
            }
        }
        news = watch.changed().await;
    }
}

/// Watches the file that the current generation was loaded from.
fn watch_file(plugins: &Plugins, slot: &Slot, path: &Path) -> FileWatch {
    let limit = plugins.loader.config.limits.component;
    let mut known = [0; 32];
    // A digest that is no SHA-256 is ignored; then the file is loaded once more.
    let _ = hex::decode_to_slice(slot.current().plugin.digest(), &mut known);
    FileWatch::new(&plugins.loader.files, path, known, limit)
}

/// Swaps and announces the new generation: no call starts on an older one after the log line. This
/// must run to its end while the host runs.
async fn swap(plugins: &Arc<Plugins>, slot: &Arc<Slot>, mut ready: Ready) {
    let bytes = std::mem::take(&mut ready.loaded.bytes);
    let swapped = replace::replace(plugins, slot, ready).await;
    tries::count(&plugins.metrics, slot, "swapped", swapped.to_string(), None);
    tracing::info!(
        plugin = swapped.plugin,
        generation = swapped.generation,
        keys = swapped.keys,
        "{swapped}"
    );
    optimise_later(plugins, slot, bytes);
}
