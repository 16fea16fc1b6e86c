//! The words and numbers of the document: times, decisions, results, objects.
//!
//! This module must not know how a turn becomes a document.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::Value;
use vmhost_core::{Gvk, ListQuery, ObjectName, ReadError, Snapshot};
use vmhost_queue::{Decision, Lane};

use crate::journal::record::Act;

/// Formats a time: RFC 3339 with microseconds.
pub(super) fn time(at: SystemTime) -> String {
    Timestamp::try_from(at).map_or_else(|_| String::new(), |at| format!("{at:.6}"))
}

pub(super) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

pub(super) fn lane(lane: Lane) -> &'static str {
    match lane {
        Lane::Low => "low",
        Lane::High => "high",
    }
}

/// Formats how a turn went.
pub(super) fn act(act: &Act) -> String {
    match act {
        Act::Returned(_) => "returned".into(),
        Act::Broke(reason) => format!("broke: {reason}"),
        Act::AddedFinalizer => "added the finalizer".into(),
        Act::Left => "left to other finalizers".into(),
        Act::Paused(pause) => format!("paused for {pause:?}, since all calls of the plugin fail"),
        Act::Held(rest) => format!("held for {rest:?}, since its own turns keep waking the key"),
        // What follows the colon is hidden if it may be sensitive.
        Act::Denied { asked, reason } => format!("denied the {asked}: {reason}"),
    }
}

/// Returns what the policy wants next.
pub(super) fn next(act: &Act) -> Option<Value> {
    match act {
        Act::Returned(next) => serde_json::to_value(next).ok(),
        _ => None,
    }
}

/// Formats what the queue does with a key.
pub(super) fn decision(decision: Decision) -> String {
    match decision {
        Decision::Forget => "forget until something changes".into(),
        Decision::Now => "again now".into(),
        Decision::After(delay) => format!("again in {delay:?}"),
        Decision::RateLimited {
            at_least,
            not_before,
            anew,
        } => {
            let mut details = Vec::new();
            if !at_least.is_zero() {
                details.push(format!("at least {at_least:?}"));
            }
            if !not_before.is_zero() {
                details.push(format!("not before {not_before:?}"));
            }
            if anew {
                details.push("from the first step".into());
            }
            match details.is_empty() {
                true => "rate limited retry".into(),
                false => format!("rate limited retry ({})", details.join(", ")),
            }
        }
        Decision::Postpone(delay) if delay.is_zero() => "postponed".into(),
        Decision::Postpone(delay) => format!("postponed by {delay:?}"),
    }
}

/// Formats the name of an object: `VirtualMachine default/x`.
pub(super) fn object(kind: &Gvk, name: &ObjectName) -> String {
    format!("{} {name}", kind.kind)
}

/// Formats the objects of a list: `ConfigMap in default, labels app=x`.
pub(super) fn list(query: &ListQuery) -> String {
    let mut text = query.kind.kind.clone();
    if let Some(namespace) = &query.namespace {
        text += &format!(" in {namespace}");
    }
    if let Some(selector) = &query.label_selector {
        text += &format!(", labels {selector}");
    }
    if let Some(index) = &query.index {
        text += &format!(", index {}={}", index.name, index.value);
    }
    if let Some(owner) = &query.owner {
        text += &format!(", owner {owner}");
    }
    text
}

/// Formats why a read has no answer.
pub(super) fn unanswered(error: &ReadError) -> String {
    match error {
        ReadError::NotWatched(reason) => format!("not watched: {reason}"),
        ReadError::TooLarge(limit) => format!("larger than {limit} bytes"),
        ReadError::Invalid(reason) => format!("invalid query: {reason}"),
        ReadError::Unavailable(reason) => format!("unavailable: {reason}"),
    }
}

/// Returns the object as JSON. A text that is not JSON is left out, since it does not tell which of
/// its values are sensitive.
pub(super) fn json(object: &Snapshot) -> Value {
    serde_json::from_str(&object.text).unwrap_or_else(|_| "<not JSON>".into())
}

#[cfg(test)]
mod tests {
    use vmhost_core::IndexMatch;

    use super::*;

    #[test]
    fn a_time_has_microseconds() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_micros(1_769_860_800_000_001);
        assert_eq!(time(at), "2026-01-31T12:00:00.000001Z");
        assert_eq!(time(SystemTime::UNIX_EPOCH), "1970-01-01T00:00:00.000000Z");
    }

    #[test]
    fn a_decision_has_few_words() {
        let limited = Decision::RateLimited {
            at_least: Duration::from_secs(5),
            not_before: Duration::from_millis(1500),
            anew: true,
        };
        for (given, words) in [
            (Decision::Forget, "forget until something changes"),
            (Decision::Now, "again now"),
            (Decision::After(Duration::from_secs(5)), "again in 5s"),
            (Decision::RATE_LIMITED, "rate limited retry"),
            (
                limited,
                "rate limited retry (at least 5s, not before 1.5s, from the first step)",
            ),
            (Decision::Postpone(Duration::ZERO), "postponed"),
            (
                Decision::Postpone(Duration::from_millis(20)),
                "postponed by 20ms",
            ),
        ] {
            assert_eq!(decision(given), words);
        }
    }

    #[test]
    fn a_list_is_named_by_its_query() {
        let query = ListQuery {
            kind: Gvk::new("", "v1", "ConfigMap"),
            namespace: Some("default".into()),
            label_selector: Some("a=b".into()),
            index: Some(IndexMatch {
                name: "by".into(),
                value: "x".into(),
            }),
            owner: Some("u".into()),
            limit: 5,
            after: None,
        };
        assert_eq!(
            list(&query),
            "ConfigMap in default, labels a=b, index by=x, owner u"
        );
    }
}
