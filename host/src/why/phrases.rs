//! The words for parts of a turn: causes, fields, effects, times. `vmhost why` and `vmhost turns`
//! use the same words. They may contain control characters, which the code that prints them
//! removes. This module must not know how a line is laid out.

use serde_json::Value;
use vmhost_core::cut;
use vmhost_runtime::journal::story::{Digests, Effect, Field, Http, Read, Turn, Woken};

/// The most bytes of a field's value that are shown.
const VALUE: usize = 60;

/// Returns `VirtualMachine` for `VirtualMachine.v1.cloud.waibizi.com`.
pub(crate) fn short_kind(kind: &str) -> &str {
    kind.split('.').next().unwrap_or(kind)
}

/// Formats the turn's own object as other parts of the document do: `VirtualMachine default/x`.
pub(super) fn own_object(turn: &Turn) -> String {
    format!("{} {}", short_kind(&turn.kind), turn.key)
}

/// Returns the time of day of an RFC 3339 time, with milliseconds.
pub(crate) fn time_of_day(time: &str) -> &str {
    let (_, time) = time.split_once('T').unwrap_or(("", time));
    cut(time, "10:00:01.123".len()).trim_end_matches('Z')
}

/// Returns the day of an RFC 3339 time.
pub(crate) fn day(time: &str) -> &str {
    time.split_once('T').map_or("", |(day, _)| day)
}

/// Formats milliseconds: `42us`, `1.2ms`, `250ms`, `2.5s`.
pub(crate) fn duration(ms: f64) -> String {
    match ms {
        ms if ms < 0.1 => format!("{:.0}us", ms * 1000.0),
        ms if ms < 10.0 => format!("{ms:.1}ms"),
        ms if ms < 1000.0 => format!("{ms:.0}ms"),
        ms => format!("{:.1}s", ms / 1000.0),
    }
}

/// Formats what woke the key: `spec.replicas 2 -> 3 by kubectl-edit`.
pub(crate) fn cause(woken: &Woken, turn: &Turn) -> String {
    let object = woken.object.as_deref();
    let about = match object.filter(|object| *object != own_object(turn)) {
        Some(object) => format!("{object}: "),
        None => String::new(),
    };
    let (by, changed) = (by(woken), fields(&woken.fields, woken.field_count));
    let what = match (woken.cause.as_str(), changed.as_str()) {
        ("changed", "") => format!("a change{by}"),
        ("changed", changed) => format!("{changed}{by}"),
        ("created", "") => format!("creation{by}"),
        ("deleted", "") => format!("deletion{by}"),
        ("created" | "deleted", changed) => format!("{changed} ({}{by})", woken.cause),
        ("own-write", _) => format!("own write{}", version(woken)),
        ("first-list", _) => "the first list".to_owned(),
        ("relist", "") => "a relist".to_owned(),
        ("relist", changed) => format!("a relist: {changed}{by}"),
        ("rewound", _) => "versions of the API server that went back".to_owned(),
        ("mapped", _) => "map-changes".to_owned(),
        ("timer", _) => "its timer".to_owned(),
        ("swap", _) => format!("the swap to generation {}", turn.generation),
        ("canary", _) => format!("the canary gave it to generation {}", turn.generation),
        ("granted", _) => "a right that was granted".to_owned(),
        ("review", _) => asked(&turn.act).to_owned(),
        ("decision", _) if turn.attempt > 0 => format!("retry {}", turn.attempt),
        ("decision", _) => "the requeue of its last turn".to_owned(),
        (other, _) => other.to_owned(),
    };
    format!("{about}{what}")
}

/// Returns what a webhook was asked, and why it did not allow it, without the word for the result:
/// `CREATE of Pod.v1: 403 no tag`.
fn asked(act: &str) -> &str {
    let denied = act.strip_prefix("denied the ");
    denied.or(act.strip_prefix("broke: ")).unwrap_or(act)
}

/// Formats the digests of a turn that was too large to keep: `object 5f0c1a2b3c4d5e6f, 3 reads
/// 0c1a2b3c4d5e6f5f, 1 effect 1a2b3c4d5e6f5f0c`.
pub(super) fn digests(of: &Digests) -> String {
    let count = |count: u32, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let object = |name: &str, digest: &Option<String>| {
        let digest = digest.as_ref();
        digest.map(|digest| format!("{name} {digest}"))
    };
    let several = |number: u32, what: &str, digest: &str| {
        (number > 0).then(|| format!("{} {digest}", count(number, what)))
    };
    let known = [
        object("object", &of.object),
        object("previous", &of.previous),
        several(of.read_count, "read", &of.reads),
        several(of.effect_count, "effect", &of.effects),
    ];
    let known: Vec<String> = known.into_iter().flatten().collect();
    known.join(", ")
}

/// Formats a change that no turn has followed: `spec.replicas 2 -> 3 by kubectl-edit (version
/// 815)`.
pub(super) fn change(woken: &Woken) -> String {
    let changed = match fields(&woken.fields, woken.field_count) {
        none if none.is_empty() => woken.cause.clone(),
        changed => changed,
    };
    format!("{changed}{}{}", by(woken), version(woken))
}

fn by(woken: &Woken) -> String {
    let manager = woken.manager.as_deref();
    manager.map_or_else(String::new, |manager| format!(" by {manager}"))
}

fn version(woken: &Woken) -> String {
    let version = woken.version;
    version.map_or_else(String::new, |version| format!(" (version {version})"))
}

/// Formats the fields that changed, of which there are `count`:
/// `spec.a 1 -> 2, spec.b 3 -> 4 and 5 more`.
pub(super) fn fields(shown: &[Field], count: u64) -> String {
    let shown: Vec<String> = shown.iter().map(field).collect();
    let more = count.saturating_sub(shown.len() as u64);
    match (shown.is_empty(), more) {
        (_, 0) => shown.join(", "),
        (true, more) => format!("{more} fields"),
        (false, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Formats a field that changed: `spec.status "creating" -> "complete"`.
pub(crate) fn field(field: &Field) -> String {
    let path = &field.path;
    match (&field.old, &field.new) {
        (None, None) => path.clone(),
        (old, new) => format!("{path} {} -> {}", value(old.as_ref()), value(new.as_ref())),
    }
}

fn value(value: Option<&Value>) -> String {
    let Some(value) = value else {
        return "(none)".to_owned();
    };
    let text = value.to_string();
    match cut(&text, VALUE).len() {
        all if all == text.len() => text,
        some => format!("{}...", &text[..some]),
    }
}

/// Formats a read with its answer: `ConfigMap default/settings: missing`.
pub(super) fn read(read: &Read) -> String {
    let answer = match (&read.error, read.objects.as_slice()) {
        (Some(error), _) => format!("failed: {error}"),
        (None, []) if read.verb == "get" => "missing".to_owned(),
        (None, [object]) if read.verb == "get" => {
            match object
                .pointer("/metadata/resourceVersion")
                .and_then(Value::as_str)
            {
                Some(version) => format!("version {version}"),
                None => "found".to_owned(),
            }
        }
        (None, [_]) => "1 object".to_owned(),
        (None, objects) => format!("{} objects", objects.len()),
    };
    let live = if read.live {
        " (asked the API server)"
    } else {
        ""
    };
    format!("{}: {answer}{live}", read.object)
}

/// An HTTP request, with what came back.
pub(super) fn sent(sent: &Http) -> String {
    let answer = match (sent.status, &sent.error) {
        (Some(status), _) => status.to_string(),
        (None, Some(error)) => error.clone(),
        (None, None) => "no answer".to_owned(),
    };
    format!("{} {}: {answer}", sent.method, sent.url)
}

/// Returns which side reports the end of an effect (the server or the host), and the end in words.
pub(super) fn end(effect: &Effect) -> (&'static str, String) {
    let version = effect.version;
    let version = version.map_or_else(String::new, |version| format!(", version {version}"));
    let why = effect.message.as_deref();
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    let code = effect.code.unwrap_or_default();
    match effect.end.as_str() {
        "repeated" => (
            "host",
            "not sent, since an equal apply was carried out before".to_owned(),
        ),
        "not sent" => (
            "host",
            "not sent, since an earlier effect was refused".to_owned(),
        ),
        "sent" => ("host", format!("sent{why}")),
        "refused" if code == 0 => ("host", format!("not carried out{why}")),
        "refused" => ("server", format!("refused with {code}{why}")),
        "unanswered" => (
            "server",
            format!("gave no answer, so that it may have been carried out{why}"),
        ),
        end => ("server", format!("{end}{version}{why}")),
    }
}

/// Returns the policy's reason to retry or to give up, from `{"retry":"the disk is missing"}`.
pub(super) fn reason(next: &Value) -> Option<String> {
    let text = |name: &str| next.get(name).and_then(Value::as_str);
    text("retry")
        .map(|why| format!("asks for a retry: {why}"))
        .or_else(|| text("fail").map(|why| format!("gives up: {why}")))
}

/// Formats what the policy wants next, if the document does not say what the queue does.
pub(crate) fn wish(next: Option<&Value>) -> String {
    match next {
        Some(Value::String(word)) if word == "awaitChange" => "waits for a change".to_owned(),
        Some(Value::String(word)) => word.clone(),
        Some(other) => other.to_string(),
        None => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(time_of_day("2026-11-23T10:00:01.123456Z"), "10:00:01.123");
        assert_eq!(time_of_day("2026-11-23T10:00:01Z"), "10:00:01");
        assert_eq!(day("2026-11-23T10:00:01Z"), "2026-11-23");
        for (ms, text) in [
            (0.0042, "4us"),
            (0.2, "0.2ms"),
            (12.3, "12ms"),
            (2500.0, "2.5s"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }

    #[test]
    fn causes_are_told_in_words() {
        let turn = Turn {
            kind: "App.v1.example.com".into(),
            key: "a/x".into(),
            generation: 3,
            attempt: 2,
            ..Turn::default()
        };
        let woken = |cause: &str| Woken {
            cause: cause.into(),
            ..Woken::default()
        };
        let replicas = Woken {
            object: Some("App a/x".into()),
            fields: vec![Field {
                path: "spec.replicas".into(),
                old: Some(json!(2)),
                new: Some(json!(3)),
            }],
            field_count: 4,
            manager: Some("kubectl-edit".into()),
            ..woken("changed")
        };
        let other = Woken {
            object: Some("ConfigMap a/y".into()),
            manager: Some("helm".into()),
            ..woken("deleted")
        };
        for (woken, text) in [
            (replicas, "spec.replicas 2 -> 3 and 3 more by kubectl-edit"),
            (other, "ConfigMap a/y: deletion by helm"),
            (woken("swap"), "the swap to generation 3"),
            (woken("canary"), "the canary gave it to generation 3"),
            (woken("decision"), "retry 2"),
            (woken("of the future"), "of the future"),
        ] {
            assert_eq!(cause(&woken, &turn), text);
        }
    }

    #[test]
    fn long_values_are_cut() {
        let long = Field {
            path: "data".into(),
            old: None,
            new: Some(json!("x".repeat(1000))),
        };
        let text = field(&long);
        assert!(
            text.starts_with("data (none) -> \"xxx") && text.ends_with("x..."),
            "{text}"
        );
        assert!(text.len() < 100, "{text}");
    }
}
