//! How a review came in: its times, and the trace that it belongs to.
//!
//! This module must not know what is asked, nor how traces are exported.

use std::time::Instant;

use http::HeaderMap;
use vmhost_core::{TRACEPARENT, TRACESTATE};

/// How a review came in.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When the head of its request was there.
    pub began: Instant,
    /// Until when it is answered.
    pub deadline: Instant,
    /// The header `traceparent`, as it came.
    pub traceparent: Option<String>,
    /// The headers `tracestate`, as they came: what other systems noted about that trace.
    pub tracestate: Option<String>,
}

impl Arrival {
    /// A review that began at this time, with these headers.
    pub(crate) fn new(began: Instant, deadline: Instant, headers: &HeaderMap) -> Self {
        let mut given = headers.get_all(TRACEPARENT).iter();
        // Two of them name no trace.
        let only = match (given.next(), given.next()) {
            (Some(only), None) => only.to_str().ok(),
            _ => None,
        };
        Self {
            began,
            deadline,
            traceparent: only.map(str::to_owned),
            tracestate: joined(headers),
        }
    }
}

/// The values of all headers `tracestate`, which W3C joins as one list.
fn joined(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(TRACESTATE).iter();
    let values: Result<Vec<&str>, _> = values.map(|value| value.to_str()).collect();
    let values = values.ok().filter(|values| !values.is_empty())?;
    Some(values.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_traceparent_counts() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(TRACEPARENT, value.parse().unwrap());
            }
            let now = Instant::now();
            Arrival::new(now, now, &headers).traceparent
        };
        assert_eq!(of(&["00-a"]).as_deref(), Some("00-a"));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["00-a", "00-b"]), None);
    }

    #[test]
    fn all_notes_about_a_trace_are_one_list() {
        let mut headers = HeaderMap::new();
        let now = Instant::now();
        assert_eq!(Arrival::new(now, now, &headers).tracestate, None);
        for value in ["a=1,b=2", "c=3"] {
            headers.append(TRACESTATE, value.parse().unwrap());
        }
        let state = Arrival::new(now, now, &headers).tracestate;
        assert_eq!(state.as_deref(), Some("a=1,b=2,c=3"));
    }
}
