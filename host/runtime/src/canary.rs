//! A canary: a new version of a plugin, the candidate, runs a share of the objects, until it is
//! promoted or aborted.
//!
//! ```text
//! fit      refuse what could not share queue, stores and grants with the live version
//!   |
//! weight   a keyed hash of an object's uid: this object runs on the candidate, that one does not
//! steps    how the weight grows
//!   |
//! part     a turn on one of the two sides: which snapshot it saw, and how it ended
//!   |        `- keys: the keys whose last turn was on the candidate
//! score    is the candidate worse? warned: has it warnings that the live version has not? -> abort
//!   |
//! report   each object that the candidate wrote
//! end      promoted, or aborted, and why
//! ```
//! This module owns what is known about a canary. [`crate::deploy::canary`] changes what runs. It
//! must not know workers or queues.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use foldhash::quality::FixedState;
use parking_lot::Mutex;
use tokio::sync::watch;
use vmhost_cluster::Error;
use vmhost_core::ObjectName;

pub(crate) mod breach;
pub(crate) mod end;
pub(crate) mod fit;
pub(crate) mod keys;
pub(crate) mod order;
pub(crate) mod part;
pub(crate) mod report;
pub mod rules;
pub(crate) mod score;
pub mod steps;
pub mod told;
pub(crate) mod warned;
pub(crate) mod weight;

use breach::{Breach, Counts};
use end::{End, TakenBack};
use keys::CandidateKeys;
use report::{Report, Written};
use rules::{Rules, Tuning};
use score::{Noted, Score};
use steps::Steps;
use weight::Weight;

use crate::journal::record::{Answer, AnswerEnd, TurnRecord};

/// One canary of one plugin. After its end it is kept for the report.
#[derive(Debug)]
pub struct Canary {
    /// The version that is tried, and the live one.
    pub(crate) about: About,
    /// The steps in which the candidate's share grows.
    pub(crate) steps: Steps,
    /// When it is aborted.
    pub(crate) rules: Rules,
    seed: u64,
    step: Mutex<Step>,
    /// The candidate's keys, by the controller's name. A controller of timers has no entry.
    keys: BTreeMap<String, Arc<CandidateKeys>>,
    score: Mutex<Score>,
    report: Mutex<Report<TurnRecord>>,
    /// The candidate's component, until a moment after the end.
    component: Mutex<Vec<u8>>,
    ended: OnceLock<Ended>,
    /// Whether the end is counted.
    counted: AtomicBool,
    stage: watch::Sender<Stage>,
}

/// The version that a canary tries, and the live version that it is compared with.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// The plugin's name.
    pub(crate) plugin: String,
    /// The candidate's version in its description.
    pub(crate) version: String,
    /// The candidate's generation.
    pub(crate) generation: u64,
    /// The digest of the candidate's component.
    pub(crate) digest: String,
    /// The live generation.
    pub(crate) live: u64,
    /// The digest of the live version's component.
    pub(crate) live_digest: String,
    /// When the canary began.
    pub(crate) since: SystemTime,
}

/// The present step of a canary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// The weight in thousandths.
    pub(crate) permille: u16,
    /// When the next step comes. `None` if an operator decides.
    pub(crate) next: Option<SystemTime>,
}

/// How a canary ended, and when.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) how: End,
    pub(crate) at: SystemTime,
}

/// The stages of a canary, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// The candidate runs its share.
    Running,
    /// The end is decided. For a moment, calls may still start on the candidate.
    Ending,
    /// The candidate's keys are put back, and no call starts on the candidate any more; or the
    /// candidate is the live version.
    Over,
}

impl Canary {
    /// Creates a canary of this component. `keys` has an entry for each controller of objects, by
    /// the controller's name; controllers of timers have no entry.
    pub(crate) fn new(
        about: About,
        steps: Steps,
        tuning: Tuning,
        keys: BTreeMap<String, Arc<CandidateKeys>>,
        component: Vec<u8>,
    ) -> Arc<Self> {
        let step = Step {
            permille: steps.first(),
            next: None,
        };
        Arc::new(Self {
            about,
            steps,
            rules: tuning.rules,
            seed: tuning.seed.unwrap_or_else(|| fastrand::u64(..)),
            step: Mutex::new(step),
            keys,
            score: Mutex::new(Score::under(tuning.rules)),
            report: Mutex::default(),
            component: Mutex::new(component),
            ended: OnceLock::new(),
            counted: AtomicBool::new(false),
            stage: watch::Sender::new(Stage::Running),
        })
    }

    /// Returns this share of the objects, drawn with the canary's seed.
    pub(crate) fn weight(&self, permille: u16) -> Weight {
        Weight::new(permille, self.seed)
    }

    /// The present step.
    pub(crate) fn step(&self) -> Step {
        *self.step.lock()
    }

    /// Begins this step.
    pub(crate) fn steps_to(&self, step: Step) {
        *self.step.lock() = step;
    }

    /// The candidate's component, if that has this digest and the canary still needs it.
    pub(crate) fn component(&self, digest: &str) -> Option<Vec<u8>> {
        if self.about.digest != digest {
            return None;
        }
        let component = self.component.lock();
        (!component.is_empty()).then(|| component.clone())
    }

    /// Takes the candidate's component, which the canary does not need any more.
    pub(crate) fn take_component(&self) -> Vec<u8> {
        std::mem::take(&mut *self.component.lock())
    }

    /// The keys of a controller. `None` for a timer.
    pub(crate) fn keys(&self, controller: &str) -> Option<&Arc<CandidateKeys>> {
        self.keys.get(controller)
    }

    /// The keys of all controllers, by the controllers' names.
    pub(crate) fn controllers(&self) -> impl Iterator<Item = (&str, &Arc<CandidateKeys>)> {
        self.keys.iter().map(|(name, keys)| (name.as_str(), keys))
    }

    /// Decides how the canary ends. Returns whether this call decided: only the first call counts.
    pub(crate) fn end(&self, how: End) -> bool {
        let ended = Ended {
            how,
            at: SystemTime::now(),
        };
        let is_first = self.ended.set(ended).is_ok();
        if is_first {
            self.stage.send_replace(Stage::Ending);
        }
        is_first
    }

    /// Marks the canary as over. To be called when the candidate's keys are put back, or when the
    /// candidate is the live version.
    pub(crate) fn finish(&self) {
        self.stage.send_replace(Stage::Over);
    }

    /// The present stage.
    pub(crate) fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    /// Resolves when the canary has reached this stage.
    pub(crate) async fn until(&self, stage: Stage) {
        let mut stages = self.stage.subscribe();
        // The sender lives as long as this value.
        let _ = stages.wait_for(|present| *present >= stage).await;
    }

    /// How and when the canary ended, once that is decided.
    pub(crate) fn ended(&self) -> Option<&Ended> {
        self.ended.get()
    }

    /// Returns how the canary ended, for the metrics. Only the first call after the end gets it,
    /// because the task of the canary and a shutdown may both count.
    pub(crate) fn to_count(&self) -> Option<&End> {
        let ended = self.ended.get()?;
        let is_first = !self.counted.swap(true, Ordering::Relaxed);
        is_first.then_some(&ended.how)
    }

    /// Returns whether the canary was aborted. The host then ignores whatever the candidate still
    /// returns.
    pub(crate) fn is_aborted(&self) -> bool {
        let ended = self.ended.get();
        ended.is_some_and(|ended| matches!(ended.how, End::Aborted(_)))
    }

    /// Returns an error if the canary was aborted. To be called right before the first write of
    /// each turn of the candidate.
    pub(crate) fn fence(&self) -> Result<(), Error> {
        match self.is_aborted() {
            true => Err(TakenBack::error()),
            false => Ok(()),
        }
    }

    /// Returns a hash of a controller's key, for the score. It depends on the canary's seed, so
    /// that names cannot be chosen to count as one key.
    fn id(&self, controller: &str, key: &ObjectName) -> u64 {
        FixedState::with_seed(self.seed).hash_one((controller, key.as_str()))
    }

    /// Counts a turn of the candidate. Returns a breach if the canary has to be aborted.
    fn note_candidate(&self, id: u64, key: &ObjectName, noted: Noted) -> Option<Breach> {
        if self.ended.get().is_some() {
            return None;
        }
        self.score.lock().candidate(id, key, noted)
    }

    /// Counts a turn of the live version.
    fn note_live(&self, id: u64, noted: Noted) {
        if self.ended.get().is_none() {
            self.score.lock().live(id, noted);
        }
    }

    /// The keys of the candidate and of the live version, and the number of the candidate's keys
    /// that broke.
    pub(crate) fn counts(&self) -> ([Counts; 2], usize) {
        let score = self.score.lock();
        (score.counts(), score.broken())
    }

    /// Adds a turn of the candidate to the report, if it changed objects, or if no answer tells
    /// whether it did.
    pub(crate) fn wrote(&self, record: &TurnRecord) {
        let is_unanswered = |answer: &&Answer| matches!(answer.end, AnswerEnd::Unanswered(_));
        let answers = || record.answers.iter();
        if record.changed() {
            let changed = answers().filter(|answer| answer.changed());
            let objects = changed.map(|answer| &answer.object);
            let mut report = self.report.lock();
            report.add(objects, record.bytes(), || record.clone());
        }
        if answers().any(|answer| is_unanswered(&answer)) {
            let objects = answers().filter(is_unanswered).map(|answer| &answer.object);
            let mut report = self.report.lock();
            report.perhaps(objects, record.bytes(), || record.clone());
        }
    }

    /// The objects that the candidate wrote, from this place in the list on and at most so many,
    /// and the number of objects that are not in the list.
    pub(crate) fn written(&self, from: usize, most: usize) -> (Vec<Written<TurnRecord>>, u64) {
        let report = self.report.lock();
        (report.objects(from, most), report.unlisted() as u64)
    }

    /// The number of objects that the candidate wrote.
    pub(crate) fn written_count(&self) -> u64 {
        let report = self.report.lock();
        (report.len() + report.unlisted()) as u64
    }
}

#[cfg(test)]
pub(crate) mod tests;
