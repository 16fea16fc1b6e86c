//! The thread of a shadow: it loads the candidate, tries the turns in the queue, and notes the
//! results. It has the lowest priority and does nothing else, so that a candidate that spins only
//! uses time that no other thread needs.
//!
//! This module must not know why a shadow starts or ends.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tracing::Dispatch;
use tracing::dispatcher::{DefaultGuard, set_default};
use vmhost_engine::{Image, Plugin, Settings};

use crate::deploy::loader::Loader;
use crate::journal::redact::{PluginSecrets, Redact};
use crate::journal::tell;
use crate::observe::metrics::Metrics;
use crate::runtimes;
use crate::shadow::difference::Difference;
use crate::shadow::job::{Called, Job};
use crate::shadow::pair::{Incomparable, Pair, Tried, Verdict};
use crate::shadow::report::ShadowTurn;
use crate::shadow::rest::Rests;
use crate::shadow::running::{Candidate, Shadow};
use crate::shadow::{load, what_if};

/// How long the thread sleeps when the queue is empty. Workers do not wake it, since that would
/// cost them a system call.
const PAUSE: Duration = Duration::from_millis(20);

/// After this much work the thread sleeps for as long as it has worked. If the process has a limit
/// on processor time, as in a container, the priority alone would not keep a spinning candidate
/// from using up the time of the other threads.
const STRETCH: Duration = Duration::from_millis(50);

/// What the thread needs.
pub(crate) struct Work {
    pub(crate) shadow: Arc<Shadow>,
    /// The candidate's code.
    pub(crate) image: Arc<Image>,
    pub(crate) loader: Arc<Loader>,
    pub(crate) redact: Arc<Redact>,
    pub(crate) metrics: Arc<Metrics>,
}

/// The state of the thread while it tries turns.
struct Trial {
    work: Work,
    candidate: Candidate,
    pair: Pair,
    /// Number of dropped turns that the metric has counted.
    dropped: u64,
}

/// Ends a shadow whose thread has panicked.
struct Ending(Arc<Shadow>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0
            .end("its thread broke off; the output of vmhost tells why");
    }
}

/// Starts the thread. It ends together with the shadow.
pub(crate) fn start(work: Work) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("vmhost-shadow".into());
    thread.spawn(move || live(work)).map(drop)
}

fn live(work: Work) {
    runtimes::step_aside();
    let shadow = work.shadow.clone();
    let _ending = Ending(shadow.clone());
    let runtime = match Builder::new_current_thread().enable_time().build() {
        Ok(runtime) => runtime,
        Err(error) => return shadow.end(&format!("its thread has no runtime: {error}")),
    };
    let loaded = {
        let _silence = silence();
        runtime.block_on(load(&work))
    };
    match loaded {
        None => {}
        Some(Err(why)) => shadow.end(&format!("the candidate was refused: {why}")),
        Some(Ok(plugin)) => {
            let candidate = Candidate {
                digest: format!("sha256:{}", plugin.digest()),
                version: plugin.description().version.clone(),
            };
            if shadow.run(candidate.clone()) {
                let (plugin_name, digest) = (&shadow.plugin, &candidate.digest);
                tracing::info!(plugin = plugin_name, "the shadow runs: {digest}");
                let mut trial = Trial::new(work, candidate, plugin);
                let _silence = silence();
                runtime.block_on(trial.run());
            }
        }
    }
    // The thread must not wait until a file is mapped.
    runtime.shutdown_background();
}

/// Turns off the log of this thread while the guard lives. A guest's log lines in a shadow would
/// look like those of the live version.
fn silence() -> DefaultGuard {
    set_default(&Dispatch::none())
}

/// Loads the candidate. Returns `None` if the shadow has ended.
async fn load(work: &Work) -> Option<Result<Plugin, String>> {
    let live = work.shadow.slot()?.current();
    tokio::select! {
        biased;
        () = work.shadow.stopped() => None,
        loaded = load::candidate(&work.loader, work.image.clone(), &live) => Some(loaded),
    }
}

impl Trial {
    fn new(work: Work, candidate: Candidate, plugin: Plugin) -> Self {
        let settings: Settings = work.loader.settings.of(&work.shadow.plugin);
        Self {
            work,
            candidate,
            pair: Pair::new(plugin, settings),
            dropped: 0,
        }
    }

    /// Tries turns until the shadow ends.
    async fn run(&mut self) {
        let shadow = self.work.shadow.clone();
        let trying = async {
            let mut busy = Duration::ZERO;
            let mut rests = Rests::default();
            while self.is_wanted() {
                self.count_dropped();
                let began = Instant::now();
                match shadow.jobs.pop() {
                    None => tokio::time::sleep(PAUSE).await,
                    Some(job) => {
                        let failed = self.turn(&job).await;
                        drop(job);
                        busy += began.elapsed();
                        if let Some(rest) = rests.after(failed) {
                            tokio::time::sleep(rest).await;
                        }
                    }
                }
                if busy > STRETCH {
                    tokio::time::sleep(busy).await;
                    busy = Duration::ZERO;
                }
            }
        };
        tokio::select! {
            biased;
            () = shadow.stopped() => {}
            () = trying => {}
        }
        self.count_dropped();
    }

    /// Returns whether to go on. Ends the shadow if the plugin is gone, or if the candidate has
    /// become the live version.
    fn is_wanted(&self) -> bool {
        let shadow = &self.work.shadow;
        let Some(slot) = shadow.slot() else {
            shadow.end("the plugin is gone");
            return false;
        };
        let is_live = slot.current().plugin.digest() == self.pair.candidate.digest();
        if is_live {
            shadow.end("the candidate is the live version now");
        }
        !is_live
    }

    /// Tries one turn. Returns whether the candidate's call failed.
    async fn turn(&mut self, job: &Job) -> bool {
        let (shadow, digest) = (&self.work.shadow, job.live.plugin().digest());
        let slot = shadow.slot();
        if slot.is_none_or(|slot| slot.current().plugin.digest() != digest) {
            // The plugin was swapped since, or a canary ran the turn.
            let (reason, about) = ("other", "it ran on another version than the live one");
            self.count("incomparable", reason, 1);
            let mut results = shadow.results.lock();
            results.incomparable(reason, about, &job.key);
            return false;
        }
        if self.pair.follow(job) {
            let digest = format!("sha256:{digest}");
            shadow.results.lock().live(&digest);
        }
        let tried = self.pair.attempt(job).await;
        let failed = matches!(tried.called, Some(Err(_)));
        self.note(job, tried);
        failed
    }

    fn note(&self, job: &Job, tried: Tried) {
        let label = job.live.label();
        let (called, drew) = (tried.called.as_ref(), tried.drew);
        let (result, reason, failed, differences) = match &tried.verdict {
            Verdict::Same(_) => ("same", "", None, None),
            Verdict::Incomparable(why) => ("incomparable", why.reason, None, None),
            Verdict::Differs(found) => ("differs", "", None, Some(found)),
            Verdict::Failed(error, found) => {
                ("failed", error.kind(), Some(error.kind()), Some(found))
            }
        };
        self.count(result, reason, 1);
        // Done before the lock is taken, because the admin address takes it too.
        let turn = match (differences, called) {
            (Some(found), Some(called)) => Some(self.told(job, called, found, result)),
            _ => None,
        };
        let mut results = self.work.shadow.results.lock();
        if let Some(places) = tried.masked {
            results.rerun(label, places);
        }
        match (&tried.verdict, turn) {
            (Verdict::Same(is_masked), _) => results.same(*is_masked),
            (Verdict::Incomparable(Incomparable { reason, about }), _) => {
                results.incomparable(reason, about, &job.key);
            }
            (Verdict::Differs(_) | Verdict::Failed(..), Some(turn)) => {
                results.differs(label, &job.key, failed, turn);
                if drew {
                    results.drew();
                }
            }
            (Verdict::Differs(_) | Verdict::Failed(..), None) => {}
        }
    }

    /// Describes the turn as it would have been, with sensitive values hidden.
    fn told(&self, job: &Job, called: &Called, found: &[Difference], result: &str) -> ShadowTurn {
        let record = what_if::record(job, called, &self.candidate.digest);
        let live = job.called.as_ref().ok();
        let live = live.map_or(&[][..], |live| live.effects.as_slice());
        let differences = found.iter().map(|one| one.effect.clone()).collect();
        let journal = &self.work.loader.journal;
        let settings = self
            .work
            .loader
            .settings
            .hidden_of(&self.work.shadow.plugin);
        let plugin = PluginSecrets {
            settings: &settings,
            reads_sensitive: true,
        };
        let time = |at| journal.time(at);
        let redact = &self.work.redact;
        let (turn, redacted) = tell::trial(&record, live, differences, time, redact, plugin);
        what_if::turn(turn, found, redacted, result)
    }

    fn count_dropped(&mut self) {
        let dropped = self.work.shadow.jobs.dropped();
        self.count("dropped", "", dropped - self.dropped);
        self.dropped = dropped;
    }

    fn count(&self, result: &str, reason: &str, turns: u64) {
        if turns > 0 {
            let labels = [self.work.shadow.plugin.as_str(), result, reason];
            let counter = self.work.metrics.shadow_turns.with_label_values(&labels);
            counter.inc_by(turns);
        }
    }
}
