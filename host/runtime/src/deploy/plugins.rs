//! All plugins of a host, and what a new one is given: stores, a recorder, live reads.
//!
//! A first load and a swap are wired here alike. It must not know what a turn does: workers are
//! started by whatever [`StartWorkers`] it was given.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use vmhost_cluster::{
    AccessReviews, Connection, CrdError, Definitions, Events, Informers, Reader, Recorder,
};
use vmhost_core::{ControllerDescription, Description};
use vmhost_engine::Plugin;

use crate::controller::Controller;
use crate::controller::changes::buffer::MapBuffer;
use crate::deploy::loader::Loader;
use crate::deploy::setup;
use crate::deploy::slot::{Generation, Share, Slot, StartWorkers, Wired};
use crate::deploy::unique::{Shared, check};
use crate::lead::Leadership;
use crate::observe::metrics::Metrics;
use crate::wake::live::Live;
use crate::wake::sources::Sources;

/// The plugins, by slot, and what they share.
pub struct Plugins {
    /// Loads them.
    pub loader: Arc<Loader>,
    /// All metrics.
    pub metrics: Arc<Metrics>,
    /// Says which kinds are served.
    pub(crate) reader: Reader,
    /// Says what this host may do.
    pub(crate) reviews: AccessReviews,
    /// Fills their stores.
    pub informers: Informers,
    /// Whether this host works and writes, or stands by.
    pub(crate) leadership: Arc<Leadership>,
    definitions: Definitions,
    events: Events,
    live: Arc<Live>,
    workers: Arc<dyn StartWorkers>,
    slots: Mutex<Vec<Arc<Slot>>>,
    /// They swap when a plugin's source changes.
    followers: Mutex<JoinSet<()>>,
    stopping: AtomicBool,
}

impl Plugins {
    /// There is none yet.
    pub(crate) fn new(
        loader: Arc<Loader>,
        metrics: Arc<Metrics>,
        informers: Informers,
        connection: &Connection,
        live: Arc<Live>,
        leadership: Arc<Leadership>,
        workers: Arc<dyn StartWorkers>,
    ) -> Self {
        Self {
            loader,
            metrics,
            reader: connection.reader(),
            reviews: connection.access_reviews(),
            informers,
            leadership,
            definitions: connection.definitions(),
            events: connection.events(),
            live,
            workers,
            slots: Mutex::default(),
            followers: Mutex::default(),
            stopping: AtomicBool::new(false),
        }
    }

    /// Adds plugins that may run beside each other, all or none: each is checked against those that
    /// run, what it needs in the cluster is set up, and it is given its stores, before the first
    /// worker of any of them may start. Workers then start as soon as the stores that they read are
    /// ready: a kind that is not served holds up no other plugin.
    ///
    /// After an error, or when the future is dropped, some have stores and none has workers: all
    /// that is left to do is a shutdown.
    pub(crate) async fn add_all(&self, plugins: Vec<Plugin>) -> Result<Vec<Arc<Slot>>> {
        for plugin in &plugins {
            self.check_unique(plugin.description(), None)?;
        }
        let mut slots = Vec::new();
        for plugin in plugins {
            let description = plugin.description();
            self.set_up(description)
                .await
                .with_context(|| format!("plugin {}", description.name))?;
            let share = self.share(&description.name);
            let controllers = self.wire(description, None, &share);
            slots.push(self.push(Generation::new(1, plugin, controllers, share)));
        }
        for slot in &slots {
            for wired in slot.current().controllers.values() {
                wired.sources.open();
                // Timers, and what a store that another plugin had filled before told while nobody
                // listened.
                let first = wired.sources.first_names();
                wired.controller.queue.add_low_all(first);
                self.start_workers(slot, wired.clone());
            }
        }
        Ok(slots)
    }

    fn share(&self, plugin: &str) -> Arc<Share> {
        let (events, metrics) = (self.events.clone(), self.metrics.clone());
        let config = &self.loader.config;
        Arc::new(Share {
            recorder: Recorder::new(events, plugin, metrics, config.events),
            live: self.live.reads(),
            map_buffer: MapBuffer::new(config.map_buffer),
        })
    }

    fn push(&self, first: Generation) -> Arc<Slot> {
        let slot = Arc::new(Slot::new(first));
        self.metrics
            .generation
            .with_label_values(&[slot.name.as_str()])
            .set(1);
        self.slots.lock().push(slot.clone());
        slot
    }

    /// May a plugin run beside the others? Those are all, but for the slot that it is to take over.
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

    /// What comes before a generation's stores: the definitions that it carries have to be served.
    pub(crate) async fn set_up(&self, description: &Description) -> Result<(), CrdError> {
        let allowed = self.loader.config.install_crds;
        setup::run(&self.definitions, description, allowed).await
    }

    /// The controllers of a description: those of the present generation that fit go on with their
    /// queues, and with their stores if they want the same.
    pub(crate) fn wire(
        &self,
        description: &Description,
        present: Option<&Generation>,
        share: &Share,
    ) -> HashMap<String, Wired> {
        let wire = |wanted: &ControllerDescription| {
            let present = present.and_then(|generation| generation.controllers.get(&wanted.name));
            let wired = self.wire_one(description, wanted, present, share);
            (wanted.name.clone(), wired)
        };
        description.controllers.iter().map(wire).collect()
    }

    fn wire_one(
        &self,
        description: &Description,
        wanted: &ControllerDescription,
        present: Option<&Wired>,
        share: &Share,
    ) -> Wired {
        let config = &self.loader.config;
        let before = present.filter(|wired| wired.controller.fits(wanted, config.workers));
        let controller = match before {
            Some(wired) => wired.controller.clone(),
            None => {
                let before = present.map(|wired| &*wired.controller);
                let metrics = self.metrics.controller(&description.name, &wanted.name);
                let workers = config.workers;
                let buffer = &share.map_buffer;
                let new = Controller::new(description, wanted, workers, metrics, buffer, before);
                if !self.leadership.is_leading() {
                    new.mapper.stand_by();
                }
                new
            }
        };
        let sources = match before {
            Some(wired) if wired.sources.description() == wanted => wired.sources.clone(),
            _ => Arc::new(Sources::subscribe(
                &self.informers,
                share.live.clone(),
                wanted,
                &config.namespaces,
                controller.clone(),
            )),
        };
        Wired {
            controller,
            sources,
        }
    }

    /// Starts a controller's workers once its stores are ready.
    pub(crate) fn start_workers(&self, slot: &Arc<Slot>, wired: Wired) {
        self.workers.start(slot, wired);
    }

    /// All plugins.
    pub(crate) fn slots(&self) -> Vec<Arc<Slot>> {
        self.slots.lock().clone()
    }

    /// Returns whether a shutdown has begun.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Runs a task that follows a plugin's source, until the host is closed.
    pub(crate) fn follow(&self, follower: impl Future<Output = ()> + Send + 'static) {
        self.followers.lock().spawn(follower);
    }

    /// Resolves when nothing follows a source any more: a build that was under way is stopped.
    pub(crate) async fn unfollowed(&self) {
        let mut followers = std::mem::take(&mut *self.followers.lock());
        followers.shutdown().await;
    }

    /// Hands out no new keys, and swaps no more.
    pub(crate) fn close(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.followers.lock().abort_all();
        for slot in self.slots() {
            for wired in slot.current().controllers.values() {
                wired.controller.shut_down();
            }
        }
    }

    /// Drops all plugins, and with them their stores.
    pub(crate) fn clear(&self) {
        self.slots.lock().clear();
    }
}
