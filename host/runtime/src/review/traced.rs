//! The spans of a review: the whole question, which is below the API server's span if that is
//! known, and the plugin's call. All functions do nothing for a review without a trace.
//!
//! No span shows what is asked about. This module must not know how an answer comes about.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use vmhost_core::ObjectName;
use vmhost_otlp::{Kind, Parent, Span, Tracer};
use vmhost_webhook::{Arrival, Unanswered};

use crate::observe::trace::{self, TurnTrace};

/// Begins the trace of a review, below the span that its request names.
pub(super) fn begin(tracer: Option<&Tracer>, arrival: &Arrival) -> Option<Arc<TurnTrace>> {
    let tracer = tracer?;
    let parent = arrival.traceparent.as_deref().and_then(Parent::parse);
    let parent = match &arrival.tracestate {
        Some(state) => parent.map(|parent| parent.with_state(state)),
        None => parent,
    };
    TurnTrace::below(tracer, parent)
}

/// Adds the span of the call of a plugin of this digest and generation.
pub(super) fn called(
    trace: Option<&Arc<TurnTrace>>,
    began: Instant,
    (digest, generation): (&str, u64),
    error: Option<&Unanswered>,
) {
    let Some(trace) = trace else {
        return;
    };
    trace.add(Span {
        context: trace.call(),
        parent: Some(trace.root().span),
        state: None,
        name: "call".into(),
        kind: Kind::Internal,
        began,
        ended: Instant::now(),
        attributes: vec![
            ("vmhost.plugin.digest", trace::name(digest)),
            ("vmhost.generation", generation.into()),
        ],
        error: error.map(|error| match error {
            Unanswered::TimedOut => "deadline".into(),
            _ => "failed".into(),
        }),
    });
}

/// Ends the trace of the review with this key, and exports it. The label is `PLUGIN/WEBHOOK` or
/// `PLUGIN/CONVERSION`; `result` is a word, and whether it is a failure.
pub(super) fn end(
    trace: Option<&TurnTrace>,
    (is_admission, label): (bool, &str),
    key: &ObjectName,
    arrival: &Arrival,
    (result, failed): (&'static str, bool),
) {
    let Some(trace) = trace else {
        return;
    };
    let verb = match is_admission {
        true => "admit",
        false => "convert",
    };
    let mut attributes = vec![
        ("vmhost.review.uid", trace::name(key.name())),
        ("vmhost.result", result.into()),
    ];
    if let Some(namespace) = key.namespace() {
        attributes.push(("k8s.namespace.name", trace::name(namespace)));
    }
    trace.finish(Span {
        context: trace.root(),
        parent: trace.above(),
        state: None,
        name: format!("{verb} {label}").into(),
        kind: Kind::Server,
        began: arrival.began,
        ended: Instant::now(),
        attributes,
        error: failed.then_some(Cow::Borrowed(result)),
    });
}
