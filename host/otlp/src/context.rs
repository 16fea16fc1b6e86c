//! The W3C trace context: the numbers of a trace and of a span, and their text. Plain data.

use std::fmt;

/// The number of a trace; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(u128);

/// The number of a span within its trace; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(u64);

/// One span of one trace that is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Context {
    /// The trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
}

/// The span of another process that a trace goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    pub(crate) trace: TraceId,
    pub(crate) span: SpanId,
    /// Whether the other process exports the trace.
    pub(crate) sampled: bool,
}

impl TraceId {
    pub(crate) fn random() -> Self {
        Self(fastrand::u128(1..))
    }

    #[cfg(test)]
    pub(crate) fn of(number: u128) -> Self {
        Self(number)
    }

    pub(crate) fn number(self) -> u128 {
        self.0
    }
}

impl SpanId {
    fn random() -> Self {
        Self(fastrand::u64(1..))
    }

    #[cfg(test)]
    pub(crate) fn of(number: u64) -> Self {
        Self(number)
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

impl Context {
    /// The first span of this trace.
    pub(crate) fn root(trace: TraceId) -> Self {
        Self {
            trace,
            span: SpanId::random(),
        }
    }

    /// Another span of the same trace.
    #[must_use]
    pub fn child(self) -> Self {
        Self::root(self.trace)
    }

    /// The value of the header `traceparent`, for a server that takes part in the trace. The last
    /// two digits say that the trace is sampled.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.trace, self.span)
    }
}

impl Parent {
    /// Reads the header `traceparent`. Returns `None` if it is not one: as W3C says, the trace then
    /// begins anew.
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.split('-');
        let version = hexadecimal(parts.next()?, 2)?;
        let trace = hexadecimal(parts.next()?, 32)?;
        let span = u64::try_from(hexadecimal(parts.next()?, 16)?).ok()?;
        let flags = hexadecimal(parts.next()?, 2)?;
        // A later version may have more parts; the version 255 is forbidden.
        let is_sound = version != 0xff && (version != 0 || parts.next().is_none());
        (is_sound && trace != 0 && span != 0).then_some(Self {
            trace: TraceId(trace),
            span: SpanId(span),
            sampled: flags & 1 == 1,
        })
    }
}

/// Reads a number of this many digits, which W3C wants in lower case.
fn hexadecimal(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != digits || !text.bytes().all(is_digit) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

/// Formats the number as W3C does: 32 hexadecimal digits.
impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Formats the number as W3C does: 16 hexadecimal digits.
impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_w3c_s_form() {
        let context = Context {
            trace: TraceId::of(0x4bf9_2f35),
            span: SpanId::of(0xf067),
        };
        assert_eq!(
            context.traceparent(),
            "00-0000000000000000000000004bf92f35-000000000000f067-01"
        );
    }

    #[test]
    fn the_header_of_another_process_is_read() {
        let own = Context::root(TraceId::random());
        let parent = Parent::parse(&own.traceparent()).unwrap();
        assert_eq!((parent.trace, parent.span), (own.trace, own.span));
        assert!(parent.sampled);
        let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let sampled = |header: String| Parent::parse(&header).map(|parent| parent.sampled);
        assert_eq!(sampled(format!("00-{trace}-{span}-00")), Some(false));
        // Other flags have no meaning here, and later versions may say more.
        assert_eq!(sampled(format!("00-{trace}-{span}-03")), Some(true));
        assert_eq!(sampled(format!("01-{trace}-{span}-01-more")), Some(true));
        for wrong in [
            String::new(),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-01-more"),
            format!("ff-{trace}-{span}-01"),
            format!("00-{trace}-{span}-1"),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{trace}-+0f067aa0ba902b7-01"),
            format!("00-{:032x}-{span}-01", 0),
            format!("00-{trace}-{:016x}-01", 0),
        ] {
            assert_eq!(Parent::parse(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_child_is_another_span_of_the_same_trace() {
        let root = Context::root(TraceId::random());
        let child = root.child();
        assert!(child.trace == root.trace && child.span != root.span);
        assert_ne!(TraceId::random(), TraceId::random());
    }
}
