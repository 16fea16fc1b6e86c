//! A span: one step of a trace, with its times. Plain data.

use std::borrow::Cow;
use std::time::Instant;

use crate::context::{Context, SpanId};
use crate::state::TraceState;

/// One step of a trace.
#[derive(Clone, Debug)]
pub struct Span {
    /// The trace and the span's own number.
    pub context: Context,
    /// The span that it is a part of. `None` for the first span of a trace. That of
    /// [`Kind::Server`] is a span of another process.
    pub parent: Option<SpanId>,
    /// What other systems noted about the trace. `None` until it ends, when all its spans get it.
    pub state: Option<TraceState>,
    /// What is done, with few different values: numbers and names of objects are attributes.
    pub name: Cow<'static, str>,
    /// Whether another process takes part.
    pub kind: Kind,
    /// When it began.
    pub began: Instant,
    /// When it ended.
    pub ended: Instant,
    /// What else is known.
    pub attributes: Vec<(&'static str, Value)>,
    /// Why it failed, in a few words. `None` if it did not.
    pub error: Option<Cow<'static, str>>,
}

/// Whether another process takes part in a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No.
    Internal,
    /// Another process asks this one.
    Server,
    /// A server that this process asks.
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
    /// Yes or no.
    Flag(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

/// A number that is too large becomes the largest.
impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}
