//! From new content to a new generation, or to nothing but a counter, a log line and a status.
//!
//! compile (off the runtimes' threads) -> describe (where guests run) -> check -> new stores -> replace one pointer -> all keys back in the low lane -> announce.
//! Optimised code comes later, behind the swap: it belongs to its generation, changes no number and re-enqueues nothing.
//!
//! [`prepare`] is all up to the new stores, and changes nothing that runs; [`tries`] repeats a step
//! of it whose failure may pass, as [`error`] says; [`replace`] is the rest.

use std::path::PathBuf;
use std::sync::Arc;

use crate::manager::Manager;
use crate::registry::Slot;
use crate::watch_files::FileWatch;

pub mod error;
mod last;
mod optimise;
mod prepare;
mod replace;
mod report;
mod tries;

pub use last::LastReload;
pub use optimise::optimise_later;
pub use prepare::{Ready, prepare_folder};

use prepare::prepare_file;

/// Watches a plugin's file and swaps when its content changes. Never ends; a reload that fails
/// leaves all as it is.
pub async fn follow(manager: Arc<Manager>, slot: Arc<Slot>, path: PathBuf) {
    let limit = manager.loader.config.limits.component;
    let mut known = [0; 32];
    // A digest of another length would be no SHA-256: then the file is loaded once more.
    let _ = hex::decode_to_slice(slot.current().plugin.digest(), &mut known);
    let mut watch = FileWatch::new(&manager.loader.files, &path, known, limit);
    let mut content = watch.changed().await;
    loop {
        let ready = tokio::select! {
            ready = prepare_file(&manager, &slot, &path, content) => ready,
            // What is being compiled, checked or waited for is old already.
            newer = watch.changed() => {
                content = newer;
                continue;
            }
        };
        if let Some(ready) = ready {
            swap(&manager, &slot, ready).await;
        }
        content = watch.changed().await;
    }
}

/// Swaps, and announces it: no call starts on an older generation after the log line. Must be run
/// to its end.
pub async fn swap(manager: &Arc<Manager>, slot: &Arc<Slot>, ready: Ready) {
    let bytes = ready.bytes.clone();
    let swapped = replace::replace(manager, slot, ready).await;
    report::count(manager, slot, "swapped", swapped.to_string(), None);
    tracing::info!(
        plugin = swapped.plugin,
        generation = swapped.generation,
        keys = swapped.keys,
        "{swapped}"
    );
    optimise_later(manager, slot, bytes);
}
