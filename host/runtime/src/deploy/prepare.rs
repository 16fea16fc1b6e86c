//! Prepares a swap: reads, compiles, describes and checks new content, and fills its stores.
//! Nothing that the present generation uses changes. This module must not know how a generation is
//! replaced.
//!
//! Each step is retried by itself: while a right is missing, the compiled code is kept, and while
//! stores sync slowly, they keep filling.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vmhost_core::Description;
use vmhost_engine::Plugin;

use crate::config::terms::Terms;
use crate::deploy::error::ReloadError;
use crate::deploy::loaded::Loaded;
use crate::deploy::plugins::Plugins;
use crate::deploy::slot::{Generation, Readers, Ready, Slot, Wired};
use crate::deploy::source::{Build, News};
use crate::deploy::tries::Tries;
use crate::deploy::{files, registered, rollback, tries};
use crate::rights::{check, needs};
use crate::wake::sources::Sources;

/// How long an error of new content is held back, since the content may be half of a file that its
/// writer closes and opens again.
const GRACE: Duration = Duration::from_secs(1);

/// Retries until the changed content is ready for a swap. `build` builds the folder at `path`;
/// `None` if `path` is a component file. Returns `None` if there is nothing to swap before the next
/// change. Dropping the future ends the retries.
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
    ready(plugins, slot, path, tries, loaded.shared()).await
}

/// Loads a component file. The content is read only if it did not come with the change.
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

/// Prepares a loaded plugin for a swap. Returns `None` if the plugin runs already, or if this
/// version was rolled back.
async fn ready(
    plugins: &Arc<Plugins>,
    slot: &Slot,
    path: &Path,
    mut tries: Tries<'_>,
    loaded: Loaded<Arc<Plugin>>,
) -> Option<Ready> {
    let digest = loaded.plugin.digest();
    if let Some(is_news) = rollback::refused(&plugins.loader, slot, digest).await {
        refuse(plugins, slot, path, digest, is_news);
        return None;
    }
    // No other task swaps this slot, so the generation that is compared here is the one that will
    // be replaced.
    let present = slot.current();
    if digest == present.plugin.digest() {
        tries::count(&plugins.metrics, slot, "unchanged", String::new(), None);
        // If a version was refused: the source has other bytes now.
        rollback::lift(&plugins.loader, slot).await;
        return None;
    }
    let checked = Instant::now();
    let description = loaded.plugin.description();
    let terms = present.terms.clone();
    tries
        .until(|| Box::pin(check(plugins, slot, &present, description, &terms)))
        .await?;
    let controllers = plugins.wire(description, &terms, Some(&present), &present.share);
    let readers = plugins.readers(description, &terms, Some(&present), &present.share);
    tries
        .until(|| {
            Box::pin(async {
                synced(plugins, description, &controllers, &readers, &present).await?;
                // The sync may have taken long, and another plugin may have been swapped meanwhile.
                Ok(plugins.check_unique(description, Some(slot))?)
            })
        })
        .await?;
    // Not before: the tries may last for hours, and a cluster that is left meanwhile would keep its
    // stores.
    let seats = plugins.seats(description, &terms, &present);
    plugins.seats_filled(&seats, &present).await;
    Some(Ready {
        loaded,
        terms,
        controllers,
        seats,
        readers,
        check: checked.elapsed(),
    })
}

/// Prepares a loaded plugin for a swap under these terms that was ordered. Each step is tried once.
pub(crate) async fn once(
    plugins: &Arc<Plugins>,
    slot: &Slot,
    loaded: Loaded<Arc<Plugin>>,
    terms: Arc<Terms>,
) -> Result<Ready, ReloadError> {
    let present = slot.current();
    let checked = Instant::now();
    let description = loaded.plugin.description();
    check(plugins, slot, &present, description, &terms).await?;
    let controllers = plugins.wire(description, &terms, Some(&present), &present.share);
    let seats = plugins.seats(description, &terms, &present);
    let readers = plugins.readers(description, &terms, Some(&present), &present.share);
    synced(plugins, description, &controllers, &readers, &present).await?;
    plugins.check_unique(description, Some(slot))?;
    plugins.seats_filled(&seats, &present).await;
    Ok(Ready {
        loaded,
        terms,
        controllers,
        seats,
        readers,
        check: checked.elapsed(),
    })
}

/// Counts and shows that the source has a version that was rolled back, and logs it if that is
/// news.
fn refuse(plugins: &Plugins, slot: &Slot, path: &Path, digest: &str, is_news: bool) {
    let about = rollback::refusal(slot, path, digest);
    match is_news {
        true => tracing::warn!(plugin = slot.name, "{about}"),
        false => tracing::debug!(plugin = slot.name, "{about}"),
    }
    tries::count(&plugins.metrics, slot, "refused", about, None);
}

/// Returns an error if this description may not replace the present one. Installs its
/// CustomResourceDefinitions.
async fn check(
    plugins: &Plugins,
    slot: &Slot,
    present: &Generation,
    description: &Description,
    terms: &Terms,
) -> Result<(), ReloadError> {
    let before = (present.description(), &*present.terms);
    let present = present.description();
    if description.name != slot.name {
        return Err(ReloadError::OtherName {
            found: description.name.clone(),
            expected: slot.name.clone(),
        });
    }
    let config = &plugins.loader.config;
    if !config.allow_wider
        && !terms.is_granted
        && let Err(wider) = slot.grants.check_description(description)
    {
        return Err(ReloadError::Wider(wider.0.join(", ")));
    }
    let (reader, reviews) = (&plugins.reader, &plugins.reviews);
    let options = |terms: &Terms| needs::Options::under(config, terms);
    let needed = |(of, terms): (&Description, &Terms)| {
        needs::needs(&needs::under(&needs::at_home(of), terms), &options(terms))
    };
    let after = (description, terms);
    check::at_swap(reader, reviews, &needed(before), after.0, needed(after)).await?;
    plugins.check_unique(description, Some(slot))?;
    if config.serve_webhooks {
        let registers = config.register_webhooks;
        registered::check(reader, present, description, registers).await?;
    }
    Ok(plugins.set_up(description, terms).await?)
}

/// Waits until new stores are ready. Stores that the present generation also reads are not waited
/// for, nor those of a new controller that the API server may only be able to fill after the swap,
/// since the new version converts their objects: its workers wait for them.
async fn synced(
    plugins: &Plugins,
    description: &Description,
    controllers: &HashMap<String, Wired>,
    readers: &Readers,
    present: &Generation,
) -> Result<(), ReloadError> {
    let old = present.controllers.values().map(|wired| &wired.sources);
    let old: Vec<&Arc<Sources>> = old.chain(present.readers.values()).collect();
    let may_wait = |wired: &&Wired| {
        !wired.controller.has_started()
            && wired.sources.description().kinds().any(|(_, watched)| {
                let mut conversions = description.conversions.iter();
                conversions.any(|conversion| conversion.converts(&watched.gvk()))
            })
    };
    let wired = controllers.values().filter(|wired| !may_wait(wired));
    let all = wired.map(|wired| &wired.sources).chain(readers.values());
    let new: Vec<&Arc<Sources>> = all
        .filter(|sources| !old.iter().any(|old| Arc::ptr_eq(old, sources)))
        .collect();
    let filled = async {
        for sources in &new {
            sources.synced().await;
        }
    };
    let after = plugins.loader.config.cache_sync_timeout;
    if tokio::time::timeout(after, filled).await.is_ok() {
        return Ok(());
    }
    let waiting: BTreeSet<String> = new.iter().flat_map(|sources| sources.waiting()).collect();
    Err(ReloadError::NotSynced {
        after,
        waiting: Vec::from_iter(waiting).join("; "),
    })
}
