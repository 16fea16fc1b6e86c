//! Answers reviews with the plugins that run: admission reviews and conversions.
//!
//! ```text
//! HTTPS (vmhost-webhook)   a review for PLUGIN/NAME, with a deadline
//!   |
//! Reviews                  find the plugin's slot; ask on the guests' runtime
//!   |
//! call                     the newest live generation -> call `reconcile` -> outcome
//!   |
//! verdict                  exactly one `other`: the verdict, or the converted objects
//! ```
//! Every replica answers, whether it leads or not, and a circuit breaker of reconciles stops no
//! review: a webhook that is silent stops the writes of others. There is no turn: nothing is
//! queued, retried or written. Of admission reviews that are denied or not answered, the journal
//! keeps what was asked and why. What is no answer never means "allowed". During a canary the
//! live version alone answers, and a shadow or a preview never does.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio_util::task::AbortOnDropHandle;
use vmhost_core::{Description, Outcome, cut, one_line};
use vmhost_engine::Plugin;
use vmhost_otlp::Tracer;
use vmhost_webhook::{Arrival, Policy, Unanswered, Verdict};

use crate::deploy::plugins::Plugins;
use crate::deploy::slot::Slot;
use crate::journal::watch::Warnings;
use crate::observe::metrics::controller::controller_label;
use crate::observe::trace::TurnTrace;

pub mod audit;
mod call;
pub mod question;
mod recorded;
mod traced;
pub mod verdict;

use question::Question;
use recorded::{Recorder, Review};
use verdict::Answered;

/// How many bytes of the reason a log line shows.
const LOGGED: usize = 1024;

/// Answers reviews with the plugins of a host. Cheap to clone.
#[derive(Clone)]
pub struct Reviews {
    plugins: Weak<Plugins>,
    /// The slots that still answer while the host shuts down.
    held: Arc<Mutex<Vec<Arc<Slot>>>>,
    /// Exports the traces of reviews. `None` if none are exported.
    tracer: Option<Tracer>,
    /// Records reviews. `None` if none are recorded.
    recorder: Option<Recorder>,
}

/// A plugin that answers reviews, as it runs now.
pub struct Answering {
    /// The live generation's number.
    pub generation: u64,
    /// The plugin, with its description.
    pub plugin: Arc<Plugin>,
    /// What its webhooks and conversions still wait for before all can answer. Empty: they can.
    pub waiting: Vec<String>,
    /// Whether its conversions can answer already.
    pub converts: bool,
}

/// Takes an answer out of an outcome.
type Read<T> = fn(&Description, &str, Outcome) -> Result<T, Unanswered>;

impl Reviews {
    /// Answers with these plugins for as long as they run.
    pub fn new(plugins: &Arc<Plugins>) -> Self {
        Self {
            plugins: Arc::downgrade(plugins),
            held: Arc::default(),
            tracer: None,
            recorder: None,
        }
    }

    /// Records admission reviews that are denied or not answered beside the turns of these plugins,
    /// and hides what these warnings' documents hide.
    #[must_use]
    pub fn recorded(mut self, warnings: &Warnings) -> Self {
        let plugins = self.plugins.upgrade();
        let journal = plugins.map(|plugins| plugins.journal.clone());
        self.recorder = journal.and_then(|journal| Recorder::new(journal, &warnings.redact));
        self
    }

    /// Exports a trace of each review, if there is a tracer.
    #[must_use]
    pub fn traced(mut self, tracer: Option<Tracer>) -> Self {
        self.tracer = tracer;
        self
    }

    /// Lets the plugins of this moment answer until [`Reviews::release`], also after the host has
    /// dropped them.
    pub fn hold(&self) {
        if let Some(plugins) = self.plugins.upgrade() {
            let mut held = self.held.lock();
            if held.is_empty() {
                held.extend(plugins.slots());
            }
        }
    }

    /// Lets nothing answer any more that the host has dropped.
    pub fn release(&self) {
        self.held.lock().clear();
    }

    fn slots(&self, plugins: &Plugins) -> Vec<Arc<Slot>> {
        let held = self.held.lock().clone();
        if held.is_empty() {
            plugins.slots()
        } else {
            held
        }
    }

    /// The plugins that answer reviews, in the order of their start.
    pub fn answering(&self) -> Vec<Answering> {
        let slots = self.plugins.upgrade().map(|plugins| plugins.slots());
        let answering = slots.into_iter().flatten().filter_map(|slot| {
            let live = slot.current();
            live.description().answers_reviews().then(|| {
                let waiting: BTreeSet<String> = live
                    .readers
                    .values()
                    .flat_map(|sources| sources.waiting())
                    .collect();
                let conversions = live.description().conversions.iter();
                let mut read = conversions.filter_map(|of| live.readers.get(&of.name));
                Answering {
                    generation: live.number,
                    plugin: live.plugin.clone(),
                    waiting: waiting.into_iter().collect(),
                    converts: read.all(|sources| sources.unfilled().next().is_none()),
                }
            })
        });
        answering.collect()
    }

    /// Returns whether this host leads, so that it may write.
    pub fn leads(&self) -> bool {
        let plugins = self.plugins.upgrade();
        plugins.is_some_and(|plugins| plugins.leadership.is_leading())
    }

    async fn ask<T: Answered + Send + 'static>(
        &self,
        plugin: String,
        question: Question,
        arrival: Arrival,
        read: Read<T>,
    ) -> Result<T, Unanswered> {
        let plugins = self.plugins.upgrade().ok_or(Unanswered::NotReady)?;
        // Asked first: a plugin is in a slot before it counts as added.
        let is_adding = plugins.is_adding();
        let slots = self.slots(&plugins);
        if slots.is_empty() {
            // The host is just starting, or ending.
            return Err(Unanswered::NotReady);
        }
        let slot = slots.into_iter().find(|slot| slot.name == plugin);
        // The API server tries again if the plugin may yet come.
        let unknown = match is_adding {
            true => Unanswered::NotReady,
            false => Unanswered::NoSuchWebhook,
        };
        let slot = slot.ok_or(unknown)?;
        let label = controller_label(&plugin, &question.name);
        let key = question.key.clone();
        let is_admission = question.is_admission();
        let trace = traced::begin(self.tracer.as_ref(), &arrival);
        // A version that is swapped in at this very moment may answer in its place.
        let live = slot.current();
        let (question, began) = (Arc::new(question), Instant::now());
        let asked = in_slot(slot, question.clone(), read, trace.clone());
        let task = plugins.loader.guests.spawn(asked);
        // Dropped with this future: the call ends then, and its instance with it.
        let task = AbortOnDropHandle::new(task);
        let answer = match tokio::time::timeout_at(arrival.deadline.into(), task).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => Err(Unanswered::Failed(format!("the call was cut off: {error}"))),
            Err(_) => Err(Unanswered::TimedOut),
        };
        if !matches!(answer, Err(Unanswered::NoSuchWebhook)) {
            let result = answer.as_ref().map_or_else(result_of, T::result);
            let reviews = &plugins.metrics.reviews;
            reviews.with_label_values(&[label.as_str(), result]).inc();
            let about = (is_admission, label.as_str());
            let result = (result, answer.is_err());
            traced::end(trace.as_deref(), about, &key, &arrival, result);
        }
        if let Some(recorder) = self.recorder.as_ref().filter(|_| is_admission) {
            let review = Review {
                label: &label,
                live: &live,
                question: &question,
                began,
            };
            let denied = answer.as_ref().map(T::denied);
            recorder.note(&review, denied);
        }
        if let Err(error @ (Unanswered::Failed(_) | Unanswered::TimedOut)) = &answer {
            // It may hold a guest's text.
            let why = error.to_string();
            let why = one_line(cut(&why, LOGGED));
            tracing::warn!(controller = label, object = %key, "a review is not answered: {why}");
        }
        answer
    }
}

/// Answers on the guests' runtime.
async fn in_slot<T>(
    slot: Arc<Slot>,
    question: Arc<Question>,
    read: Read<T>,
    trace: Option<Arc<TurnTrace>>,
) -> Result<T, Unanswered> {
    let answer = call::newest(&slot, &question, trace.as_ref()).await?;
    read(
        answer.generation.description(),
        &question.name,
        answer.outcome,
    )
}

/// Why there is no answer, as one word for metric labels.
fn result_of(error: &Unanswered) -> &'static str {
    match error {
        Unanswered::NoSuchWebhook => "unknown",
        Unanswered::NotReady => "not_ready",
        Unanswered::TimedOut => "timed_out",
        Unanswered::Failed(_) => "failed",
    }
}

impl Policy for Reviews {
    fn admit(
        &self,
        plugin: &str,
        webhook: &str,
        uid: &str,
        namespace: Option<&str>,
        request: Box<RawValue>,
        arrival: Arrival,
    ) -> BoxFuture<'_, Result<Verdict, Unanswered>> {
        let question = Question::admission(webhook, uid, namespace, &request);
        self.ask(plugin.to_owned(), question, arrival, verdict::admission)
            .boxed()
    }

    fn convert(
        &self,
        plugin: &str,
        conversion: &str,
        uid: &str,
        desired: &str,
        objects: Vec<Box<RawValue>>,
        arrival: Arrival,
    ) -> BoxFuture<'_, Result<Vec<Box<RawValue>>, Unanswered>> {
        let question = Question::conversion(conversion, uid, desired, &objects);
        let converted = self.ask(plugin.to_owned(), question, arrival, verdict::conversion);
        converted
            .map(|converted| converted.map(|converted| converted.0))
            .boxed()
    }
}
