//! Who is started and stopped, in which order: stores before workers, workers before writes.
//!
//! Two runtimes: watches, probes and writes on one, guests on the other, so that guests that spin on every core cannot hold up a watch.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use vmhost_cluster::{
    Connection, CrdError, InformerObserver, InformerState, Informers, IngestError, Phase, Recorder,
};
use vmhost_core::{ControllerDescription, Description, Gvk};
use vmhost_engine::{Engine, EngineConfig, LoadError, Plugin, Script};

use crate::config::Config;
use crate::controller::Controller;
use crate::leader::Leadership;
use crate::live::Live;
use crate::mapper::{self, MapBuffer};
use crate::registry::{Generation, Share, Slot, Wired};
use crate::resources::Resources;
use crate::rights::Rights;
use crate::settle::{Settler, Warnings};
use crate::setup;
use crate::sources::Sources;
use crate::telemetry::{Gauges, Metrics};
use crate::watch_files::{self, Hub};
use crate::worker;
use crate::writes::Writer;

/// How often somebody who waits for stores looks whether they are still wanted.
const STILL_WANTED: Duration = Duration::from_secs(5);

/// How long the last Events may take at a shutdown.
const FLUSH: Duration = Duration::from_secs(2);

/// Loads plugins. Needs no cluster.
pub struct Loader {
    /// The engine.
    pub engine: Engine,
    /// How plugins are run.
    pub config: Config,
    /// The runtime that guests run on.
    pub guests: Handle,
    /// Tells when a plugin's file changes.
    pub files: Arc<Hub>,
}

/// Runs plugins against one cluster.
pub struct Manager {
    /// Loads plugins.
    pub loader: Arc<Loader>,
    /// All metrics.
    pub metrics: Arc<Metrics>,
    informers: Informers,
    /// Carries out what policies want.
    pub settler: Arc<Settler>,
    live: Arc<Live>,
    /// The cluster.
    pub connection: Connection,
    leadership: Arc<Leadership>,
    slots: Mutex<Vec<Arc<Slot>>>,
    workers: TaskTracker,
    stopping: AtomicBool,
}

impl Loader {
    /// Sets the engine up.
    pub fn new(config: Config, guests: Handle) -> Result<Self> {
        let (engine, problem) = Engine::new(&EngineConfig {
            cache: config.cache.clone(),
            compiler: config.compiler.clone(),
        })?;
        if let Some(problem) = problem {
            tracing::warn!(
                "{:#}; compiled components are not kept",
                anyhow::Error::new(problem)
            );
        }
        Ok(Self {
            engine,
            config,
            guests,
            files: Hub::new(),
        })
    }

    /// Reads a file and makes a plugin of it.
    pub async fn load_file(&self, path: &Path) -> Result<(Plugin, Vec<u8>)> {
        let plugin = || format!("plugin {}", path.display());
        let bytes = watch_files::read(path, self.config.limits.component)
            .await
            .with_context(plugin)?;
        let loaded = self.load(&bytes).await.map_err(anyhow::Error::new);
        let (loaded, _) = loaded
            // What the host does not link, a toolchain often has an option against.
            .map_err(|error| match vmhost_toolchain::imports::advice(&bytes) {
                Some(advice) => error.context(advice),
                None => error,
            })
            .with_context(plugin)?;
        Ok((loaded, bytes))
    }

    /// Compiles off the runtimes' threads, then runs `describe` where guests run. With how long the compilation took.
    pub async fn load(&self, bytes: &[u8]) -> Result<(Plugin, Duration), LoadError> {
        self.load_with(bytes, None).await
    }

    /// The same of an interpreter's component, whose instances are given this script.
    pub async fn load_with(
        &self,
        bytes: &[u8],
        script: Option<Script>,
    ) -> Result<(Plugin, Duration), LoadError> {
        let limits = self.config.limits.clone();
        let started = std::time::Instant::now();
        let image = self
            .engine
            .compile(bytes.to_vec(), limits.component)
            .await?;
        let compiled = started.elapsed();
        let engine = self.engine.clone();
        let settings = self.config.settings.clone();
        let plugin = self.guests.spawn(async move {
            match script {
                None => Plugin::load(&engine, image, limits, &settings).await,
                Some(script) => {
                    Plugin::load_script(&engine, image, limits, &settings, script).await
                }
            }
        });
        let cut_off = |error| Err(LoadError::CutOff(format!("{error}")));
        Ok((plugin.await.unwrap_or_else(cut_off)?, compiled))
    }
}

impl Manager {
    /// Nothing runs yet. Watches and writes will run on the runtime that this is called on.
    pub fn new(loader: Arc<Loader>, connection: Connection, metrics: Arc<Metrics>) -> Arc<Self> {
        Self::led(loader, connection, metrics, Leadership::alone())
    }

    /// [`Manager::new`] of a host that works and writes only while it leads.
    pub fn led(
        loader: Arc<Loader>,
        connection: Connection,
        metrics: Arc<Metrics>,
        leadership: Arc<Leadership>,
    ) -> Arc<Self> {
        let connection = connection.with_observer(metrics.clone());
        let observer = Arc::new(Observer(metrics.clone()));
        let resources = Arc::new(Resources::new(connection.clone()));
        let settler = Settler {
            writer: Writer::new(resources.clone(), leadership.clone()),
            rights: Rights::new(connection.clone(), leadership.clone()),
            warnings: Warnings::default(),
            io: Handle::current(),
        };
        let silence = loader.config.watch_silence;
        let manager = Arc::new(Self {
            loader,
            informers: Informers::with_silence(connection.clone(), observer, silence),
            connection,
            settler: Arc::new(settler),
            live: Live::new(resources, metrics.clone()),
            leadership,
            slots: Mutex::default(),
            workers: TaskTracker::new(),
            stopping: AtomicBool::new(false),
            metrics,
        });
        let sampled = Arc::downgrade(&manager);
        manager.metrics.on_scrape(move |gauges| {
            if let Some(manager) = sampled.upgrade() {
                manager.sample(gauges);
            }
        });
        manager
    }

    /// [`Manager::add_all`] of one plugin.
    pub async fn add(self: &Arc<Self>, plugin: Plugin) -> Result<Arc<Slot>> {
        let mut slots = self.add_all(vec![plugin]).await?;
        slots.pop().context("a plugin that was added has a slot")
    }

    /// Adds plugins, whose names must be nobody else's, all or none: each is checked, what it needs
    /// in the cluster is set up, and it is given its stores, before the first worker of any of them
    /// may start. Workers then start as soon as the stores that they read are ready: a kind that is
    /// not served holds up no other plugin.
    ///
    /// After an error, or when the future is dropped, some have stores and none has workers: all
    /// that is left to do is [`Manager::shut_down`].
    pub async fn add_all(self: &Arc<Self>, plugins: Vec<Plugin>) -> Result<Vec<Arc<Slot>>> {
        for (at, plugin) in plugins.iter().enumerate() {
            let description = plugin.description();
            self.check_finalizers(description)?;
            for earlier in &plugins[..at] {
                check_finalizers(description, earlier.description())?;
            }
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
        let (connection, metrics) = (self.connection.clone(), self.metrics.clone());
        let config = &self.loader.config;
        Arc::new(Share {
            recorder: Recorder::new(connection, plugin, metrics, config.events),
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
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(slot.clone());
        slot
    }

    /// A plugin must not take finalizers off that another one has put on.
    pub fn check_finalizers(&self, description: &Description) -> Result<(), SharedFinalizer> {
        self.slots()
            .iter()
            .filter(|slot| slot.name != description.name)
            .try_for_each(|slot| check_finalizers(description, slot.current().description()))
    }

    /// What comes before a generation's stores: the definitions that it carries have to be served.
    pub async fn set_up(&self, description: &Description) -> Result<(), CrdError> {
        let allowed = self.loader.config.install_crds;
        setup::run(&self.connection, description, allowed).await
    }

    /// The controllers of a description: those of the present generation that fit go on with their queues, and with their stores if they want the same.
    pub fn wire(
        &self,
        description: &Description,
        present: Option<&Generation>,
        share: &Share,
    ) -> HashMap<String, Wired> {
        let config = &self.loader.config;
        let wire = |wanted: &ControllerDescription| {
            let present = present.and_then(|generation| generation.controllers.get(&wanted.name));
            let before = present.filter(|wired| wired.controller.fits(wanted, config.workers));
            let controller = match before {
                Some(wired) => wired.controller.clone(),
                None => {
                    let before = present.map(|wired| &*wired.controller);
                    let (workers, metrics) = (config.workers, &self.metrics);
                    let buffer = &share.map_buffer;
                    let new =
                        Controller::new(description, wanted, workers, metrics, buffer, before);
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
                    &controller,
                )),
            };
            (
                wanted.name.clone(),
                Wired {
                    controller,
                    sources,
                },
            )
        };
        description.controllers.iter().map(wire).collect()
    }

    /// Starts a controller's workers once its stores are ready, unless a swap has brought it others by then: those have been started for.
    pub fn start_workers(self: &Arc<Self>, slot: &Arc<Slot>, wired: Wired) {
        let (manager, slot) = (self.clone(), slot.clone());
        tokio::spawn(async move {
            while tokio::time::timeout(STILL_WANTED, wired.sources.synced())
                .await
                .is_err()
            {
                if !slot.current().has(&wired) {
                    return;
                }
            }
            // Single flight: what went before has to be done first.
            slot.retired_have_ended(&wired.controller.name).await;
            if manager.is_stopping() || !slot.current().has(&wired) || !wired.controller.start() {
                return;
            }
            manager.spawn_workers(&slot, &wired.controller);
        });
    }

    fn spawn_workers(&self, slot: &Arc<Slot>, controller: &Arc<Controller>) {
        tracing::info!(
            controller = &*controller.label,
            workers = controller.workers,
            "starting workers"
        );
        let guests = &self.loader.guests;
        for _ in 0..controller.workers {
            let (slot, controller) = (slot.clone(), controller.clone());
            let (settler, leadership) = (self.settler.clone(), self.leadership.clone());
            let label = controller.label.clone();
            let work = move || {
                worker::run(
                    slot.clone(),
                    controller.clone(),
                    settler.clone(),
                    leadership.clone(),
                )
            };
            self.workers.spawn_on(supervise(label, work), guests);
        }
        let (slot, controller) = (slot.clone(), controller.clone());
        let leadership = self.leadership.clone();
        let label = controller.label.clone();
        let map = move || mapper::run(slot.clone(), controller.clone(), leadership.clone());
        self.workers.spawn_on(supervise(label, map), guests);
    }

    /// Has a shutdown begun?
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// All plugins.
    pub fn slots(&self) -> Vec<Arc<Slot>> {
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether this host works and writes, or stands by.
    pub fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// What informs the stores.
    pub fn informers(&self) -> &Informers {
        &self.informers
    }

    /// Lets no turn begin any more. Those that are under way go on.
    pub fn close(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        for slot in self.slots() {
            for wired in slot.current().controllers.values() {
                wired.controller.shut_down();
            }
        }
    }

    /// Hands out no new keys, and lets calls and writes in flight end. Then it gives the leader
    /// lease back, writes the last Events and ends the informers. Returns whether all of it ended
    /// in time.
    pub async fn shut_down(&self) -> bool {
        self.close();
        self.leadership.ending();
        self.workers.close();
        let drained =
            tokio::time::timeout(self.loader.config.shutdown_timeout, self.workers.wait())
                .await
                .is_ok();
        self.leadership.end(drained).await;
        let recorders = self.slots().into_iter().map(|slot| {
            let recorder = slot.current().share.recorder.clone();
            async move { recorder.flush(FLUSH).await }
        });
        join_all(recorders).await;
        // Nobody holds their stores any more.
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        drained
    }

    /// Sets the gauges of all that runs now.
    fn sample(&self, gauges: &Gauges) {
        for slot in self.slots() {
            let generation = slot.current();
            gauges.plugin(&slot.name, &generation.plugin.instances());
            for wired in generation.controllers.values() {
                let controller = &wired.controller;
                gauges.controller(
                    &controller.label,
                    controller.workers,
                    &controller.queue.stats(),
                );
            }
        }
        for state in self.informers.states() {
            gauges.store(&state.spec, state.objects, state.bytes);
            if let Some(silence) = state.silence {
                gauges.watch(&state.spec, silence);
            }
        }
    }
}

/// A worker that should panic is started again. Its key was put back.
async fn supervise<F>(label: Arc<str>, work: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    while let Err(error) = tokio::spawn(work()).await {
        if error.is_cancelled() {
            return;
        }
        tracing::error!(
            controller = &*label,
            "a worker ended unexpectedly and is started again: {error}"
        );
    }
}

/// Two plugins put one finalizer on objects of one kind.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "plugin {plugin} puts {finalizer} on the same kind as plugin {other}: the first of them to finish would take it from the other"
)]
pub struct SharedFinalizer {
    /// The plugin that would do so.
    pub plugin: String,
    /// The plugin that does.
    pub other: String,
    /// The finalizer.
    pub finalizer: String,
}

fn check_finalizers(one: &Description, other: &Description) -> Result<(), SharedFinalizer> {
    let same = |a: &ControllerDescription, b: &ControllerDescription| {
        a.finalizer == b.finalizer && is_same_kind(&a.kind(), &b.kind())
    };
    let shared = one
        .controllers
        .iter()
        .filter(|a| other.controllers.iter().any(|b| same(a, b)))
        .find_map(|a| a.finalizer.clone());
    match shared {
        None => Ok(()),
        Some(finalizer) => Err(SharedFinalizer {
            plugin: one.name.clone(),
            other: other.name.clone(),
            finalizer,
        }),
    }
}

/// Another version of a kind shows the same objects.
fn is_same_kind(a: &Gvk, b: &Gvk) -> bool {
    a.group == b.group && a.kind == b.kind
}

/// Says once what an informer waits for, and counts.
struct Observer(Arc<Metrics>);

impl InformerObserver for Observer {
    fn state(&self, _kind: &Gvk, state: &InformerState) {
        match state.phase {
            Phase::Starting | Phase::Listing => tracing::debug!("{state}"),
            Phase::Watching => tracing::info!("{state}"),
            Phase::WaitingForKind | Phase::Forbidden { .. } | Phase::Failing { .. } => {
                tracing::warn!("{state}")
            }
        }
    }

    fn relist(&self, kind: &Gvk, reason: &str) {
        self.0
            .relists
            .with_label_values(&[kind.to_string().as_str()])
            .inc();
        tracing::info!("listing {kind} again: {reason}");
    }

    fn keeps_expiring(&self, kind: &Gvk, reason: &str) {
        tracing::warn!(
            "listing {kind} takes longer than the API server remembers versions: no watch could go on from the last three lists; trying again, less and less often: {reason}"
        );
    }

    fn rewound(&self, kind: &Gvk, from: u64, to: u64) {
        tracing::warn!(
            "the API server's versions of {kind} went back from {from} to {to}, as after etcd was restored from a backup: its list is believed, and every key gets its turn"
        );
    }

    fn skipped(&self, kind: &Gvk, error: &IngestError) {
        self.0
            .skipped_objects
            .with_label_values(&[kind.to_string().as_str()])
            .inc();
        tracing::warn!("an object of kind {kind} is skipped: {error}");
    }

    fn failed(&self, kind: &Gvk, error: &str) {
        tracing::debug!("watching {kind}: {error}");
    }
}
