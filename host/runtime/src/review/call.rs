//! Calls a plugin with a review. No call starts on an older generation after a newer one was
//! announced, as with turns. This module must not know what an answer means.

use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use vmhost_core::{
    Gvk, HttpAnswer, HttpCall, ListQuery, LiveRead, ObjectName, ObjectReader, Outcome, Page,
    ReadError, Snapshot, Trace,
};
use vmhost_engine::{CallError, Plugin};
use vmhost_webhook::Unanswered;

use super::question::Question;
use super::traced;
use crate::deploy::slot::{Generation, Slot};
use crate::observe::log::reconcile::Reconcile;
use crate::observe::metrics::controller::controller_label;
use crate::observe::trace::TurnTrace;
use crate::observe::trace::reader::TracedReader;
use crate::wake::sources::Sources;

/// What a generation answered.
pub(super) struct Answer {
    pub(super) generation: Arc<Generation>,
    pub(super) outcome: Outcome,
}

/// What a review may ask the host.
struct Reader {
    sources: Arc<Sources>,
    generation: Arc<Generation>,
}

impl ObjectReader for Reader {
    fn get(&self, kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError> {
        self.sources.get(kind, name)
    }

    fn list(&self, query: &ListQuery) -> Result<Page, ReadError> {
        self.sources.list(query)
    }

    fn get_live(&self, kind: Gvk, name: ObjectName) -> LiveRead<Option<Snapshot>> {
        self.sources.get_live(kind, name)
    }

    fn list_live(&self, query: ListQuery) -> LiveRead<Page> {
        self.sources.list_live(query)
    }

    /// Requests that change something are refused: the API server may ask again, or only try.
    fn http(&self, call: HttpCall) -> HttpAnswer {
        let generation = &self.generation;
        generation.share.http.send(generation.granted(), call)
    }
}

/// Asks the newest live generation of a plugin.
pub(super) async fn newest(
    slot: &Slot,
    question: &Question,
    trace: Option<&Arc<TurnTrace>>,
) -> Result<Answer, Unanswered> {
    loop {
        let lineup = slot.lineup();
        let generation = &lineup.live;
        let reader = Arc::new(Reader {
            sources: sources(generation, question)?.clone(),
            generation: generation.clone(),
        });
        // Before the start is counted: a swap is not announced while one is.
        let Ok(_place) = generation.reviews.acquire().await else {
            return Err(Unanswered::NotReady);
        };
        let Some(starting) = slot.begin(&lineup) else {
            continue;
        };
        let began = Instant::now();
        let number = generation.number;
        let outcome = call(
            &generation.plugin,
            reader,
            number,
            (question, trace),
            || drop(starting),
        );
        let outcome = outcome.await;
        let version = (generation.plugin.digest(), number);
        traced::called(trace, began, version, outcome.as_ref().err());
        return Ok(Answer {
            generation: generation.clone(),
            outcome: outcome?,
        });
    }
}

/// The stores of the webhook or conversion that is asked, all filled.
fn sources<'a>(
    generation: &'a Generation,
    question: &Question,
) -> Result<&'a Arc<Sources>, Unanswered> {
    let description = generation.description();
    let is_there = match question.is_admission() {
        true => description.webhook(&question.name).is_some(),
        false => description.conversion(&question.name).is_some(),
    };
    let sources = generation.readers.get(&question.name);
    let sources = sources
        .filter(|_| is_there)
        .ok_or(Unanswered::NoSuchWebhook)?;
    match sources.synced().now_or_never() {
        Some(()) => Ok(sources),
        None => Err(Unanswered::NotReady),
    }
}

/// Calls a plugin with a question, which may have a trace. `started` is called just before the
/// guest runs.
pub(super) async fn call(
    plugin: &Plugin,
    reader: Arc<dyn ObjectReader>,
    generation: u64,
    (question, trace): (&Question, Option<&Arc<TurnTrace>>),
    started: impl FnOnce(),
) -> Result<Outcome, Unanswered> {
    let label = controller_label(&plugin.description().name, &question.name);
    let mut reconcile = Reconcile::new(label.into(), generation, question.key.clone());
    let mut reader = reader;
    if let (Some(trace), Some(reconcile)) = (trace, Arc::get_mut(&mut reconcile)) {
        reconcile.trace = Some(trace.clone());
        reader = Arc::new(TracedReader::new(reader, trace.clone()));
    }
    let request = question.request();
    let mut trace = Trace::default();
    let called = plugin.call(&request, reader, &mut trace, started);
    reconcile.scope(called).await.map_err(|error| match error {
        CallError::Deadline(_) => Unanswered::TimedOut,
        error => Unanswered::Failed(error.to_string()),
    })
}
