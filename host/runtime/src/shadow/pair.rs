//! Tries one turn with the candidate: calls it with the turn's request and answers, compares the
//! outcomes, and leaves out the places where the live version differs from itself.
//!
//! This module must not know where turns come from, or what becomes of a verdict.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use vmhost_engine::{CallError, Draws, Plugin, Settings, Told};

use crate::shadow::answers::Answers;
use crate::shadow::compare::compare;
use crate::shadow::difference::Difference;
use crate::shadow::fit::unseen;
use crate::shadow::job::{Called, Job};
use crate::shadow::mask::{Mask, Place};

/// The first turns of each controller that the live version's code runs once more, whatever the
/// candidate does. After that, only turns with a difference are run again.
pub(crate) const FIRST: u32 = 20;

/// The candidate, and what the shadow has learned about the live version.
pub(crate) struct Pair {
    pub(crate) candidate: Plugin,
    /// The operator's settings of the plugin.
    pub(crate) settings: Settings,
    live: LiveVersion,
}

/// What the shadow has learned about one live version.
#[derive(Default)]
struct LiveVersion {
    digest: String,
    mask: Mask,
    /// By the controllers' labels.
    controllers: HashMap<Arc<str>, Controller>,
}

/// What the shadow has learned about a controller.
#[derive(Clone, Default)]
struct Controller {
    /// Why none of its turns can be compared.
    unfit: Option<Incomparable>,
    /// Number of turns that the live version's code has run once more.
    reruns: u32,
}

/// The result of a comparison.
pub(crate) enum Verdict {
    /// The versions want the same. `true` if that holds only without the masked places.
    Same(bool),
    /// They differ.
    Differs(Vec<Difference>),
    /// The candidate's call failed, and the live version's succeeded or failed in another way.
    Failed(CallError, Vec<Difference>),
    /// They cannot be compared.
    Incomparable(Incomparable),
}

/// Why a turn cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Incomparable {
    /// The reason, in one word.
    pub(crate) reason: &'static str,
    /// The details.
    pub(crate) about: String,
}

/// The result of trying a turn.
pub(crate) struct Tried {
    pub(crate) verdict: Verdict,
    /// What the candidate's call returned. `None` if it was not called.
    pub(crate) called: Option<Called>,
    /// Whether the candidate drew more clock readings or random numbers than the live version.
    pub(crate) drew: bool,
    /// If the live version's code has run the turn once more: the new places where it differs from
    /// itself.
    pub(crate) masked: Option<Vec<Place>>,
}

/// The result of a call in the shadow.
struct Ran {
    called: Called,
    draws: Draws,
    /// Why the call cannot be compared, if it cannot.
    void: Option<Incomparable>,
}

impl Pair {
    /// Creates a pair that tries this candidate with these settings.
    pub(crate) fn new(candidate: Plugin, settings: Settings) -> Self {
        Self {
            candidate,
            settings,
            live: LiveVersion::default(),
        }
    }

    /// Forgets what it has learned if this turn is of another live version. Returns whether it is.
    pub(crate) fn follow(&mut self, job: &Job) -> bool {
        let digest = job.live.plugin().digest();
        let is_new = self.live.digest != digest;
        if is_new {
            self.live = LiveVersion {
                digest: digest.to_owned(),
                ..LiveVersion::default()
            };
        }
        is_new
    }

    /// Tries one turn of the live version that [`Pair::follow`] was called with last.
    pub(crate) async fn attempt(&mut self, job: &Job) -> Tried {
        if let Some(why) = self.unfit(job) {
            return Tried {
                verdict: Verdict::Incomparable(why),
                called: None,
                drew: false,
                masked: None,
            };
        }
        let told = job.told();
        let ran = run(&self.candidate, job, &self.settings, &told).await;
        let (verdict, masked) = match ran.void {
            Some(why) => (Verdict::Incomparable(why), None),
            None => self.judge(job, &ran.called, &told).await,
        };
        Tried {
            verdict,
            called: Some(ran.called),
            drew: ran.draws.more,
            masked,
        }
    }

    /// Compares the outcomes. If they differ, and for the first turns in any case, runs the live
    /// version's code once more.
    async fn judge(
        &mut self,
        job: &Job,
        called: &Called,
        told: &Told,
    ) -> (Verdict, Option<Vec<Place>>) {
        let label = job.live.label();
        let differences = compare(job, called);
        let reruns = self.live.controllers.get(label).map_or(0, |of| of.reruns);
        let mut masked = None;
        if !differences.is_empty() || reruns < FIRST {
            let again = run(job.live.plugin(), job, &self.settings, told).await;
            self.of(label).reruns = reruns.saturating_add(1);
            masked = Some(match again.void {
                // The live version asks other questions this time, so its outcome shows nothing.
                Some(_) => Vec::new(),
                None => self.live.mask.learn(label, &compare(job, &again.called)),
            });
        }
        let had_any = !differences.is_empty();
        let left = self.live.mask.apply(label, differences);
        let verdict = match (left.is_empty(), called) {
            (true, _) => Verdict::Same(had_any),
            (false, Err(error)) => Verdict::Failed(error.clone(), left),
            (false, Ok(_)) => Verdict::Differs(left),
        };
        (verdict, masked)
    }

    /// Returns why this turn cannot be compared, whatever the candidate does.
    fn unfit(&mut self, job: &Job) -> Option<Incomparable> {
        if job.trace.cut {
            return Some(because("record", "its reads were too large to keep"));
        }
        if job.lacks_draws() {
            let about = "it drew more of clock and chance than is kept";
            return Some(because("draws", about));
        }
        let label = job.live.label();
        if !self.live.controllers.contains_key(label) {
            let unfit = self.unfit_controller(job);
            self.of(label).unfit = unfit;
        }
        if let Some(why) = &self.of(label).unfit {
            return Some(why.clone());
        }
        let name = job.live.controller();
        let finalizer = |plugin: &Plugin| {
            let controller = plugin.description().controller(name);
            controller.and_then(|controller| controller.finalizer.clone())
        };
        if job.deleting && finalizer(job.live.plugin()) != finalizer(&self.candidate) {
            return Some(because("finalizer", "a clean-up for another finalizer"));
        }
        None
    }

    fn unfit_controller(&self, job: &Job) -> Option<Incomparable> {
        let name = job.live.controller();
        let of = |plugin: &Plugin| plugin.description().controller(name).cloned();
        let Some(candidate) = of(&self.candidate) else {
            return Some(because("controller", name));
        };
        let live = of(job.live.plugin())?;
        if candidate.kind() != live.kind() {
            return Some(because("controller", name));
        }
        Some(because("unseen", &unseen(&live, &candidate)?))
    }

    fn of(&mut self, label: &Arc<str>) -> &mut Controller {
        self.live.controllers.entry(label.clone()).or_default()
    }
}

fn because(reason: &'static str, about: &str) -> Incomparable {
    Incomparable {
        reason,
        about: about.to_owned(),
    }
}

/// Calls a version with the request, the answers, the clock readings and the random numbers of a
/// turn.
async fn run(plugin: &Plugin, job: &Job, settings: &Settings, told: &Told) -> Ran {
    let controller = plugin.description().controller(job.live.controller());
    let has_previous = controller.is_some_and(|controller| controller.previous);
    let request = job.request(has_previous);
    let answers = Arc::new(Answers::new(&job.trace));
    let before = processor_time();
    let called = plugin.call_told(&request, answers.clone(), settings.clone(), told);
    let (called, _, draws) = called.await;
    let used = processor_time().saturating_sub(before);
    let void = match (answers.unknown(), &called) {
        (Some(read), _) => Some(because("read", &read)),
        (None, Err(CallError::Busy(_))) => Some(because("busy", "no instance was free")),
        // The thread has the lowest priority, so on a busy machine the deadline can pass before it
        // gets to run.
        (None, Err(CallError::Deadline(limit))) if used < *limit / 2 => {
            Some(because("starved", "it got too little processor time"))
        }
        (None, _) => None,
    };
    Ran {
        called,
        draws,
        void,
    }
}

/// The processor time that this thread has used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
