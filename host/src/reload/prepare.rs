//! From content to all that a swap needs: read, compiled, described, checked, and given its stores.
//! Nothing that the present generation uses is changed.
//!
//! Each step is repeated by itself: code that was compiled waits for a right, and stores that are
//! late go on filling.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use vmhost_core::Description;
use vmhost_engine::Plugin;

use super::error::ReloadError;
use super::report;
use super::tries::Tries;
use crate::build::{Run, RunError};
use crate::manager::Manager;
use crate::permissions;
use crate::registry::{Generation, Slot, Wired};
use crate::watch_files::{self, FileError};

/// How long new content that cannot be loaded may still be half of a file, closed and opened again
/// by its writer.
const GRACE: Duration = Duration::from_secs(1);

/// What was made of the content.
struct Loaded {
    plugin: Plugin,
    bytes: Vec<u8>,
    build: Option<Duration>,
    compile: Duration,
}

/// All that a swap needs.
pub struct Ready {
    /// The code.
    pub plugin: Plugin,
    /// What the code was made of.
    pub bytes: Vec<u8>,
    /// Its controllers, with stores that are filled.
    pub controllers: HashMap<String, Wired>,
    /// From source to bytes, if the host built it.
    pub build: Option<Duration>,
    /// From bytes to code.
    pub compile: Duration,
    /// For the checks and the stores, pauses included.
    pub check: Duration,
}

/// Tries until a file's content is ready to be swapped to. Returns nothing if there is nothing to
/// swap before other content comes. A caller that drops the future ends the tries.
pub async fn prepare_file(
    manager: &Arc<Manager>,
    slot: &Slot,
    path: &Path,
    content: Result<Vec<u8>, FileError>,
) -> Option<Ready> {
    let mut tries = Tries::new(manager, slot, path, GRACE);
    let limit = manager.loader.config.limits.component;
    let mut content = Some(content);
    let bytes = tries
        .until(|| {
            let content = content.take();
            Box::pin(async move {
                match content {
                    Some(content) => Ok(content?),
                    None => Ok(watch_files::read(path, limit).await?),
                }
            })
        })
        .await?;
    let (plugin, compile) = tries
        .until(|| Box::pin(async { Ok(manager.loader.load(&bytes).await?) }))
        .await?;
    let loaded = Loaded {
        plugin,
        bytes,
        build: None,
        compile,
    };
    ready(manager, slot, tries, loaded).await
}

/// [`prepare_file`] of a folder of source, which `run` builds and loads.
pub async fn prepare_folder<'s>(
    manager: &Arc<Manager>,
    slot: &Slot,
    folder: &Path,
    mut run: impl FnMut() -> BoxFuture<'s, Result<Run, RunError>>,
) -> Option<Ready> {
    let mut tries = Tries::new(manager, slot, folder, Duration::ZERO);
    let run = tries
        .until(|| {
            let run = run();
            Box::pin(async { Ok(run.await?) })
        })
        .await?;
    let loaded = Loaded {
        plugin: run.loaded.0,
        bytes: run.bytes,
        build: Some(run.built.took),
        compile: run.loaded.1,
    };
    ready(manager, slot, tries, loaded).await
}

/// From a plugin to all that a swap to it needs; nothing if it runs already.
async fn ready(
    manager: &Arc<Manager>,
    slot: &Slot,
    mut tries: Tries<'_>,
    loaded: Loaded,
) -> Option<Ready> {
    // Nobody else swaps this slot: what is compared with now is what will be replaced.
    let present = slot.current();
    if loaded.plugin.digest() == present.plugin.digest() {
        report::count(manager, slot, "unchanged", String::new(), None);
        return None;
    }
    let checked = Instant::now();
    let description = loaded.plugin.description();
    tries
        .until(|| Box::pin(check(manager, slot, present.description(), description)))
        .await?;
    let controllers = manager.wire(description, Some(&present), &present.share);
    tries
        .until(|| {
            Box::pin(async {
                synced(manager, &controllers, &present).await?;
                // That may have taken long, and another plugin may have been swapped meanwhile.
                Ok(manager.check_finalizers(description)?)
            })
        })
        .await?;
    Some(Ready {
        plugin: loaded.plugin,
        bytes: loaded.bytes,
        controllers,
        build: loaded.build,
        compile: loaded.compile,
        check: checked.elapsed(),
    })
}

/// May this description take the place of the present one? What it needs in the cluster is set up.
async fn check(
    manager: &Manager,
    slot: &Slot,
    present: &Description,
    description: &Description,
) -> Result<(), ReloadError> {
    if description.name != slot.name {
        return Err(ReloadError::OtherName {
            found: description.name.clone(),
            expected: slot.name.clone(),
        });
    }
    let config = &manager.loader.config;
    if !config.allow_wider
        && let Err(wider) = slot.grants.check_description(description)
    {
        return Err(ReloadError::Wider(wider.0.join(", ")));
    }
    let options = permissions::Options::of(config);
    permissions::check::at_swap(&manager.connection, present, description, &options).await?;
    manager.check_finalizers(description)?;
    Ok(manager.set_up(description).await?)
}

/// Waits for stores that are new. Those that the present generation reads too are as ready as they
/// were.
async fn synced(
    manager: &Manager,
    controllers: &HashMap<String, Wired>,
    present: &Generation,
) -> Result<(), ReloadError> {
    let is_old = |wired: &&Wired| {
        let mut old = present.controllers.values();
        old.any(|old| Arc::ptr_eq(&old.sources, &wired.sources))
    };
    let new: Vec<&Wired> = controllers
        .values()
        .filter(|wired| !is_old(wired))
        .collect();
    let filled = async {
        for wired in &new {
            wired.sources.synced().await;
        }
    };
    let after = manager.loader.config.cache_sync_timeout;
    if tokio::time::timeout(after, filled).await.is_ok() {
        return Ok(());
    }
    let waiting: BTreeSet<String> = new
        .iter()
        .flat_map(|wired| wired.sources.waiting())
        .collect();
    Err(ReloadError::NotSynced {
        after,
        waiting: Vec::from_iter(waiting).join("; "),
    })
}
