//! From content to all that a swap needs: read, compiled, described, checked, and given its stores. Nothing that the present generation uses is changed.
//!
//! Each step is repeated by itself: code that was compiled waits for a right, and stores that are late go on filling.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vmhost_core::Description;
use vmhost_engine::Plugin;

use super::error::ReloadError;
use super::report;
use super::tries::Tries;
use crate::manager::Manager;
use crate::permissions;
use crate::registry::{Generation, Slot, Wired};
use crate::watch_files::{self, FileError};

/// Where content comes from.
pub struct Origin<'a> {
    /// What a person changed: the file, or the folder that it was built from.
    pub source: &'a Path,
    /// The component.
    pub file: &'a Path,
    /// How long the host built it, if it did.
    pub build: Option<Duration>,
    /// How long the first failure is kept quiet.
    pub grace: Duration,
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

/// Tries until all is ready; none: nothing is to be swapped before other content comes. Whoever drops the future ends the tries.
pub async fn prepare(
    manager: &Arc<Manager>,
    slot: &Slot,
    origin: &Origin<'_>,
    content: Result<Vec<u8>, FileError>,
) -> Option<Ready> {
    let mut tries = Tries::new(manager, slot, origin.source, origin.grace);
    let limit = manager.loader.config.limits.component;
    let mut content = Some(content);
    let bytes = tries
        .until(|| {
            let content = content.take();
            Box::pin(async move {
                match content {
                    Some(content) => Ok(content?),
                    None => Ok(watch_files::read(origin.file, limit).await?),
                }
            })
        })
        .await?;
    let (plugin, compile) = tries
        .until(|| Box::pin(async { Ok(manager.loader.load(&bytes).await?) }))
        .await?;
    // Nobody else swaps this slot: what is compared with now is what will be replaced.
    let present = slot.current();
    if plugin.digest() == present.plugin.digest() {
        report::count(manager, slot, "unchanged", String::new(), None);
        return None;
    }
    let checked = Instant::now();
    let description = plugin.description();
    tries
        .until(|| Box::pin(check(manager, slot, present.description(), description)))
        .await?;
    let controllers = manager.wire(description, Some(&present), &present.share);
    tries
        .until(|| Box::pin(synced(manager, &controllers, &present)))
        .await?;
    Some(Ready {
        plugin,
        bytes,
        controllers,
        build: origin.build,
        compile,
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

/// Waits for stores that are new. Those that the present generation reads too are as ready as they were.
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
