//! The API object of an event, within the API's limits. This module must not know how it is sent.

use std::sync::atomic::{AtomicU32, Ordering};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::record::{ObjectRef, RecordedEvent};

/// The namespace of events about cluster-scoped objects: the API server accepts no other.
const CLUSTER_SCOPED: &str = "default";
/// The API's limit for `note`, in bytes.
const NOTE_MAX: usize = 1024;
/// The limit for `reason`, `action` and `reportingInstance`.
const WORD_MAX: usize = 128;
/// The limit for the part of a qualified name after its slash.
const QUALIFIED_MAX: usize = 63;
/// The limit for an object's name, 253, minus a dot and 16 + 8 hexadecimal digits.
const NAME_MAX: usize = 253 - 25;

/// The namespace of an event.
pub(super) fn namespace(event: &RecordedEvent) -> &str {
    event.regarding.name.namespace().unwrap_or(CLUSTER_SCOPED)
}

/// Builds the name and the body of a new event.
pub(super) fn event(event: &RecordedEvent, instance: &str) -> (String, Value) {
    // Two events in one nanosecond, or after the clock was set back, still have different names.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let now = Timestamp::now();
    let about = &event.regarding.name;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!(
        "{}.{:x}{number:x}",
        cut(about.name(), NAME_MAX).trim_end_matches(['.', '-']),
        now.as_nanosecond() as u64
    );
    let mut body = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace(event)},
        "eventTime": micro_time(now),
        "type": event.kind.as_str(),
        "reason": cut(or(&event.reason, "Unknown"), WORD_MAX),
        "action": cut(or(&event.action, or(&event.reason, "Unknown")), WORD_MAX),
        "note": cut(&event.note, NOTE_MAX),
        "reportingController": qualified(&event.reporting_controller),
        "reportingInstance": instance,
        "regarding": reference(&event.regarding),
    });
    if let Some(related) = &event.related {
        body["related"] = reference(related);
    }
    (name, body)
}

/// Formats a time as `2026-11-21T04:15:18.000001Z`.
pub(super) fn micro_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Builds the instance name from host name and process id, because two hosts with the same name
/// must differ.
pub(super) fn instance() -> String {
    let name = std::env::var("HOSTNAME")
        .ok()
        .or_else(|| std::fs::read_to_string("/etc/hostname").ok())
        .unwrap_or_default();
    let name = name.trim();
    format!(
        "{}-{}",
        cut(or(name, "vmhost"), WORD_MAX - 11),
        std::process::id()
    )
}

/// Builds a qualified name: at most one slash, and at most 63 characters after it.
fn qualified(controller: &str) -> String {
    match controller.split_once('/') {
        Some((prefix, name)) => format!(
            "{prefix}/{}",
            ends(cut(&name.replace('/', "."), QUALIFIED_MAX))
        ),
        None => ends(cut(or(controller, "vmhost"), QUALIFIED_MAX)).to_owned(),
    }
}

fn ends(name: &str) -> &str {
    name.trim_end_matches(['.', '-', '_'])
}

fn reference(object: &ObjectRef) -> Value {
    let mut reference = json!({"apiVersion": object.kind.api_version(), "kind": object.kind.kind, "name": object.name.name()});
    let optional = [
        ("namespace", object.name.namespace().map(ToOwned::to_owned)),
        ("uid", object.uid.clone()),
        (
            "resourceVersion",
            object.version.map(|version| version.to_string()),
        ),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            reference[name] = Value::from(value);
        }
    }
    reference
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

/// Cuts a text to at most `max` bytes, at a character boundary.
fn cut(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_apis_limits_are_kept() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(qualified("vmhost/vm/main"), "vmhost/vm.main");
        assert_eq!(
            qualified(&format!("vmhost/{}-x/y", "a".repeat(62))),
            format!("vmhost/{}", "a".repeat(62))
        );
        assert_eq!(qualified(""), "vmhost");
        assert_eq!(
            micro_time("2026-11-21T04:15:18.0000019Z".parse().unwrap()),
            "2026-11-21T04:15:18.000001Z"
        );
        assert!(instance().len() <= WORD_MAX);
    }
}
