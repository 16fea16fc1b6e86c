//! Exports traces to an OpenTelemetry collector, by OTLP over HTTP with protobuf bodies.
//!
//! ```text
//! OTEL_* variables --settings--> Settings --> Tracer
//! traceparent, tracestate --Parent--> trace() --sampler--> Context --> the same, log lines
//! export(spans) --> queue, bounded --> batches --wire--> sender --POST--> collector
//! ```
//! It owns the meaning of the variables, the W3C trace context, the sampler, and the way of spans
//! to the collector. It must not know what a span is about.
//!
//! These never happen:
//! - a caller that waits for the collector: a full queue drops spans, which are counted
//! - a value of a header in an error or a log line

mod context;
mod gzip;
mod sampler;
mod sender;
mod settings;
mod span;
mod state;
mod tracer;
mod wire;

pub use context::{Context, Parent, SpanId, TraceId};
pub use sender::StartError;
pub use settings::{Settings, SettingsError};
pub use span::{Kind, Span, Value};
pub use state::TraceState;
pub use tracer::{Begun, SpanObserver, SpanResult, Tracer};
