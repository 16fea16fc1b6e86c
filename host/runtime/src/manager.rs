//! The wiring of a host, and the order of its shutdown: no new keys, then calls and writes, then
//! the lease, then Events.
//!
//! Workers start when a controller's stores are ready. Those of a standby wait until it leads, and
//! only then the log says that they start. A worker that panics is restarted.
//!
//! There are two runtimes: watches, probes and writes run on one, guests on the other. A guest that
//! spins on every core cannot delay a watch. This module must not know the command line.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use vmhost_cluster::{Connection, Informers};
use vmhost_engine::Plugin;
use vmhost_otlp::Tracer;

use crate::controller::Controller;
use crate::deploy::history;
use crate::deploy::history::report::Why;
use crate::deploy::loader::Loader;
use crate::deploy::plugins::Plugins;
use crate::deploy::slot::{Slot, StartWorkers, Wired};
use crate::journal::Journal;
use crate::journal::watch::Warnings;
use crate::lead::Leadership;
use crate::observe::informers::Observer;
use crate::observe::metrics::Metrics;
use crate::observe::trace::CurrentSpan;
use crate::observe::{sample, warn};
use crate::rights::wait::Rights;
use crate::shadow::order::Shadows;
use crate::site::sites::Sites;
use crate::turn::effects::Effects;
use crate::turn::effects::reach::Clusters;
use crate::turn::effects::writes::FencedWriter;
use crate::turn::map;
use crate::turn::worker::Worker;
use crate::wake::live::Live;
use crate::wake::resources::Resources;

/// How often a task waiting for store sync checks that its generation is current.
const STILL_WANTED: Duration = Duration::from_secs(5);

/// How long the last Events may take during a shutdown, and after them the last spans.
const FLUSH: Duration = Duration::from_secs(2);

/// Runs plugins against one cluster.
pub struct Manager {
    /// The plugins.
    pub plugins: Arc<Plugins>,
    /// Wakes the keys that wait for a right.
    pub rights: Arc<Rights>,
    /// Carries out the effects that plugins return.
    pub effects: Arc<Effects>,
    /// The warnings about keys.
    pub warnings: Arc<Warnings>,
    /// The shadows of the plugins.
    pub shadows: Arc<Shadows>,
    workers: Arc<Workers>,
}

impl Manager {
    /// A manager that runs nothing yet. Watches and writes will use the runtime that this is called
    /// on.
    pub fn new(loader: Arc<Loader>, connection: Connection, metrics: Arc<Metrics>) -> Arc<Self> {
        Self::led(loader, connection, metrics, Leadership::alone())
    }

    /// Like [`Manager::new`], for a host that works and writes only while it leads.
    pub fn led(
        loader: Arc<Loader>,
        connection: Connection,
        metrics: Arc<Metrics>,
        leadership: Arc<Leadership>,
    ) -> Arc<Self> {
        Self::traced(loader, connection, metrics, leadership, None)
    }

    /// Like [`Manager::led`], for a host that exports traces of its turns.
    pub fn traced(
        loader: Arc<Loader>,
        connection: Connection,
        metrics: Arc<Metrics>,
        leadership: Arc<Leadership>,
        tracer: Option<Tracer>,
    ) -> Arc<Self> {
        let mut connection = connection.with_observer(metrics.clone());
        if tracer.is_some() {
            connection = connection.with_traces(Arc::new(CurrentSpan));
        }
        let resources = Arc::new(Resources::new(connection.reader()));
        let rights = Rights::new(connection.access_reviews(), leadership.clone());
        let writer =
            || FencedWriter::new(resources.clone(), connection.writer(), leadership.clone());
        let sites = Arc::<Sites>::default();
        let reach = Arc::new(Clusters {
            home: writer(),
            sites: sites.clone(),
            leadership: leadership.clone(),
        });
        let effects = Effects::new(writer(), reach.clone());
        let workers = Arc::new(Workers {
            sites: sites.clone(),
            there: Mutex::default(),
            reach,
            effects: effects.clone(),
            rights: rights.clone(),
            leadership: leadership.clone(),
            journal: loader.journal.clone(),
            tracer,
            guests: loader.guests.clone(),
            tasks: TaskTracker::new(),
        });
        let observer = Arc::new(Observer::at_home(metrics.clone()));
        let silence = loader.config.watch_silence;
        let plugins = Plugins::new(
            loader,
            metrics.clone(),
            Informers::with_silence(connection.reader(), observer, silence),
            &connection,
            Live::new(resources, metrics.live_reads.clone()),
            leadership,
            Arc::new(workers.clone()),
        );
        let plugins = Arc::new(plugins.with_sites(sites));
        let warnings = Warnings::new(plugins.loader.config.sensitive.clone());
        sample::at_scrapes(&plugins, &warnings);
        let shadows = Shadows::new(&plugins, warnings.redact.clone());
        Arc::new(Self {
            plugins,
            rights,
            effects,
            warnings,
            shadows,
            workers,
        })
    }

    /// Looks for warnings about keys every few seconds from now on. Must be called on a runtime.
    /// Turns do not trigger the looks, so that the instructions of a turn can be counted without
    /// them.
    pub fn look_for_warnings(&self) {
        warn::start(&self.plugins, &self.warnings);
    }

    /// Adds one plugin with [`Plugins::add_all`].
    pub async fn add(&self, plugin: Plugin) -> Result<Arc<Slot>> {
        let mut slots = self.plugins.add_all(vec![plugin]).await?;
        slots.pop().context("a plugin that was added has a slot")
    }

    /// The exporter of this host's traces. `None` if none are exported.
    pub fn tracer(&self) -> Option<Tracer> {
        self.workers.tracer.clone()
    }

    /// Sends the last spans, as far as the collector takes them soon. Comes after all else, so that
    /// what was answered during the shutdown is among them.
    pub async fn flush_traces(&self) {
        if let Some(tracer) = &self.workers.tracer {
            tracer.flush(FLUSH).await;
        }
    }

    /// Lets no new turn begin. Running turns continue.
    pub fn close(&self) {
        self.workers.tasks.close();
        self.shadows.close();
        self.plugins.close();
    }

    /// Shuts the host down: takes no new keys, waits for calls and writes in flight, gives the
    /// leader lease back, writes the last Events and ends the informers. Returns whether everything
    /// ended in time.
    pub async fn shut_down(&self) -> bool {
        let leadership = &self.plugins.leadership;
        self.close();
        leadership.ending();
        self.plugins.unfollowed().await;
        let most = self.plugins.loader.config.shutdown_timeout;
        let ended = tokio::time::timeout(most, self.workers.tasks.wait()).await;
        let drained = ended.is_ok();
        leadership.end(drained).await;
        let recorders = self.plugins.slots().into_iter().flat_map(|slot| {
            let generation = slot.current();
            let home = generation.share.recorder.clone();
            let seats = generation.seats.load_full();
            let there = seats.values().map(|seat| seat.branch.recorder.clone());
            std::iter::once(home).chain(there).collect::<Vec<_>>()
        });
        let flushed = recorders.map(|recorder| async move { recorder.flush(FLUSH).await });
        join_all(flushed).await;
        self.end_histories().await;
        // The last references to the stores.
        self.plugins.clear();
        drained
    }

    /// Notes in the histories of all plugins that this host shuts down.
    async fn end_histories(&self) {
        let names: Vec<String> = self
            .plugins
            .slots()
            .iter()
            .map(|slot| slot.name.clone())
            .collect();
        let ended = history::with(&self.plugins.loader.history, move |history| {
            for name in names {
                history.ended(&name, Why::Shutdown);
            }
        });
        ended.await;
    }
}

/// The workers of all controllers.
struct Workers {
    effects: Arc<Effects>,
    rights: Arc<Rights>,
    leadership: Arc<Leadership>,
    journal: Arc<Journal>,
    /// Exports the traces of turns. `None` if none are exported.
    tracer: Option<Tracer>,
    /// The runtime that guests run on.
    guests: Handle,
    /// Closed when no more workers may start.
    tasks: TaskTracker,
    /// The clusters besides home.
    sites: Arc<Sites>,
    /// What workers share in each of them, by the member's number.
    there: Mutex<HashMap<u64, Tools>>,
    /// Writes to the clusters that effects name.
    reach: Arc<Clusters>,
}

/// What the workers in one cluster share.
#[derive(Clone)]
struct Tools {
    effects: Arc<Effects>,
    rights: Arc<Rights>,
}

impl StartWorkers for Arc<Workers> {
    fn start(&self, slot: &Arc<Slot>, wired: Wired) {
        let (workers, slot) = (self.clone(), slot.clone());
        tokio::spawn(async move {
            while tokio::time::timeout(STILL_WANTED, wired.sources.synced())
                .await
                .is_err()
            {
                if !slot.current().has(&wired) {
                    return;
                }
            }
            // Single flight: the turns of a replaced controller must end first.
            slot.retired_have_ended(&wired.controller.label).await;
            let starts = {
                // A swap holds this from its look at what has started to the new generation: it
                // gives no store that is not filled to workers that start in between.
                let _seating = slot.seating.lock();
                !workers.tasks.is_closed() && slot.current().has(&wired) && wired.controller.start()
            };
            if starts {
                workers.spawn(&slot, &wired.controller);
            }
        });
    }

    fn forget(&self, member: u64) {
        self.there.lock().remove(&member);
    }
}

impl Workers {
    /// What the workers of a controller share. `None` if its cluster was left.
    fn tools(&self, controller: &Controller) -> Option<Tools> {
        let Some(member) = &controller.member else {
            return Some(Tools {
                effects: self.effects.clone(),
                rights: self.rights.clone(),
            });
        };
        // Locked over both steps: either `forget` comes later, or the site is gone.
        let mut there = self.there.lock();
        let site = self.sites.of(member.number)?;
        let tools = there.entry(member.number).or_insert_with(|| {
            let (connection, leadership) = (&site.connection, &self.leadership);
            let (resources, writer) = (site.resources.clone(), connection.writer());
            let writer = FencedWriter::new(resources, writer, leadership.clone());
            let place = format!("cluster {}: ", member.name);
            let reviews = connection.access_reviews();
            Tools {
                effects: Effects::new(writer.within(member.clone()), self.reach.clone()),
                rights: Rights::there(reviews, leadership.clone(), place),
            }
        });
        Some(tools.clone())
    }

    fn spawn(&self, slot: &Arc<Slot>, controller: &Arc<Controller>) {
        let Some(Tools { effects, rights }) = self.tools(controller) else {
            return;
        };
        let worker = Worker {
            slot: slot.clone(),
            controller: controller.clone(),
            effects,
            rights,
            leadership: self.leadership.clone(),
            journal: self.journal.clone(),
            tracer: self.tracer.clone(),
        };
        for _ in 0..controller.workers {
            let worker = worker.clone();
            self.keep_up(controller, move || worker.clone().run());
        }
        let of = (slot.clone(), controller.clone(), self.leadership.clone());
        self.keep_up(controller, move || {
            let (slot, controller, leadership) = of.clone();
            map::run(slot, controller, leadership)
        });
    }

    /// Runs a task of a controller until it ends, or until the controller's cluster is left.
    fn keep_up<F>(&self, controller: &Controller, work: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let label = controller.label.clone();
        let Some(member) = controller.member.clone() else {
            self.tasks.spawn_on(supervise(label, work), &self.guests);
            return;
        };
        let work = move || {
            let (member, task) = (member.clone(), work());
            async move { member.run(task).await }
        };
        self.tasks.spawn_on(supervise(label, work), &self.guests);
    }
}

/// Restarts a task that panics. Its key is back in the queue by then.
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
            "a worker panicked, restarting it: {error}"
        );
    }
}
