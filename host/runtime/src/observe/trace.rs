//! The trace of a running turn or review: its first span, and the spans that have ended so far. It
//! exists only for those that are exported.
//!
//! ```text
//! reconcile            from the moment in which the key was ready, to the decision
//! |- wait              the key waits for a worker
//! |- call              the plugin runs
//! |  `- get, list      what it reads, from a store or live, and HTTP requests
//! |- patch, apply ...  each write
//! `- await own writes  until the stores show them
//!
//! admit, convert       from the head of the request to the answer; below the API server's span
//! `- call
//!    `- get, list
//! ```
//! A span shows kinds, names and codes, and no text that a plugin, an object or a server wrote:
//! such a text may hold a secret. This module must not know how a turn runs.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures_util::future::Either;
use parking_lot::Mutex;
use vmhost_cluster::TraceSource;
use vmhost_core::{Gvk, ObjectName, TraceHeaders};
use vmhost_otlp::{Begun, Context, Kind, Parent, Span, SpanId, TraceState, Tracer, Value};

pub(crate) mod reader;

/// The longest name that a span shows, in bytes: a plugin may ask for an object of any name.
const LONGEST_NAME: usize = 512;

/// How many spans a trace has at most, besides its first ones: a plugin may read and write as often
/// as it likes, and a quarter of the spans that wait for the collector must do for one turn.
const MOST: usize = 512;

/// How many of these are reads, so that the writes that follow show.
const MOST_READS: usize = 256;

tokio::task_local! {
    /// The span that the requests of this task belong to.
    static REQUEST: Belongs;
}

/// What the requests of a task belong to.
#[derive(Clone)]
struct Belongs {
    span: Context,
    /// What other systems noted about the trace.
    state: Option<TraceState>,
}

/// The trace of one turn or review.
pub(crate) struct TurnTrace {
    tracer: Tracer,
    /// The first span.
    root: Context,
    /// The span of another process that it is below.
    above: Option<SpanId>,
    /// What other systems noted about it, for all spans and requests.
    state: Option<TraceState>,
    /// The span of the plugin's call.
    call: Context,
    /// The spans that have ended, besides these two.
    ended: Mutex<Vec<Span>>,
    /// How many of them have begun.
    begun: AtomicUsize,
    /// How many there was no room for.
    left_out: AtomicUsize,
}

/// A span that has not ended. Dropping it forgets it.
pub(crate) struct Open {
    trace: Arc<TurnTrace>,
    span: Span,
}

/// Tells the API server the span of a request.
pub(crate) struct CurrentSpan;

impl TraceSource for CurrentSpan {
    fn headers(&self) -> Option<TraceHeaders> {
        headers()
    }
}

/// Formats without the spans.
impl std::fmt::Debug for TurnTrace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.root.traceparent())
    }
}

impl TurnTrace {
    /// Begins the trace of a turn. Returns `None` if the turn is not exported.
    pub(crate) fn begin(tracer: &Tracer) -> Option<Arc<Self>> {
        Self::below(tracer, None)
    }

    /// Like [`TurnTrace::begin`], below a span of another process.
    pub(crate) fn below(tracer: &Tracer, parent: Option<Parent>) -> Option<Arc<Self>> {
        let Begun { root, above, state } = tracer.trace_below(parent)?;
        Some(Arc::new(Self {
            tracer: tracer.clone(),
            root,
            above,
            state,
            call: root.child(),
            ended: Mutex::default(),
            begun: AtomicUsize::new(0),
            left_out: AtomicUsize::new(0),
        }))
    }

    /// The first span, which log lines name.
    pub(crate) fn root(&self) -> Context {
        self.root
    }

    /// The span of another process that the first span is below.
    pub(crate) fn above(&self) -> Option<SpanId> {
        self.above
    }

    /// The span of the plugin's call.
    pub(crate) fn call(&self) -> Context {
        self.call
    }

    /// Begins a span below the first one. Returns `None` if the trace has too many.
    pub(crate) fn open(
        self: &Arc<Self>,
        kind: Kind,
        name: impl Into<Cow<'static, str>>,
    ) -> Option<Open> {
        self.open_below(self.root.span, MOST, kind, name.into())
    }

    /// Begins the span of a read below the plugin's call. Returns `None` if the trace has too many.
    pub(crate) fn open_read(self: &Arc<Self>, kind: Kind, name: &'static str) -> Option<Open> {
        self.open_below(self.call.span, MOST_READS, kind, name.into())
    }

    fn open_below(
        self: &Arc<Self>,
        parent: SpanId,
        most: usize,
        kind: Kind,
        name: Cow<'static, str>,
    ) -> Option<Open> {
        // No other memory depends on these two counters, so their order does not matter.
        if self.begun.load(Ordering::Relaxed) >= most {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.begun.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        Some(Open {
            trace: self.clone(),
            span: Span {
                context: self.root.child(),
                parent: Some(parent),
                state: None,
                name,
                kind,
                began: now,
                ended: now,
                attributes: Vec::new(),
                error: None,
            },
        })
    }

    /// Adds a span whose times are known.
    pub(crate) fn add(&self, span: Span) {
        self.ended.lock().push(span);
    }

    /// Ends the trace with its first span, and exports all spans.
    pub(crate) fn finish(&self, mut root: Span) {
        let left_out = self.left_out.load(Ordering::Relaxed);
        if left_out > 0 {
            let many = Value::from(left_out as u64);
            root.attributes.push(("vmhost.spans.left_out", many));
            self.tracer.dropped(left_out);
        }
        let mut spans = std::mem::take(&mut *self.ended.lock());
        spans.push(root);
        if self.state.is_some() {
            let each = spans.iter_mut();
            each.for_each(|span| span.state.clone_from(&self.state));
        }
        self.tracer.export(spans);
    }
}

impl Open {
    /// Adds an attribute.
    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        self.span.attributes.push((name, value.into()));
    }

    /// Adds the object that the span is about.
    pub(crate) fn about(&mut self, kind: &Gvk, name: &ObjectName) {
        self.span.attributes.extend(object(kind, name));
    }

    /// Runs work whose requests belong to this span.
    pub(crate) fn scope<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        match self.trace.tracer.propagates() {
            true => {
                let belongs = Belongs {
                    span: self.span.context,
                    state: self.trace.state.clone(),
                };
                Either::Left(REQUEST.scope(belongs, work))
            }
            false => Either::Right(work),
        }
    }

    /// Ends the span now.
    pub(crate) fn end(mut self, error: Option<Cow<'static, str>>) {
        self.span.ended = Instant::now();
        self.span.error = error;
        self.trace.add(self.span);
    }
}

/// The headers that name the trace of a request of this task. `None` if it belongs to no trace.
pub(crate) fn headers() -> Option<TraceHeaders> {
    let told = |belongs: &Belongs| TraceHeaders {
        parent: belongs.span.traceparent(),
        state: belongs
            .state
            .as_ref()
            .map(|state| state.as_str().to_owned()),
    };
    REQUEST.try_with(told).ok()
}

/// Returns work that another task will run, whose requests belong to the present span.
pub(crate) fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> + use<F> {
    match REQUEST.try_with(Belongs::clone) {
        Ok(belongs) => Either::Left(REQUEST.scope(belongs, work)),
        Err(_) => Either::Right(work),
    }
}

/// A name as an attribute, cut.
pub(crate) fn name(text: &str) -> Value {
    Value::from(vmhost_core::cut(text, LONGEST_NAME))
}

/// The attributes that name an object.
pub(crate) fn object(kind: &Gvk, object: &ObjectName) -> Vec<(&'static str, Value)> {
    let mut attributes = vec![
        ("vmhost.object.kind", name(&kind.to_string())),
        ("vmhost.object.name", name(object.name())),
    ];
    if let Some(namespace) = object.namespace() {
        attributes.push(("k8s.namespace.name", name(namespace)));
    }
    attributes
}
