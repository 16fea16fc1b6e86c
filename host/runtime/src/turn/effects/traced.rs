//! The spans of a turn's writes. All functions do nothing for a turn without a trace. This module
//! must not know what a refusal means.

use std::borrow::Cow;
use std::sync::Arc;

use vmhost_cluster::{Error, Written};
use vmhost_core::{Effect, ObjectKey};
use vmhost_otlp::Kind;

use crate::observe::trace::{Open, TurnTrace};

/// The trace of a turn, if it has one.
type Trace = Option<Arc<TurnTrace>>;

/// Begins the span of a write.
pub(super) fn begin(trace: &Trace, effect: &Effect, key: &ObjectKey) -> Option<Open> {
    let trace = trace.as_ref()?;
    // The kind is one of those that the plugin was granted.
    let name = format!("{} {}", effect.verb(), key.kind.kind);
    let mut open = trace.open(Kind::Client, name)?;
    open.about(&key.kind, &key.name);
    Some(open)
}

/// Ends the span of a write.
pub(super) fn end(span: Option<Open>, written: Result<&Written, &Error>) {
    let Some(mut span) = span else {
        return;
    };
    match written {
        Ok(written) => {
            if written.version > 0 {
                span.set("vmhost.object.version", written.version);
            }
            span.end(None);
        }
        Err(error) => {
            if let Some(code) = error.code() {
                span.set("http.response.status_code", code);
            }
            span.end(Some(word(error)));
        }
    }
}

/// Begins the span of the wait until the stores show the turn's writes.
pub(super) fn awaiting(trace: &Trace, wrote: bool) -> Option<Open> {
    let trace = trace.as_ref().filter(|_| wrote)?;
    trace.open(Kind::Internal, "await own writes")
}

/// Ends the span of that wait.
pub(super) fn awaited(span: Option<Open>, shown: bool) {
    if let Some(span) = span {
        span.end((!shown).then_some(Cow::Borrowed("timeout")));
    }
}

/// The error without any text of the server.
fn word(error: &Error) -> Cow<'static, str> {
    Cow::Borrowed(match error {
        Error::Refused(status) => return status.code.to_string().into(),
        Error::NotSent(_) => "not sent",
        Error::Network(_) => "connection broke",
        Error::Timeout(_) => "timeout",
        Error::TooLarge(_) => "too large",
        Error::Unreadable(_) => "unreadable answer",
    })
}
