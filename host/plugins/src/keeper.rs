//! Keeps one `Plugin`: looks at it whenever something changes, and brings what runs to what is
//! wanted. Each step that fails is a condition, and what runs goes on. It must not know how a step
//! is done, nor other `Plugin` objects.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use vmhost_runtime::config::terms::Terms;
use vmhost_runtime::given::RunningPlugin;

use crate::arrival::FirstLook;
use crate::compilation::{COMPILING, Compilation};
use crate::conditions::{Found, Stop};
use crate::lane::Lane;
use crate::names;
use crate::object::{Plugin, Strategy};
use crate::pace::Pace;
use crate::refused::Refused;
use crate::report::Reporter;
use crate::revision::{self, Kept};
use crate::shared::Shared;
use crate::watched::Watched;

/// The pause between two looks at a plugin that is as it is wanted. Rights that were taken away are
/// noticed that much later at most.
pub(crate) const CALM: Duration = Duration::from_secs(30);

/// The pause while something is under way, and between two looks at a file, which is not watched.
const BUSY: Duration = Duration::from_secs(1);

/// The first pause after a step that failed. Each further one is twice as long, up to [`CALM`].
const FAILED: Duration = Duration::from_secs(2);

/// Keeps one `Plugin`.
pub(crate) struct Keeper {
    pub(crate) shared: Arc<Shared>,
    /// `NAMESPACE/NAME`.
    pub(crate) key: String,
    /// The name of the plugin that runs for it.
    pub(crate) plugin: Option<String>,
    pub(crate) watched: Watched,
    /// The source of what is wanted, and its code.
    pub(crate) lane: Lane,
    pub(crate) compilation: Compilation,
    /// The revision that was wanted when the last look could tell.
    pub(crate) wants: Option<String>,
    /// The revision that a canary of this host tries.
    pub(crate) candidate: Option<String>,
    pub(crate) refused: Option<Refused>,
    pub(crate) kept: Kept,
    /// The component and the terms that access reviews allowed, and when.
    pub(crate) reviewed: Option<(String, Terms, Instant)>,
    /// When it was asked last whether what runs is still granted.
    pub(crate) overseen: Option<Instant>,
    pub(crate) ready_since: Option<Instant>,
    /// Whether the plugin was taken off this host because its object is being deleted.
    pub(crate) has_left: bool,
    /// Whether to look again soon: the object has just been changed from elsewhere, or something
    /// was taken off.
    pub(crate) looks_soon: bool,
    /// Whether this host led when it looked last.
    led: bool,
    reporter: Reporter,
    /// The pause after a look that fails.
    pause: Duration,
    /// The generation of the object that was looked at last.
    generation: i64,
}

/// What of a running plugin concerns its keeper.
#[derive(PartialEq, Eq)]
struct Glance {
    generation: u64,
    works: bool,
    /// The state and the share of the last canary.
    canary: Option<(String, String)>,
}

/// Keeps a plugin until the sender is dropped, which is when its object is gone. `bell` rings when
/// something that concerns it changes. `is_again`: the task before this one panicked.
pub(crate) async fn keep(
    shared: Arc<Shared>,
    mut object: watch::Receiver<Arc<Plugin>>,
    bell: Arc<Notify>,
    mut first: Option<FirstLook>,
    is_again: bool,
) {
    let (key, namespace) = {
        let plugin = object.borrow();
        (plugin.key(), plugin.metadata.namespace.clone())
    };
    let mut keeper = Keeper {
        shared,
        key,
        plugin: None,
        watched: Watched::new(&namespace, bell.clone()),
        lane: Lane::default(),
        compilation: Compilation::default(),
        wants: None,
        candidate: None,
        refused: None,
        kept: Kept::default(),
        reviewed: None,
        overseen: None,
        ready_since: None,
        has_left: false,
        looks_soon: false,
        led: false,
        reporter: Reporter::default(),
        pause: FAILED,
        generation: 0,
    };
    if is_again {
        let plugin = object.borrow().clone();
        keeper.takes_over(&plugin).await;
    }
    let mut pace = Pace::new(Instant::now());
    // An error means that the sender is gone.
    while object.has_changed().is_ok() {
        sleep(pace.wait(Instant::now())).await;
        let plugin = object.borrow_and_update().clone();
        let pause = keeper.look(&plugin).await;
        // The host is not ready before it can run what it finds.
        if !keeper.compilation.goes_on() {
            drop(first.take());
        }
        tokio::select! {
            changed = object.changed() => if changed.is_err() {
                break;
            },
            () = bell.notified() => {}
            () = sleep(pause) => {}
            () = keeper.changes() => {}
            () = keeper.compilation.ends() => {}
        }
    }
    keeper.end().await;
}

impl Keeper {
    /// Looks at the plugin once, and reports. Returns the pause until the next look.
    async fn look(&mut self, plugin: &Plugin) -> Duration {
        let mut found = Found::default();
        let is_changed = self.generation != plugin.metadata.generation;
        if is_changed {
            self.generation = plugin.metadata.generation;
            self.pause = FAILED;
        }
        self.adopt(plugin);
        self.watched.begin();
        let done = self.step(plugin, &mut found).await;
        // A look that failed has not come to all that it would have used, so that it gives up
        // nothing. But a Plugin that is changed and fails again and again must not gather watches.
        if done.is_ok() || is_changed {
            self.watched.end();
        }
        let mut pause = match (&done, &plugin.spec.path) {
            (Err(_), _) => self.pause,
            (Ok(()), Some(_)) => BUSY,
            (Ok(()), None) => CALM,
        };
        self.pause = match done {
            Ok(()) => FAILED,
            Err(stop) => {
                if stop.kind == "Granted" {
                    // What runs may have lost the same right, so that it is asked about at once.
                    (self.reviewed, self.overseen) = (None, None);
                }
                found.not(stop.kind, stop.reason, stop.message);
                (self.pause * 2).min(CALM)
            }
        };
        self.revoke(plugin, &mut found).await;
        let is_underway = self.available(plugin, &mut found);
        if is_underway || std::mem::take(&mut self.looks_soon) {
            pause = pause.min(BUSY);
        }
        self.tell(plugin, &found).await;
        pause
    }

    /// Reports what a look found.
    pub(crate) async fn tell(&mut self, plugin: &Plugin, found: &Found) {
        let (status, host) = (self.status(plugin), self.host(plugin, found));
        let shared = self.shared.clone();
        let reporter = &mut self.reporter;
        reporter.host(&shared, plugin, host).await;
        reporter.report(&shared, plugin, found, status).await;
    }

    /// Waits until something else runs, or runs otherwise: by an operator's order, or by itself.
    async fn changes(&self) {
        let before = self.glance();
        loop {
            sleep(BUSY).await;
            if self.glance() != before {
                return;
            }
        }
    }

    fn glance(&self) -> Option<Glance> {
        let running = self.running()?;
        Some(Glance {
            generation: running.generation,
            works: !running.is_paused && running.waiting.is_empty(),
            canary: running.canary.map(|canary| (canary.state, canary.weight)),
        })
    }

    /// Takes over which revision the leader reported as refused. A host that goes on leading knows
    /// that itself.
    fn adopt(&mut self, plugin: &Plugin) {
        let leads = self.shared.given.leads();
        if !(leads && self.led) {
            let mut reported = Refused::reported(&plugin.status);
            if let (Some(reported), Some(known)) = (&mut reported, &self.refused) {
                reported.was_obeyed = known.was_obeyed && known.revision == reported.revision;
            }
            self.refused = reported;
        }
        self.led = leads;
    }

    /// Brings what runs to what the object says: that it is wanted, suspended, or being deleted.
    async fn step(&mut self, plugin: &Plugin, found: &mut Found) -> Result<(), Stop> {
        if plugin.is_deleting() {
            if self.has_to_return(plugin)
                && let Err(stop) = self.run(plugin, found).await
            {
                found.not(stop.kind, stop.reason, stop.message.clone());
                let text = format!(
                    "the plugin has to run until no object carries its finalizers ({}), and \
                     cannot: {}; mend that, or give the Plugin the annotation {}: \"true\"",
                    plugin.status.finalizers.join(", "),
                    stop.message,
                    names::abandon()
                );
                return Err(Stop::at("Progressing", "CannotCleanUp", text));
            }
            return self.leave(plugin, found).await;
        }
        if plugin.spec.suspend {
            self.end().await;
            let text = "spec.suspend is true: set it to false to run the plugin".to_owned();
            found.not("Progressing", "Suspended", text);
            return Ok(());
        }
        self.run(plugin, found).await
    }

    /// Brings what runs to what is wanted.
    async fn run(&mut self, plugin: &Plugin, found: &mut Found) -> Result<(), Stop> {
        self.hold(plugin).await?;
        let mut lane = std::mem::take(&mut self.lane);
        let wanted = self.wanted(plugin, &mut lane, found).await;
        self.lane = lane;
        let done = match wanted {
            Ok(wanted) => {
                self.wants = Some(wanted.revision.name.clone());
                self.settle(plugin, wanted, found).await
            }
            // Nothing else is compiled in its place.
            Err(stop) if stop.reason == COMPILING => Err(stop),
            Err(stop) => {
                self.wants = None;
                self.returns(plugin).await;
                Err(stop)
            }
        };
        if self.plugin.is_none() {
            // What does not run keeps its name from nobody.
            self.shared.free(&self.key);
        }
        done
    }

    /// What runs on this host.
    pub(crate) fn running(&self) -> Option<RunningPlugin> {
        self.shared.given.running(self.plugin.as_deref()?)
    }

    /// The revision that runs on this host.
    pub(crate) fn runs(&self, plugin: &Plugin) -> Option<String> {
        let running = self.running()?;
        Some(revision::name(plugin, &running.digest, &running.terms))
    }

    /// Returns whether a version is tried before it runs everywhere.
    pub(crate) fn is_canary(plugin: &Plugin) -> bool {
        plugin.spec.rollout.strategy == Strategy::Canary
    }
}
