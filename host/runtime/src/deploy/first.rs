//! The first load of a host's plugins, at the start.
//!
//! It takes two steps, so that a broken plugin is reported before the cluster is needed. First,
//! plugins are loaded one by one, and each is checked against those before it. Then all of them, or
//! none, are set up in the cluster, and their sources are watched. This module must not know how a
//! turn runs.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use vmhost_engine::{Code, Plugin};

use crate::config::terms::Terms;
use crate::deploy::loaded::Loaded;
use crate::deploy::loader::Loader;
use crate::deploy::optimise::optimise_later;
use crate::deploy::plugins::Plugins;
use crate::deploy::slot::{Slot, kinds};
use crate::deploy::source::Source;
use crate::deploy::{idle, rollback, swap, unique};
use crate::rights::wait::Rights;
use crate::rights::{check, needs};

/// Plugins that are compatible with each other and do not run yet.
pub struct FirstLoad {
    loader: Arc<Loader>,
    plugins: Vec<First>,
}

struct First {
    source: Source,
    plugin: Plugin,
    /// The component, if optimised code is still to be compiled.
    bytes: Option<Vec<u8>>,
}

impl FirstLoad {
    /// An empty load.
    pub fn new(loader: Arc<Loader>) -> Self {
        Self {
            loader,
            plugins: Vec::new(),
        }
    }

    /// Loads a component file; or, if the file's version was rolled back, the version that ran
    /// before it.
    pub async fn file(&mut self, path: &Path) -> Result<()> {
        let loaded = self.loader.load_file(path).await?;
        let loaded = rollback::instead(&self.loader, path, loaded, &Terms::default()).await;
        self.add(Source::File(path.to_owned()), loaded)
    }

    /// Adds a plugin that was loaded from this source.
    pub fn add(&mut self, source: Source, loaded: Loaded) -> Result<()> {
        let (plugin, path) = (loaded.plugin, source.path().display());
        for other in &self.plugins {
            unique::check(plugin.description(), other.plugin.description())
                .with_context(|| format!("plugins {} and {path}", other.source.path().display()))?;
        }
        tracing::info!(plugin = plugin.description().name, "loaded {path}");
        self.loader.history.keep(&plugin, &loaded.bytes);
        if self.plugins.len() >= idle::WARM && self.loader.config.idle_unload.is_some() {
            plugin.rest(Instant::now());
        }
        self.plugins.push(First {
            bytes: (plugin.code() == Code::Baseline).then_some(loaded.bytes),
            source,
            plugin,
        });
        Ok(())
    }

    /// Returns whether a plugin answers webhooks or conversions.
    pub fn answers_reviews(&self) -> bool {
        let mut plugins = self.plugins.iter();
        plugins.any(|first| first.plugin.description().answers_reviews())
    }

    /// Starts the controllers of all plugins, or of none, and follows their sources. Missing rights
    /// are reported in the background and checked again later.
    pub async fn start(
        self,
        plugins: &Arc<Plugins>,
        rights: &Arc<Rights>,
        options: &needs::Options,
    ) -> Result<Vec<Arc<Slot>>> {
        self.warn_of_settings();
        self.warn_of_sensitive();
        idle::start(plugins);
        let (mut all, mut rest) = (Vec::new(), Vec::new());
        for First {
            source,
            plugin,
            bytes,
        } in self.plugins
        {
            let checked = tokio::spawn(check::at_start(
                plugins.reader.clone(),
                plugins.reviews.clone(),
                needs::at_home(plugin.description()),
                options.clone(),
            ));
            rest.push((source, bytes, checked));
            all.push(plugin);
        }
        let slots = plugins.add_all(all).await?;
        rollback::began(&plugins.loader, &slots).await;
        for (slot, (source, bytes, checked)) in slots.iter().zip(rest) {
            let (rights, of, options) = (rights.clone(), slot.clone(), options.clone());
            tokio::spawn(async move {
                if let Ok(missing) = checked.await {
                    check::follow(&rights, &of, &options, missing);
                }
            });
            if let Some(bytes) = bytes {
                optimise_later(plugins, slot, &slot.current(), bytes);
            }
            // Also if reloads are off, because an order can cause a swap too.
            plugins.follow(swap::follow(plugins.clone(), slot.clone(), source));
        }
        Ok(slots)
    }

    fn warn_of_settings(&self) {
        for name in self.loader.config.settings.keys() {
            let is_of = |first: &First| first.plugin.description().name == *name;
            if !self.plugins.iter().any(is_of) {
                tracing::warn!("--setting {name}.…: no plugin named {name} is loaded");
            }
        }
    }

    /// Warns of kinds that no plugin handles: a plural or a short name hides nothing. Which kinds
    /// a webhook is asked about is not known, since its rules have plurals.
    fn warn_of_sensitive(&self) {
        if self.plugins.is_empty() || self.answers_reviews() {
            return;
        }
        for sensitive in &self.loader.config.sensitive {
            let is_read = |first: &First| {
                let mut kinds = kinds(first.plugin.description());
                kinds.any(|kind| sensitive.is_of(&kind))
            };
            if !self.plugins.iter().any(is_read) {
                tracing::warn!(
                    "--sensitive {sensitive}: no plugin that is loaded now reads or writes this kind; name a kind as manifests do, for example VirtualMachine"
                );
            }
        }
    }
}
