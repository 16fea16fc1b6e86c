//! Which traces are exported (`OTEL_TRACES_SAMPLER`). The decision is made when a trace begins, or
//! when one of another process is continued. This module must not know what a span is about.

use crate::context::{Parent, TraceId};

/// Decides which traces are exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sampler {
    /// Of the traces that begin here.
    pub(crate) share: Share,
    /// Whether a trace that began elsewhere is exported here if, and only if, it is there.
    pub(crate) by_parent: bool,
}

/// A share of all traces. It depends on their numbers alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// All traces.
    All,
    /// No trace.
    Nothing,
    /// The traces whose number is below this bound.
    Below(u64),
}

impl Share {
    /// Takes this share of all traces, from 0 to 1. The arithmetic is that of the OpenTelemetry
    /// SDKs, so that programs with the same share take the same traces.
    pub(crate) fn ratio(share: f64) -> Self {
        if share >= 1.0 {
            return Self::All;
        }
        // In range: the share is below 1.
        Self::Below((share.max(0.0) * (1_u64 << 63) as f64) as u64)
    }

    fn takes(self, trace: TraceId) -> bool {
        match self {
            Self::All => true,
            Self::Nothing => false,
            // The lower half of the number.
            Self::Below(bound) => (trace.number() as u64) >> 1 < bound,
        }
    }
}

impl Sampler {
    /// Returns whether this takes no trace at all.
    pub(crate) fn is_off(self) -> bool {
        self.share == Share::Nothing && !self.by_parent
    }

    /// Returns whether this trace is exported.
    pub(crate) fn takes(self, trace: TraceId, parent: Option<Parent>) -> bool {
        match parent {
            Some(parent) if self.by_parent => parent.sampled,
            _ => self.share.takes(trace),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_traces_is_taken() {
        let traces: Vec<TraceId> = (0..10_000).map(|_| TraceId::random()).collect();
        let taken = |share: f64| {
            let share = Share::ratio(share);
            traces.iter().filter(|trace| share.takes(**trace)).count()
        };
        assert_eq!((taken(0.0), taken(1.0), taken(2.0)), (0, 10_000, 10_000));
        let quarter = taken(0.25);
        assert!((2_000..3_000).contains(&quarter), "{quarter}");
        assert!(Share::All.takes(TraceId::of(1)) && !Share::Nothing.takes(TraceId::of(1)));
    }

    #[test]
    fn a_trace_of_another_process_goes_on_as_it_began() {
        let of = |flags: &str| Parent::parse(&format!("00-{:032x}-{:016x}-{flags}", 1, 2));
        let (sampled, unsampled) = (of("01"), of("00"));
        assert!(sampled.is_some() && unsampled.is_some());
        for (share, by_parent, expected) in [
            (Share::All, true, [true, true, false]),
            (Share::Nothing, true, [false, true, false]),
            (Share::All, false, [true, true, true]),
            (Share::Nothing, false, [false, false, false]),
        ] {
            let sampler = Sampler { share, by_parent };
            let taken = [None, sampled, unsampled].map(|of| sampler.takes(TraceId::of(1), of));
            assert_eq!(taken, expected, "{sampler:?}");
            assert_eq!(sampler.is_off(), !expected.contains(&true));
        }
    }
}
