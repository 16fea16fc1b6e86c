//! Who is started and stopped, in which order: stores before workers, workers before writes.
//!
//! Two runtimes: watches, probes and writes on one, guests on the other, so that guests that spin on every core cannot hold up a watch.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustc_hash::FxHashMap;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use vmhost_cluster::{
    Connection, InformerObserver, InformerState, Informers, IngestError, Phase, Recorder,
};
use vmhost_core::{ControllerDescription, Description, Grants, Gvk};
use vmhost_engine::{Engine, EngineConfig, Plugin, Script};

use crate::config::Config;
use crate::controller::Controller;
use crate::leader::Leadership;
use crate::live::Live;
use crate::mapper;
use crate::registry::{Generation, Slot, Starts, Wired};
use crate::resources::Resources;
use crate::settle::Settler;
use crate::setup;
use crate::sources::Sources;
use crate::telemetry::Metrics;
use crate::watch_files::Hub;
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
        let limit = self.config.limits.component;
        // The size is checked before the file is read: compiling it is checked again.
        let metadata = tokio::fs::metadata(path)
            .await
            .with_context(|| format!("plugin {}", path.display()))?;
        if metadata.len() > limit {
            bail!(
                "plugin {}: the file has {} bytes, more than the limit of {limit}",
                path.display(),
                metadata.len()
            );
        }
        let bytes = tokio::fs::read(path)
            .await
            .with_context(|| format!("plugin {}", path.display()))?;
        let loaded = self.load(&bytes).await;
        let (plugin, _) = loaded
            // What the host does not link, a toolchain often has an option against.
            .map_err(|error| match vmhost_toolchain::imports::advice(&bytes) {
                Some(advice) => error.context(advice),
                None => error,
            })
            .with_context(|| format!("plugin {}", path.display()))?;
        Ok((plugin, bytes))
    }

    /// Compiles off the runtimes' threads, then runs `describe` where guests run. With how long the compilation took.
    pub async fn load(&self, bytes: &[u8]) -> Result<(Plugin, Duration)> {
        self.load_with(bytes, None).await
    }

    /// The same of an interpreter's component, whose instances are given this script.
    pub async fn load_with(
        &self,
        bytes: &[u8],
        script: Option<Script>,
    ) -> Result<(Plugin, Duration)> {
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
        Ok((plugin.await??, compiled))
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
            recorder: Recorder::start(connection.clone(), metrics.clone(), loader.config.events),
            io: Handle::current(),
        };
        Arc::new(Self {
            loader,
            informers: Informers::new(connection.clone(), observer),
            connection,
            settler: Arc::new(settler),
            live: Live::new(resources, metrics.clone()),
            leadership,
            slots: Mutex::default(),
            workers: TaskTracker::new(),
            stopping: AtomicBool::new(false),
            metrics,
        })
    }

    /// Adds a plugin, whose name must be no other's: what it needs in the cluster is set up, its informers start now, its workers when the stores that they read
    /// are ready.
    pub async fn add(self: &Arc<Self>, plugin: Plugin) -> Result<Arc<Slot>> {
        let description = plugin.description().clone();
        self.set_up(&description).await?;
        let controllers = self.wire(&description, None);
        let generation = Generation {
            number: 1,
            grants: Grants::of(&description),
            plugin,
            controllers,
            starts: Starts::default(),
        };
        self.metrics
            .generation
            .with_label_values(&[description.name.as_str()])
            .set(1);
        let slot = Arc::new(Slot::new(generation));
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(slot.clone());
        self.sample_at_scrape(&slot);
        for wired in slot.current().controllers.values() {
            wired.sources.open();
            // Timers, and what a store that another plugin had filled before told while nobody listened.
            wired
                .controller
                .queue
                .add_low_all(wired.sources.first_names());
            self.start_workers(&slot, wired.clone());
        }
        Ok(slot)
    }

    /// What comes before a generation's stores: it must not take finalizers off that another plugin has put on, and its definitions have to be served.
    pub async fn set_up(&self, description: &Description) -> Result<()> {
        for slot in self
            .slots()
            .iter()
            .filter(|slot| slot.name != description.name)
        {
            let other = slot.current();
            if let Some(finalizer) = shared_finalizer(description, other.description()) {
                bail!(
                    "plugin {} puts {finalizer} on the same kind as plugin {}: the first of them to finish would take it from the other",
                    description.name,
                    slot.name
                );
            }
        }
        setup::run(
            &self.connection,
            description,
            self.loader.config.install_crds,
        )
        .await
    }

    /// The controllers of a description: those of the present generation that fit go on with their queues, and with their stores if they want the same.
    pub fn wire(
        &self,
        description: &Description,
        present: Option<&Generation>,
    ) -> FxHashMap<String, Wired> {
        let config = &self.loader.config;
        let wire = |wanted: &ControllerDescription| {
            let present = present.and_then(|generation| generation.controllers.get(&wanted.name));
            let before = present.filter(|wired| wired.controller.fits(wanted, config.workers));
            let controller = match before {
                Some(wired) => wired.controller.clone(),
                None => {
                    let before = present.map(|wired| &*wired.controller);
                    Controller::new(description, wanted, config.workers, &self.metrics, before)
                }
            };
            let sources = match before {
                Some(wired) if wired.sources.description() == wanted => wired.sources.clone(),
                _ => Arc::new(Sources::subscribe(
                    &self.informers,
                    self.live.clone(),
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

    /// No new keys; calls and writes in flight end; then the leader lease is given back, the last Events are written, and the
    /// informers end. False: it took longer than it may.
    pub async fn shut_down(&self) -> bool {
        self.stopping.store(true, Ordering::SeqCst);
        for slot in self.slots() {
            for wired in slot.current().controllers.values() {
                wired.controller.shut_down();
            }
        }
        self.leadership.ending();
        self.workers.close();
        let drained =
            tokio::time::timeout(self.loader.config.shutdown_timeout, self.workers.wait())
                .await
                .is_ok();
        self.leadership.end(drained).await;
        self.settler.recorder.flush(FLUSH).await;
        // Nobody holds their stores any more.
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        drained
    }

    fn sample_at_scrape(&self, slot: &Arc<Slot>) {
        let (slot, metrics) = (Arc::downgrade(slot), Arc::downgrade(&self.metrics));
        self.metrics.on_scrape(move || {
            let (Some(slot), Some(metrics)) = (slot.upgrade(), metrics.upgrade()) else {
                return;
            };
            let generation = slot.current();
            let stats = generation.plugin.instances();
            metrics
                .instances
                .with_label_values(&[slot.name.as_str(), "live"])
                .set(stats.live as i64);
            metrics
                .instances
                .with_label_values(&[slot.name.as_str(), "idle"])
                .set(stats.idle as i64);
            metrics
                .instances_created
                .with_label_values(&[slot.name.as_str()])
                .set(stats.created as i64);
            metrics
                .plugin_loaded
                .with_label_values(&[slot.name.as_str()])
                .set(stats.loaded.into());
            metrics
                .plugin_unloads
                .with_label_values(&[slot.name.as_str()])
                .set(stats.unloads as i64);
            for wired in generation.controllers.values() {
                let controller = &wired.controller;
                controller.metrics.queue(&controller.queue.stats());
                for subscription in wired.sources.subscriptions() {
                    let kind = subscription.spec().kind.to_string();
                    metrics
                        .store_objects
                        .with_label_values(&[kind.as_str()])
                        .set(subscription.store().len() as i64);
                    metrics
                        .store_bytes
                        .with_label_values(&[kind.as_str()])
                        .set(subscription.store().bytes() as i64);
                }
            }
        });
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

/// A finalizer that both put on objects of one kind.
fn shared_finalizer<'a>(one: &'a Description, other: &Description) -> Option<&'a str> {
    let same = |a: &&ControllerDescription| {
        a.finalizer.is_some()
            && other
                .controllers
                .iter()
                .any(|b| a.finalizer == b.finalizer && is_same_kind(&a.kind(), &b.kind()))
    };
    one.controllers.iter().find(same)?.finalizer.as_deref()
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
