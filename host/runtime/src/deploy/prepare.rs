//! From content to all that a swap needs: read, compiled, described, checked, and given its stores.
//! Nothing that the present generation uses is changed.
//!
//! Each step is repeated by itself: code that was compiled waits for a right, and stores that are
//! late go on filling.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vmhost_core::Description;

use crate::deploy::error::ReloadError;
use crate::deploy::loaded::Loaded;
use crate::deploy::plugins::Plugins;
use crate::deploy::slot::{Generation, Ready, Slot, Wired};
use crate::deploy::source::{Build, News};
use crate::deploy::tries::Tries;
use crate::deploy::{files, tries};
use crate::rights::{check, needs};

/// How long new content that cannot be loaded may still be half of a file, closed and opened again
/// by its writer.
const GRACE: Duration = Duration::from_secs(1);

/// Tries until what has changed is ready to be swapped to. `build`: what builds the folder at
/// `path`; none: a component's file is there. Returns nothing if there is nothing to swap before
/// another change. A caller that drops the future ends the tries.
pub(crate) async fn prepare(
    plugins: &Arc<Plugins>,
    slot: &Slot,
    path: &Path,
    build: Option<&dyn Build>,
    news: News,
) -> Option<Ready> {
    let grace = match build {
        Some(_) => Duration::ZERO,
        None => GRACE,
    };
    let mut tries = Tries::new(&plugins.metrics, slot, path, grace);
    let loaded = match build {
        Some(build) => tries.until(|| build.build()).await?,
        None => load_file(plugins, &mut tries, path, news).await?,
    };
    ready(plugins, slot, tries, loaded).await
}

/// A file's content is read, unless it came with the news of it, and loaded.
async fn load_file(
    plugins: &Plugins,
    tries: &mut Tries<'_>,
    path: &Path,
    mut content: News,
) -> Option<Loaded> {
    let limit = plugins.loader.config.limits.component;
    let bytes = tries
        .until(|| {
            let content = content.take();
            Box::pin(async move {
                match content {
                    Some(content) => Ok(content?),
                    None => Ok(files::read(path, limit).await?),
                }
            })
        })
        .await?;
    let (plugin, compile) = tries
        .until(|| Box::pin(async { Ok(plugins.loader.load(&bytes).await?) }))
        .await?;
    Some(Loaded {
        plugin,
        bytes,
        build: None,
        compile,
    })
}

/// From a plugin to all that a swap to it needs; nothing if it runs already.
async fn ready(
    plugins: &Arc<Plugins>,
    slot: &Slot,
    mut tries: Tries<'_>,
    loaded: Loaded,
) -> Option<Ready> {
    // Nobody else swaps this slot: what is compared with now is what will be replaced.
    let present = slot.current();
    if loaded.plugin.digest() == present.plugin.digest() {
        tries::count(&plugins.metrics, slot, "unchanged", String::new(), None);
        return None;
    }
    let checked = Instant::now();
    let description = loaded.plugin.description();
    tries
        .until(|| Box::pin(check(plugins, slot, present.description(), description)))
        .await?;
    let controllers = plugins.wire(description, Some(&present), &present.share);
    tries
        .until(|| {
            Box::pin(async {
                synced(plugins, &controllers, &present).await?;
                // That may have taken long, and another plugin may have been swapped meanwhile.
                Ok(plugins.check_unique(description, Some(slot))?)
            })
        })
        .await?;
    Some(Ready {
        loaded,
        controllers,
        check: checked.elapsed(),
    })
}

/// May this description take the place of the present one? What it needs in the cluster is set up.
async fn check(
    plugins: &Plugins,
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
    let config = &plugins.loader.config;
    if !config.allow_wider
        && let Err(wider) = slot.grants.check_description(description)
    {
        return Err(ReloadError::Wider(wider.0.join(", ")));
    }
    let options = needs::Options::of(config);
    let (reader, reviews) = (&plugins.reader, &plugins.reviews);
    check::at_swap(reader, reviews, present, description, &options).await?;
    plugins.check_unique(description, Some(slot))?;
    Ok(plugins.set_up(description).await?)
}

/// Waits for stores that are new. Those that the present generation reads too are as ready as they
/// were.
async fn synced(
    plugins: &Plugins,
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
    let after = plugins.loader.config.cache_sync_timeout;
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
