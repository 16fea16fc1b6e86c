//! The tracer: begins traces, keeps spans that have ended for a while, and sends them in batches
//! from a task of its own. This module must not know what a span is about, nor its form on the
//! wire.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use crate::context::{Context, Parent, SpanId, TraceId};
use crate::sampler::Sampler;
use crate::sender::{Sender, StartError, shown};
use crate::settings::Settings;
use crate::span::Span;
use crate::state::TraceState;
use crate::wire;

/// The pauses before the second try and before later ones: 1, 2, 4 s and so on, each a half shorter
/// to a half longer, so that hosts that lost the same collector do not come back at once.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What became of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanResult {
    /// The collector took it.
    Exported,
    /// The queue was full, or its trace had too many.
    Dropped,
    /// The collector did not take it.
    Failed,
}

impl SpanResult {
    /// All results.
    pub const ALL: [Self; 3] = [Self::Exported, Self::Dropped, Self::Failed];

    /// The result as one word, for metric labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exported => "exported",
            Self::Dropped => "dropped",
            Self::Failed => "failed",
        }
    }
}

/// Counts spans by what became of them. Implementations must be quick.
pub trait SpanObserver: Send + Sync {
    /// This many spans came to this.
    fn spans(&self, result: SpanResult, count: usize);
}

/// A trace that has begun here, or goes on here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Its first span in this process.
    pub root: Context,
    /// The span of another process that it goes on from.
    pub above: Option<SpanId>,
    /// What other systems noted about it.
    pub state: Option<TraceState>,
}

/// Exports traces. Cheap to clone.
#[derive(Clone)]
pub struct Tracer(Arc<Shared>);

struct Shared {
    sampler: Sampler,
    propagates: bool,
    /// Spans that wait for the next batch.
    waiting: Mutex<VecDeque<Span>>,
    /// Spans that may wait at most.
    queue: usize,
    batch: usize,
    /// Told when a whole batch waits.
    full: Notify,
    flushes: mpsc::Sender<oneshot::Sender<()>>,
    observer: Arc<dyn SpanObserver>,
}

/// What the task has that sends the batches.
struct Exporter {
    shared: Arc<Shared>,
    sender: Sender,
    resource: Vec<(String, String)>,
    delay: Duration,
    /// How long a batch may take, with all its tries.
    most: Duration,
    /// Whether the last batch failed, so that the log tells it once.
    fails: AtomicBool,
}

impl Tracer {
    /// Starts a task on the current runtime that sends spans for as long as the runtime runs.
    pub fn start(settings: Settings, observer: Arc<dyn SpanObserver>) -> Result<Self, StartError> {
        let sender = Sender::new(&settings)?;
        for result in SpanResult::ALL {
            // The counters begin at 0, so that the first loss shows as an increase.
            observer.spans(result, 0);
        }
        let (flushes, asked) = mpsc::channel(1);
        let shared = Arc::new(Shared {
            sampler: settings.sampler,
            propagates: settings.propagates,
            waiting: Mutex::default(),
            queue: settings.queue,
            batch: settings.batch,
            full: Notify::new(),
            flushes,
            observer,
        });
        let exporter = Exporter {
            shared: shared.clone(),
            sender,
            resource: settings.resource,
            delay: settings.delay,
            most: settings.export,
            fails: AtomicBool::new(false),
        };
        tokio::spawn(exporter.run(asked));
        Ok(Self(shared))
    }

    /// Begins a trace. Returns its first span, or `None` if the trace is not exported.
    pub fn trace(&self) -> Option<Context> {
        self.trace_below(None).map(|begun| begun.root)
    }

    /// Like [`Tracer::trace`], below a span of another process, unless traces do not go on from
    /// there.
    pub fn trace_below(&self, parent: Option<Parent>) -> Option<Begun> {
        let parent = parent.filter(|_| self.0.propagates);
        let trace = parent.as_ref().map(|parent| parent.trace);
        let trace = trace.unwrap_or_else(TraceId::random);
        let takes = self.0.sampler.takes(trace, parent.as_ref());
        takes.then(|| Begun {
            root: Context::root(trace),
            above: parent.as_ref().map(|parent| parent.span),
            state: parent.and_then(|parent| parent.state),
        })
    }

    /// Returns whether requests tell their servers which trace they belong to.
    pub fn propagates(&self) -> bool {
        self.0.propagates
    }

    /// Counts spans that were not kept, since their trace had too many.
    pub fn dropped(&self, count: usize) {
        self.0.observer.spans(SpanResult::Dropped, count);
    }

    /// Exports spans that have ended. Never waits: if the queue is full, these spans are dropped.
    pub fn export(&self, spans: Vec<Span>) {
        let shared = &self.0;
        let mut waiting = shared.waiting.lock();
        if waiting.len() + spans.len() > shared.queue {
            drop(waiting);
            shared.observer.spans(SpanResult::Dropped, spans.len());
            return;
        }
        waiting.extend(spans);
        let is_full = waiting.len() >= shared.batch;
        drop(waiting);
        if is_full {
            shared.full.notify_one();
        }
    }

    /// Sends all spans that wait, and returns when they were sent or when this time is over.
    pub async fn flush(&self, most: Duration) {
        let (done, sent) = oneshot::channel();
        let flushed = async {
            if self.0.flushes.send(done).await.is_ok() {
                // An error means that the task has ended, with its runtime.
                let _ = sent.await;
            }
        };
        if tokio::time::timeout(most, flushed).await.is_err() {
            tracing::debug!("the last spans were not sent within {most:?}");
        }
    }
}

impl Shared {
    /// Takes the oldest spans, at most as many as a batch has.
    fn take(&self) -> Vec<Span> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(self.batch);
        waiting.drain(..count).collect()
    }

    fn has_batch(&self) -> bool {
        self.waiting.lock().len() >= self.batch
    }
}

impl Exporter {
    async fn run(self, mut asked: mpsc::Receiver<oneshot::Sender<()>>) {
        loop {
            let flush = tokio::select! {
                () = tokio::time::sleep(self.delay) => None,
                () = self.shared.full.notified() => None,
                asked = asked.recv() => asked,
            };
            loop {
                let batch = self.shared.take();
                if batch.is_empty() {
                    break;
                }
                self.export(batch).await;
                if flush.is_none() && !self.shared.has_batch() {
                    break;
                }
            }
            if let Some(done) = flush {
                // The caller may have stopped waiting.
                let _ = done.send(());
            }
        }
    }

    async fn export(&self, spans: Vec<Span>) {
        let body = self.sender.pack(wire::body(&self.resource, &spans));
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let left = self.most.saturating_sub(began.elapsed());
            let unsent = match self.sender.send(body.clone(), left).await {
                Ok(answer) => return self.sent(&answer, spans.len()),
                Err(unsent) => unsent,
            };
            let own = pause.mul_f64(0.5 + fastrand::f64());
            let wait = unsent.wait.map(|asked| asked.max(own));
            let left = self.most.saturating_sub(began.elapsed());
            let Some(wait) = wait.filter(|wait| *wait < left) else {
                self.report(&unsent.why, spans.len());
                return self.count(SpanResult::Failed, spans.len());
            };
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Counts the spans of a batch that the collector answered.
    fn sent(&self, answer: &[u8], count: usize) {
        let (rejected, why) = wire::rejected(answer).unwrap_or_default();
        let rejected = rejected.min(count);
        if count > rejected {
            self.count(SpanResult::Exported, count - rejected);
        }
        if rejected == 0 {
            self.fails.store(false, Ordering::Relaxed);
        } else {
            // As OTLP says, they are not sent again.
            self.report(&shown(&why), rejected);
            self.count(SpanResult::Failed, rejected);
        }
    }

    fn count(&self, result: SpanResult, count: usize) {
        self.shared.observer.spans(result, count);
    }

    /// Warns about the first batch that fails after one that did not.
    fn report(&self, why: &str, count: usize) {
        if self.fails.swap(true, Ordering::Relaxed) {
            tracing::debug!("the collector did not take {count} spans: {why}");
        } else {
            tracing::warn!(
                "the collector of OTEL_EXPORTER_OTLP_ENDPOINT did not take {count} spans: {why}; \
                 more of these are counted (vmhost_spans_total) and not logged"
            );
        }
    }
}

#[cfg(test)]
mod tests;
