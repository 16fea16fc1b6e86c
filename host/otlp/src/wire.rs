//! The messages of OTLP that this crate writes, and how spans become one of them.
//!
//! The field numbers are those of `opentelemetry/proto/trace/v1/trace.proto` and its neighbours; a
//! test compares them with bytes that were encoded by hand. This module must not know how they are
//! sent.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use prost::Message;

use crate::span::{Kind, Span, Value};

/// The name under which all spans are exported.
const SCOPE: &str = "vmhost";

/// Bits of `flags`: the trace is sampled; it is known whether the parent is of another process; it
/// is.
const SAMPLED: u32 = 1;
const KNOWS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// The body of an export. Its clocks are read once, so that the spans of a batch keep their
/// distances.
pub(crate) fn body(resource: &[(String, String)], spans: &[Span]) -> Vec<u8> {
    let clocks = Clocks {
        instant: Instant::now(),
        wall: SystemTime::now(),
    };
    request(resource, spans, &clocks).encode_to_vec()
}

/// Returns how many spans the collector rejected in an answer of success (OTLP's partial success),
/// and why. Returns `None` if it took all of them.
pub(crate) fn rejected(answer: &[u8]) -> Option<(usize, String)> {
    let partial = Answer::decode(answer).ok()?.partial_success?;
    let count = usize::try_from(partial.rejected_spans).ok()?;
    (count > 0).then_some((count, partial.error_message))
}

/// The two clocks, read at one time.
struct Clocks {
    instant: Instant,
    wall: SystemTime,
}

impl Clocks {
    /// Nanoseconds since 1970.
    fn nanos(&self, at: Instant) -> u64 {
        let wall = match at.checked_duration_since(self.instant) {
            Some(later) => self.wall.checked_add(later),
            None => self.wall.checked_sub(self.instant.duration_since(at)),
        };
        let since = wall.and_then(|wall| wall.duration_since(UNIX_EPOCH).ok());
        u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
    }
}

fn request(resource: &[(String, String)], spans: &[Span], clocks: &Clocks) -> Export {
    let attributes = resource
        .iter()
        .map(|(key, value)| pair(key, AnyValue::text(value.clone())));
    Export {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: attributes.collect(),
            }),
            scope_spans: vec![ScopeSpans {
                scope: Some(Scope {
                    name: SCOPE.to_owned(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                }),
                spans: spans.iter().map(|span| one(span, clocks)).collect(),
            }],
        }],
    }
}

fn one(span: &Span, clocks: &Clocks) -> SpanMessage {
    let attributes = span
        .attributes
        .iter()
        .map(|(key, value)| pair(key, AnyValue::of(value)));
    let parent = span.parent.map(|parent| parent.number().to_be_bytes());
    SpanMessage {
        trace_id: span.context.trace.number().to_be_bytes().to_vec(),
        span_id: span.context.span.number().to_be_bytes().to_vec(),
        trace_state: span
            .state
            .as_ref()
            .map(|state| state.as_str().to_owned())
            .unwrap_or_default(),
        parent_span_id: parent.map(|bytes| bytes.to_vec()).unwrap_or_default(),
        name: span.name.clone().into_owned(),
        kind: match span.kind {
            Kind::Internal => 1,
            Kind::Server => 2,
            Kind::Client => 3,
        },
        start_time_unix_nano: clocks.nanos(span.began),
        end_time_unix_nano: clocks.nanos(span.ended),
        attributes: attributes.collect(),
        status: span.error.as_ref().map(|why| StatusMessage {
            message: why.clone().into_owned(),
            // STATUS_CODE_ERROR.
            code: 2,
        }),
        flags: match (span.kind, span.parent) {
            (Kind::Server, Some(_)) => SAMPLED | KNOWS_REMOTE | IS_REMOTE,
            _ => SAMPLED | KNOWS_REMOTE,
        },
    }
}

fn pair(key: &str, value: AnyValue) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(value),
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct Export {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<SpanMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SpanMessage {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<StatusMessage>,
    #[prost(fixed32, tag = "16")]
    flags: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct StatusMessage {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Answer {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_spans: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// The types of values that attributes have here. The specification has a `oneof`: exactly one is
/// set.
#[derive(Clone, PartialEq, prost::Message)]
struct AnyValue {
    #[prost(string, optional, tag = "1")]
    string_value: Option<String>,
    #[prost(bool, optional, tag = "2")]
    bool_value: Option<bool>,
    #[prost(int64, optional, tag = "3")]
    int_value: Option<i64>,
}

impl AnyValue {
    fn text(text: String) -> Self {
        Self {
            string_value: Some(text),
            ..Self::default()
        }
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Text(text) => Self::text(text.clone()),
            Value::Number(number) => Self {
                int_value: Some(*number),
                ..Self::default()
            },
            Value::Flag(flag) => Self {
                bool_value: Some(*flag),
                ..Self::default()
            },
        }
    }
}

#[cfg(test)]
mod tests;
