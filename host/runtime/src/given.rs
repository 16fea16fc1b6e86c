//! Plugins that come, change and go while the host runs, such as those of `Plugin` objects: they
//! are handed over loaded, with their terms.
//!
//! It must not know where a plugin comes from, nor how its terms were decided.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use vmhost_cluster::Error;
use vmhost_core::Description;
use vmhost_engine::Code;

use crate::canary::Stage;
use crate::canary::end::Abort;
use crate::canary::order::{Start, Warned};
use crate::canary::rules::Tuning;
use crate::canary::steps::Steps;
use crate::config::terms::Terms;
use crate::deploy::history::report::RolledBack;
use crate::deploy::loaded::Loaded;
use crate::deploy::optimise::optimise_later;
use crate::deploy::orders::{Order, OrderError};
use crate::deploy::plugins::Plugins;
use crate::deploy::slot::Slot;
use crate::deploy::source::Source;
use crate::deploy::{history, rollback, swap};
use crate::journal::watch::Warnings;
pub use crate::rights::outside::Outside;
use crate::rights::wait::Rights;
use crate::rights::{check, needs, outside};
use crate::shadow::door::Shadowing;
use crate::shadow::order::Shadows;

mod error;
mod shown;

pub use error::GivenError;
pub use shown::{RunningPlugin, Version};

/// How long the last Events of a plugin may take.
const FLUSH: Duration = Duration::from_secs(2);

/// How long a removal waits until a canary's keys are put back.
const PUT_BACK: Duration = Duration::from_secs(5);

/// Adds, changes and removes plugins. Cheap to clone.
#[derive(Clone)]
pub struct Given {
    /// The plugins of the host.
    pub plugins: Arc<Plugins>,
    /// Wakes the keys that wait for a right.
    pub rights: Arc<Rights>,
    /// The warnings about keys.
    pub warnings: Arc<Warnings>,
    /// The shadows of the plugins.
    pub shadows: Arc<Shadows>,
}

impl Given {
    /// Adds a plugin. `source` names where it comes from, for messages. If its version was rolled
    /// back, the one before it runs: one that ran for the same owner, since another owner's code
    /// must not get this one's terms.
    pub async fn install(
        &self,
        (source, owner): (&str, &str),
        loaded: Loaded,
        terms: Terms,
    ) -> Result<(), GivenError> {
        let plugins = &self.plugins;
        let (loader, path) = (&plugins.loader, PathBuf::from(source));
        let name = loaded.plugin.description().name.clone();
        let unique = plugins.check_unique(loaded.plugin.description(), None);
        unique.map_err(|error| GivenError::Unfit {
            about: error.to_string(),
            may_pass: true,
        })?;
        loader.history.belongs(&name, owner);
        let loaded = rollback::instead(loader, &path, loaded, &terms).await;
        let kept = history::with(&loader.history, move |history| {
            history.keep(&loaded.plugin, &loaded.bytes);
            loaded
        });
        let loaded = kept.await.ok_or(OrderError::Dropped)?;
        let baseline = loaded.plugin.code() == Code::Baseline;
        let (bytes, terms) = (loaded.bytes, Arc::new(terms));
        let added = plugins.add_under(vec![(loaded.plugin, terms)]).await;
        let slots = added.map_err(|error| GivenError::Unfit {
            about: format!("{error:#}"),
            may_pass: true,
        })?;
        rollback::began(loader, &slots).await;
        let Some(slot) = slots.into_iter().next() else {
            return Err(GivenError::NoPlugin(name));
        };
        if baseline {
            optimise_later(plugins, &slot, &slot.current(), bytes);
        }
        self.report_rights(&slot);
        let source = Source::Orders(path);
        plugins.follow(swap::follow(plugins.clone(), slot, source));
        Ok(())
    }

    /// Returns whether a plugin was added for this owner.
    #[must_use]
    pub fn is_of(&self, plugin: &str, owner: &str) -> bool {
        self.plugins.loader.history.is_of(plugin, owner)
    }

    /// Reports missing rights in the background, and asks for them again later.
    fn report_rights(&self, slot: &Arc<Slot>) {
        let (plugins, generation) = (&self.plugins, slot.current());
        let options = needs::Options::under(&plugins.loader.config, &generation.terms);
        let description = needs::at_home(generation.description());
        let description = needs::under(&description, &generation.terms);
        let (reader, reviews) = (plugins.reader.clone(), plugins.reviews.clone());
        let (rights, slot) = (self.rights.clone(), slot.clone());
        tokio::spawn(async move {
            let missing = check::at_start(reader, reviews, description, options.clone()).await;
            check::follow(&rights, &slot, &options, missing);
        });
    }

    /// Swaps a plugin to another version, or to the same under other terms. Returns what was done.
    pub async fn swap(
        &self,
        plugin: &str,
        loaded: Loaded,
        terms: Terms,
    ) -> Result<String, GivenError> {
        let slot = self.slot(plugin)?;
        let (loaded, terms) = (Box::new(loaded), Arc::new(terms));
        let order = |answer| Order::Swap {
            loaded,
            terms,
            answer,
        };
        Ok(slot.orders.ask(order).await?)
    }

    /// Replaces the running version by an older one that is kept on this host, under the present
    /// terms. The replaced version is refused from now on. Returns what was done.
    pub async fn roll_back(&self, plugin: &str, digest: &str) -> Result<RolledBack, GivenError> {
        let slot = self.slot(plugin)?;
        let to = Some(digest.to_owned());
        let order = |answer| Order::Rollback { to, answer };
        Ok(slot.orders.ask(order).await?)
    }

    /// Tries a version on a share of the objects.
    pub async fn try_out(
        &self,
        plugin: &str,
        loaded: Loaded,
        terms: Terms,
        (steps, tuning): (Steps, Tuning),
    ) -> Result<(), GivenError> {
        let slot = self.slot(plugin)?;
        let warnings = self.warnings.clone();
        let warned: Warned = Arc::new(move || warnings.all());
        let start = Box::new(Start {
            loaded,
            steps,
            tuning,
            warned,
            terms: Arc::new(terms),
        });
        let order = |answer| Order::StartCanary { start, answer };
        Ok(slot.orders.ask(order).await?)
    }

    /// Makes the candidate the live version.
    pub async fn promote(&self, plugin: &str) -> Result<(), GivenError> {
        let slot = self.slot(plugin)?;
        let generation = None;
        let order = |answer| Order::Promote { generation, answer };
        Ok(slot.orders.ask(order).await?)
    }

    /// Ends the canary of a plugin, if one runs: the live version gets the candidate's objects
    /// back.
    pub async fn abort(&self, plugin: &str) -> Result<(), GivenError> {
        let slot = self.slot(plugin)?;
        abort(&slot).await;
        Ok(())
    }

    /// What runs of a plugin. `None` if it is not on this host.
    pub fn running(&self, plugin: &str) -> Option<RunningPlugin> {
        let slot = self.slot(plugin).ok()?;
        Some(RunningPlugin::of(&slot))
    }

    /// The versions of a plugin that run: the live one, and the one that is tried.
    pub fn versions(&self, plugin: &str) -> Vec<Version> {
        let slot = self.slot(plugin);
        slot.map_or_else(|_| Vec::new(), |slot| Version::all_of(&slot))
    }

    /// The objects that carry a finalizer of a plugin, as far as its stores show them.
    pub fn holding(&self, plugin: &str) -> Vec<String> {
        let slot = self.slot(plugin);
        slot.map_or_else(|_| Vec::new(), |slot| shown::holding(&slot))
    }

    /// Returns whether this host leads, or is alone.
    pub fn leads(&self) -> bool {
        self.plugins.leadership.is_leading()
    }

    /// Waits until this host begins to lead, if it did not, or does not lead any more, if it did.
    pub async fn changes_from(&self, was_leading: bool) {
        self.plugins.leadership.changes_from(was_leading).await;
    }

    /// The rights that a plugin needs under these terms and that its service account does not have,
    /// or without one a plugin of this namespace.
    pub async fn outside(
        &self,
        description: &Description,
        terms: &Terms,
        home: &str,
    ) -> Result<Outside, Error> {
        let plugins = &self.plugins;
        let options = needs::Options::under(&plugins.loader.config, terms);
        let asked = (&plugins.reader, &plugins.reviews);
        outside::outside(asked, description, (terms, &options), home).await
    }

    /// Removes a plugin: no call starts any more, those in flight end, and its stores go.
    pub async fn remove(&self, plugin: &str) -> Result<(), GivenError> {
        let slot = self.slot(plugin)?;
        // After this, no swap and no canary begins.
        let ended = slot.orders.ask(|answer| Order::End { answer }).await;
        if let Err(error) = ended {
            tracing::debug!(plugin, "its task had ended: {error}");
        }
        abort(&slot).await;
        // Most often it has none.
        let _ = self.shadows.stop(plugin);
        self.plugins.take(&slot);
        let generation = slot.current();
        let everywhere = generation.everywhere();
        for (wired, _) in &everywhere {
            wired.sources.close();
            slot.retire(&wired.controller);
        }
        for (wired, _) in &everywhere {
            slot.retired_have_ended(&wired.controller.label).await;
        }
        let mut recorders = vec![generation.share.recorder.clone()];
        let there = everywhere.into_iter().filter_map(|(_, branch)| branch);
        recorders.extend(there.map(|branch| branch.recorder.clone()));
        for recorder in recorders {
            recorder.flush(FLUSH).await;
        }
        let loader = &self.plugins.loader;
        if generation.terms.settings.is_some() {
            loader.settings.set(plugin, None);
        }
        let name = plugin.to_owned();
        history::with(&loader.history, move |history| history.removed(&name)).await;
        tracing::info!(plugin, "removed");
        Ok(())
    }

    fn slot(&self, plugin: &str) -> Result<Arc<Slot>, GivenError> {
        let mut slots = self.plugins.slots().into_iter();
        let found = slots.find(|slot| slot.name == plugin);
        found.ok_or_else(|| GivenError::NoPlugin(plugin.to_owned()))
    }
}

async fn abort(slot: &Slot) {
    if let Some(canary) = slot.canary.load_full()
        && slot.abort(&canary, Abort::Operator)
    {
        // If it takes longer, the task of the canary goes on with it.
        let _ = tokio::time::timeout(PUT_BACK, canary.until(Stage::Over)).await;
    }
}
