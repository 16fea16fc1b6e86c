//! The spans that are known only at the end of a turn: the whole turn, its wait and its call. This
//! module decides nothing.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use vmhost_core::{Next, ObjectName};
use vmhost_otlp::{Kind, Span, Value};
use vmhost_queue::Lane;

use crate::journal::record::{Act, Acts, AnswerEnd, Origin};
use crate::observe::metrics::controller::TurnResult;
use crate::observe::trace::{TurnTrace, name, object};

/// A turn that has ended.
pub(super) struct Ended<'a> {
    pub(super) origin: &'a Origin,
    pub(super) key: &'a ObjectName,
    /// When the key was taken.
    pub(super) began: Instant,
    /// How long it had waited.
    pub(super) wait: Duration,
    pub(super) lane: Lane,
    pub(super) attempt: u32,
    pub(super) deleting: bool,
    /// When the policy's call began, and how long it took.
    pub(super) call: Option<(Instant, Duration)>,
    pub(super) act: &'a Act,
    /// How the call broke, in one word.
    pub(super) broke: Option<&'static str>,
    pub(super) acts: &'a Acts,
    pub(super) result: TurnResult,
}

/// Adds the spans of the wait and the call, and exports the trace.
pub(super) fn end(trace: &TurnTrace, ended: &Ended<'_>) {
    let root = trace.root();
    let ready = ended.began.checked_sub(ended.wait).unwrap_or(ended.began);
    trace.add(Span {
        context: root.child(),
        parent: Some(root.span),
        state: None,
        name: "wait".into(),
        kind: Kind::Internal,
        began: ready,
        ended: ended.began,
        attributes: Vec::new(),
        error: None,
    });
    if let Some((began, took)) = ended.call {
        trace.add(Span {
            context: trace.call(),
            parent: Some(root.span),
            state: None,
            name: "call".into(),
            kind: Kind::Internal,
            began,
            ended: began + took,
            attributes: vec![("vmhost.plugin.digest", name(&ended.origin.digest))],
            error: broke(ended).map(Cow::Borrowed),
        });
    }
    trace.finish(Span {
        context: root,
        parent: trace.above(),
        state: None,
        name: format!("reconcile {}", ended.origin.controller).into(),
        kind: Kind::Internal,
        began: ready,
        ended: Instant::now(),
        attributes: attributes(ended),
        error: error(ended),
    });
}

fn attributes(ended: &Ended<'_>) -> Vec<(&'static str, Value)> {
    let mut attributes = object(&ended.origin.kind, ended.key);
    let lane = match ended.lane {
        Lane::Low => "low",
        Lane::High => "high",
    };
    attributes.extend([
        ("vmhost.controller", name(&ended.origin.controller)),
        ("vmhost.generation", ended.origin.generation.into()),
        ("vmhost.result", ended.result.as_str().into()),
        ("vmhost.attempt", ended.attempt.into()),
        ("vmhost.deleting", ended.deleting.into()),
        ("vmhost.lane", lane.into()),
        ("vmhost.effects", (ended.acts.effects.len() as u64).into()),
    ]);
    attributes
}

/// How the call broke, in one word.
fn broke(ended: &Ended<'_>) -> Option<&'static str> {
    match ended.act {
        // A full pool is not the plugin's fault.
        Act::Broke(_) => Some(ended.broke.unwrap_or("busy")),
        _ => None,
    }
}

/// Why the turn failed, without any text of a plugin or a server.
fn error(ended: &Ended<'_>) -> Option<Cow<'static, str>> {
    if !matches!(ended.result, TurnResult::Error | TurnResult::Terminal) {
        return None;
    }
    if let Some(word) = broke(ended) {
        return Some(Cow::Borrowed(word));
    }
    match ended.acts.answers.last().map(|last| &last.end) {
        Some(AnswerEnd::Refused(0, _) | AnswerEnd::Unanswered(_)) => {
            return Some(Cow::Borrowed("a write failed"));
        }
        Some(AnswerEnd::Refused(code, _)) => {
            return Some(format!("a write was refused: {code}").into());
        }
        _ => {}
    }
    Some(Cow::Borrowed(match ended.act {
        Act::Returned(Next::Retry(_)) => "the plugin retries",
        Act::Returned(Next::Fail(_)) => "the plugin failed",
        _ => "failed",
    }))
}
