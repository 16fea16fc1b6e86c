//! From new content to a new generation, or to nothing but a counter, a log line and a status.
//!
//! compile (off the runtimes' threads) -> describe (where guests run) -> check -> new stores -> replace one pointer -> all keys back in the low lane -> announce.
//! Optimised code comes later, behind the swap: it belongs to its generation, changes no number and re-enqueues nothing.
//!
//! [`super::prepare`] is all up to the new stores, and changes nothing that runs; [`super::tries`] repeats a step
//! of it whose failure may pass, as [`super::error`] says; [`super::replace`] is the rest.

use std::path::Path;
use std::sync::Arc;

use crate::deploy::files::FileWatch;
use crate::deploy::optimise::optimise_later;
use crate::deploy::plugins::Plugins;
use crate::deploy::prepare::prepare;
use crate::deploy::slot::{Ready, Slot};
use crate::deploy::source::{Source, Watch};
use crate::deploy::{replace, tries};

/// Watches a plugin's source and swaps when its content changes. Never ends; a reload that fails
/// leaves all as it is.
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
            // What is being built, compiled, checked or waited for is old already.
            newer = watch.changed() => {
                news = newer;
                continue;
            }
        };
        if let Some(ready) = ready {
            swap(&plugins, &slot, ready).await;
        }
        news = watch.changed().await;
    }
}

/// Watches the file that the present generation was loaded from.
fn watch_file(plugins: &Plugins, slot: &Slot, path: &Path) -> FileWatch {
    let limit = plugins.loader.config.limits.component;
    let mut known = [0; 32];
    // A digest of another length would be no SHA-256: then the file is loaded once more.
    let _ = hex::decode_to_slice(slot.current().plugin.digest(), &mut known);
    FileWatch::new(&plugins.loader.files, path, known, limit)
}

/// Swaps, and announces it: no call starts on an older generation after the log line. Must be run
/// to its end while the host runs.
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
