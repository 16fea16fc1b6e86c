//! All plugins of a host, and the parts that each of them is wired to: stores, an event recorder,
//! live reads.
//!
//! A first load and a swap use the same wiring, which `wiring` has. This module must not know what
//! a turn does: workers are started through [`StartWorkers`].

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use vmhost_cluster::{AccessReviews, Connection, Definitions, Events, Informers, Reader};
use vmhost_core::Description;
use vmhost_engine::Plugin;
use vmhost_webhook::Keeper;

use crate::canary::Canary;
use crate::canary::end::Abort;
use crate::config::terms::Terms;
use crate::deploy::loader::Loader;
use crate::deploy::slot::{Generation, Slot, StartWorkers, Wired};
use crate::deploy::unique::{Shared, check};
use crate::journal::Journal;
use crate::journal::tag::Cause;
use crate::lead::Leadership;
use crate::observe::metrics::Metrics;
use crate::outgoing::Outgoing;
use crate::site::sites::Sites;
use crate::wake::live::Live;

mod wiring;

/// The slots of all plugins, and the services that they share.
pub struct Plugins {
    /// Loads plugins.
    pub loader: Arc<Loader>,
    /// The host's metrics.
    pub metrics: Arc<Metrics>,
    /// Reads from the API server which kinds are served.
    pub(crate) reader: Reader,
    /// Asks the API server which rights this host has.
    pub(crate) reviews: AccessReviews,
    /// The informers, which fill the stores.
    pub informers: Informers,
    /// Whether this host leads or is a standby.
    pub(crate) leadership: Arc<Leadership>,
    /// The records of turns.
    pub(crate) journal: Arc<Journal>,
    /// The clusters besides home.
    pub(crate) sites: Arc<Sites>,
    definitions: Definitions,
    events: Events,
    live: Arc<Live>,
    outgoing: Arc<Outgoing>,
    workers: Arc<dyn StartWorkers>,
    slots: Mutex<Vec<Arc<Slot>>>,
    /// Held while plugins are added.
    adding: tokio::sync::Mutex<()>,
    /// The tasks that follow the plugins' sources.
    followers: Mutex<JoinSet<()>>,
    stopping: AtomicBool,
    /// How many plugins are about to be added.
    unadded: AtomicUsize,
    checks: Mutex<Vec<(String, ReadyCheck)>>,
    /// Whether the plugins that come from elsewhere have come.
    arrived: OnceLock<ReadyCheck>,
    /// The certificate of webhooks, and what registers them. Empty if none are served.
    pub(crate) keeper: OnceLock<Arc<Keeper>>,
}

/// Returns why a part of the host that is not a plugin is not ready, if it is not.
type ReadyCheck = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

impl Plugins {
    /// A host without plugins.
    pub(crate) fn new(
        loader: Arc<Loader>,
        metrics: Arc<Metrics>,
        informers: Informers,
        connection: &Connection,
        live: Arc<Live>,
        leadership: Arc<Leadership>,
        workers: Arc<dyn StartWorkers>,
    ) -> Self {
        let config = &loader.config;
        let outgoing = Outgoing::new(
            (config.allow_http.clone(), config.http_authorities.clone()),
            loader.settings.clone(),
            connection,
            metrics.http_requests.clone(),
            leadership.clone(),
        );
        Self {
            journal: loader.journal.clone(),
            loader,
            metrics,
            reader: connection.reader(),
            reviews: connection.access_reviews(),
            informers,
            leadership,
            sites: Arc::default(),
            definitions: connection.definitions(),
            events: connection.events(),
            live,
            outgoing,
            workers,
            slots: Mutex::default(),
            adding: tokio::sync::Mutex::default(),
            followers: Mutex::default(),
            stopping: AtomicBool::new(false),
            unadded: AtomicUsize::new(0),
            checks: Mutex::default(),
            arrived: OnceLock::new(),
            keeper: OnceLock::new(),
        }
    }

    /// These plugins, with members that the workers know too.
    pub(crate) fn with_sites(mut self, sites: Arc<Sites>) -> Self {
        self.sites = sites;
        self
    }

    /// Makes `/readyz` ask this too, under this name.
    pub fn also_check(
        &self,
        name: &str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.checks.lock().push((name.to_owned(), Box::new(check)));
    }

    /// Makes `/readyz` and the state ask this keeper about webhooks. Only the first call counts.
    pub fn serve_webhooks(&self, keeper: Arc<Keeper>) {
        let held = keeper.clone();
        // A host has one address for webhooks.
        if self.keeper.set(keeper).is_ok() {
            self.also_check("webhooks", move || held.ready());
        }
    }

    /// Makes `/readyz` ask this instead of whether a plugin is loaded: the plugins come and go, and
    /// a host that has none works. Only the first call counts.
    pub fn come_from(&self, arrived: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        // A second source of plugins does not exist.
        let _ = self.arrived.set(Box::new(arrived));
    }

    /// Returns why the plugins are not there yet; `None` if they are.
    pub(crate) fn awaited(&self) -> Option<String> {
        match self.arrived.get() {
            Some(arrived) => arrived().err(),
            None => (self.slots.lock().is_empty()).then(|| "no plugin is loaded yet".to_owned()),
        }
    }

    /// The results of what `/readyz` asks besides the plugins.
    pub(crate) fn checked(&self) -> Vec<(String, Result<(), String>)> {
        let checks = self.checks.lock();
        let results = checks.iter().map(|(name, check)| (name.clone(), check()));
        results.collect()
    }

    /// Adds compatible plugins, all or none. Each is checked against the running ones, its
    /// CustomResourceDefinitions are installed, and it gets its stores, before any of their workers
    /// may start. Workers then start as soon as the stores that they read are ready, so that a kind
    /// that is not served delays no other plugin.
    ///
    /// After an error, or when the future is dropped, some plugins have stores and none has
    /// workers. The only valid next step is a shutdown.
    pub(crate) async fn add_all(&self, plugins: Vec<Plugin>) -> Result<Vec<Arc<Slot>>> {
        let plugins = plugins.into_iter().map(|plugin| (plugin, Arc::default()));
        self.add_under(plugins.collect()).await
    }

    /// Like [`Plugins::add_all`], with the terms of each plugin. One that is added alone leaves
    /// nothing behind after an error.
    pub(crate) async fn add_under(
        &self,
        plugins: Vec<(Plugin, Arc<Terms>)>,
    ) -> Result<Vec<Arc<Slot>>> {
        // Two that are added at once must not both find the name free.
        let _adding = self.adding.lock().await;
        for (plugin, _) in &plugins {
            self.check_unique(plugin.description(), None)?;
        }
        let is_alone = plugins.len() == 1;
        self.unadded.fetch_add(plugins.len(), Ordering::SeqCst);
        let mut slots = Vec::new();
        for (plugin, terms) in plugins {
            let description = plugin.description();
            if let Err(error) = self.set_up(description, &terms).await {
                if is_alone {
                    // The host goes on without it.
                    self.unadded.fetch_sub(1, Ordering::SeqCst);
                }
                let named = format!("plugin {}", description.name);
                return Err(anyhow::Error::new(error).context(named));
            }
            if terms.settings.is_some() {
                let settings = terms.settings.as_ref();
                self.loader.settings.set(&description.name, settings);
            }
            let share = self.share(&description.name);
            let controllers = self.wire(description, &terms, None, &share);
            let readers = self.readers(description, &terms, None, &share);
            let first = Generation::new(1, plugin, controllers, share).under(terms);
            slots.push(self.push(first.with_readers(readers)));
        }
        for slot in &slots {
            for wired in slot.current().controllers.values() {
                wired.sources.open();
                // The keys of timers, and the objects of a store that another plugin had already
                // filled, whose first events these controllers missed.
                let first = wired.sources.first_names();
                let queue = wired.controller.queue.tagged(Cause::Initial.into());
                queue.add_low_all(first);
                self.start_workers(slot, wired.clone());
            }
            self.settle_slot(slot);
        }
        Ok(slots)
    }

    fn push(&self, first: Generation) -> Arc<Slot> {
        let slot = Arc::new(Slot::new(first));
        self.metrics
            .generation
            .with_label_values(&[slot.name.as_str()])
            .set(1);
        self.metrics.plugin(&slot.name);
        self.slots.lock().push(slot.clone());
        self.unadded.fetch_sub(1, Ordering::SeqCst);
        slot
    }

    /// Returns an error if a plugin conflicts with a running one. `own` is the slot that it
    /// replaces, which is not compared.
    pub(crate) fn check_unique(
        &self,
        description: &Description,
        own: Option<&Slot>,
    ) -> Result<(), Shared> {
        self.slots()
            .iter()
            .filter(|slot| own.is_none_or(|own| own.name != slot.name))
            .try_for_each(|slot| check(description, slot.current().description()))
    }

    /// Starts a controller's workers as soon as its stores are ready.
    pub(crate) fn start_workers(&self, slot: &Arc<Slot>, wired: Wired) {
        self.workers.start(slot, wired);
    }

    /// Drops what workers shared in a member cluster that was left.
    pub(crate) fn forget_workers(&self, member: u64) {
        self.workers.forget(member);
    }

    /// Takes a plugin out of the list, so that no question, scrape or swap finds it any more.
    pub(crate) fn take(&self, slot: &Arc<Slot>) {
        self.slots.lock().retain(|other| !Arc::ptr_eq(other, slot));
        let generation = &self.metrics.generation;
        // It has a value since the plugin was added.
        let _ = generation.remove_label_values(&[slot.name.as_str()]);
    }

    /// The slots of all plugins.
    pub(crate) fn slots(&self) -> Vec<Arc<Slot>> {
        self.slots.lock().clone()
    }

    /// Returns whether plugins are still to be added, so that one that is unknown may yet come. It
    /// stays so if adding several failed.
    pub(crate) fn is_adding(&self) -> bool {
        self.unadded.load(Ordering::SeqCst) > 0
    }

    /// Returns whether a shutdown has begun.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Runs a task that follows a plugin's source, or a canary, until the host closes.
    pub(crate) fn follow(&self, follower: impl Future<Output = ()> + Send + 'static) {
        let mut followers = self.followers.lock();
        // Tasks of canaries end by themselves. The set would keep each result until it is taken.
        while followers.try_join_next().is_some() {}
        followers.spawn(follower);
    }

    /// Runs the task that follows the `Plugin` objects of the cluster, until the host closes.
    pub fn follow_objects(&self, follower: impl Future<Output = ()> + Send + 'static) {
        self.follow(follower);
    }

    /// Stops all tasks that follow sources, including running builds, and waits for their end.
    pub(crate) async fn unfollowed(&self) {
        let mut followers = std::mem::take(&mut *self.followers.lock());
        followers.shutdown().await;
    }

    /// Closes all queues and stops swaps.
    pub(crate) fn close(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.followers.lock().abort_all();
        for slot in self.slots() {
            if let Some(canary) = slot.canary.load_full() {
                if slot.abort(&canary, Abort::Shutdown) {
                    tracing::info!(
                        plugin = slot.name,
                        "canary {} aborted: {}",
                        slot.name,
                        Abort::Shutdown
                    );
                }
                // The task of the canary, which counts all other ends, was stopped above.
                self.count_end(&canary);
            }
            for (wired, _) in slot.current().everywhere() {
                wired.controller.shut_down();
            }
        }
    }

    /// Counts how a canary ended, once.
    pub(crate) fn count_end(&self, canary: &Canary) {
        if let Some(how) = canary.to_count() {
            let labels = [canary.about.plugin.as_str(), how.word()];
            self.metrics.canary.ends.with_label_values(&labels).inc();
        }
    }

    /// Drops all plugins and their stores.
    pub(crate) fn clear(&self) {
        self.slots.lock().clear();
    }
}
