//! An answer, and what of it is the same each time.
//!
//! Must not know requests.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

/// An answer of a server.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub code: u16,
    /// The `Content-Type`.
    pub media: String,
    /// The `Warning` headers, sorted.
    pub warnings: Vec<String>,
    /// Whether it has a `Retry-After`.
    pub waits: bool,
    /// The body as JSON, or as a text.
    pub body: Value,
}

/// What a null means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// As much as an absent field: a Go client cannot tell them apart.
    Nothing,
    /// A value.
    Kept,
}

impl Answer {
    /// Returns a part of the metadata as a text; empty if there is none.
    pub fn meta(&self, field: &str) -> &str {
        self.body["metadata"][field].as_str().unwrap_or_default()
    }

    /// Returns what has to be the same for both servers: the code, the headers, and the body
    /// without what a server makes up. `worded`: the text of a refusal counts, too.
    pub fn comparable(&self, worded: bool, nulls: Nulls) -> Value {
        let mut seen = json!({ "code": self.code, "type": self.media });
        if !self.warnings.is_empty() {
            seen["warnings"] = json!(self.warnings);
        }
        if self.waits {
            seen["waits"] = json!(true);
        }
        let failed = self.body["kind"] == "Status" && self.body["status"] == "Failure";
        seen["body"] = match failed {
            true => refusal(&self.body, worded, nulls),
            false => object(&self.body, nulls),
        };
        seen
    }
}

/// Returns a refusal with its causes in an order, and without what only its server knows. Without
/// its words, a cause is its field and its reason.
fn refusal(status: &Value, worded: bool, nulls: Nulls) -> Value {
    let mut seen = scrubbed(status, nulls);
    if let Some(Value::String(message)) = seen.get_mut("message") {
        *message = without_versions(&without_place(message));
    }
    let causes = seen.pointer("/details/causes").and_then(Value::as_array);
    let mut causes: Vec<Value> = causes.cloned().unwrap_or_default();
    if !worded {
        if let Some(status) = seen.as_object_mut() {
            status.remove("message");
        }
        for cause in causes.iter_mut().filter_map(Value::as_object_mut) {
            cause.remove("message");
        }
    }
    for cause in &mut causes {
        if let Some(Value::String(message)) = cause.get_mut("message") {
            *message = without_versions(&without_place(message));
        }
    }
    causes.sort_by_cached_key(Value::to_string);
    // A field that breaks two rules of one kind is told once by one server, twice by the other.
    causes.dedup();
    if let Some(details) = seen.get_mut("details").and_then(Value::as_object_mut) {
        details.remove("causes");
        if !causes.is_empty() {
            details.insert("causes".to_owned(), Value::Array(causes));
        }
    }
    seen
}

/// Returns an object, or a list of them, without what a server makes up.
fn object(body: &Value, nulls: Nulls) -> Value {
    let mut seen = scrubbed(body, nulls);
    cleaned(&mut seen);
    let items = seen.get_mut("items").and_then(Value::as_array_mut);
    items.into_iter().flatten().for_each(cleaned);
    let rows = seen.get_mut("rows").and_then(Value::as_array_mut);
    for row in rows.into_iter().flatten() {
        if let Some(object) = row.get_mut("object") {
            cleaned(object);
        }
        let cells = row.get_mut("cells").and_then(Value::as_array_mut);
        for cell in cells.into_iter().flatten() {
            if cell.as_str().is_some_and(is_age) {
                *cell = json!("AGE");
            } else if cell
                .as_str()
                .is_some_and(|text| text.parse::<IpAddr>().is_ok())
            {
                *cell = json!("ADDRESS");
            }
        }
    }
    seen
}

/// Parts of the real server that write conditions of a kind whenever they get to it: their names as
/// managers, and the version of the kind.
const CONTROLLERS: [(&str, &str); 2] = [
    (
        "api-priority-and-fairness-config-consumer-v1",
        "flowcontrol.apiserver.k8s.io/v1",
    ),
    ("kube-apiserver", "apiregistration.k8s.io/v1"),
];

/// Removes versions and times, addresses, and conditions that controllers of the real server set,
/// with their ownership.
fn cleaned(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["uid", "resourceVersion", "creationTimestamp"] {
            metadata.remove(field);
        }
        if let Some(Value::Array(owners)) = metadata.get_mut("managedFields") {
            for owner in owners.iter_mut().filter_map(Value::as_object_mut) {
                owner.remove("time");
            }
            owners.retain(|owner| {
                let by = |(name, version): &(&str, &str)| {
                    owner["manager"] == *name && owner["apiVersion"] == *version
                };
                owner["subresource"] != "status" || !CONTROLLERS.iter().any(by)
            });
            // Entries are in the order of their times.
            owners.sort_by_cached_key(|owner| {
                ["operation", "manager", "subresource", "apiVersion"]
                    .map(|name| owner[name].to_string())
            });
        }
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("lastPhaseTransitionTime");
        if status.get("conditions").is_some_and(from_controllers) {
            status.remove("conditions");
        }
    }
    let spec = object.get_mut("spec").and_then(Value::as_object_mut);
    if let Some(spec) = spec {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            port.remove("nodePort");
        }
    }
}

/// Returns whether conditions have times: only controllers write these.
fn from_controllers(conditions: &Value) -> bool {
    let mut all = conditions.as_array().into_iter().flatten();
    all.any(|condition| condition.get("lastTransitionTime").is_some())
}

fn scrubbed(value: &Value, nulls: Nulls) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map
                .iter()
                .filter(|(_, value)| nulls == Nulls::Kept || !value.is_null());
            let kept = kept.map(|(name, value)| (name.clone(), scrubbed(value, nulls)));
            Value::Object(kept.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(|item| scrubbed(item, nulls)).collect(),
        Value::String(text) if is_time(text) => json!("TIME"),
        Value::String(text) => json!(without_uids(text)),
        other => other.clone(),
    }
}

/// Returns a text without the line of Go in which a real server makes its scheme.
fn without_place(text: &str) -> String {
    match text.split_once(" in scheme \"") {
        Some((before, after)) => {
            let rest = after.split_once('"').map_or("", |(_, rest)| rest);
            format!("{before}{rest}")
        }
        None => text.to_owned(),
    }
}

/// Returns a text without the versions of stored objects, which each server counts for itself.
fn without_versions(text: &str) -> String {
    let mut seen = text.to_owned();
    for before in [
        "the ResourceVersion in the precondition (",
        "the ResourceVersion in record (",
        "ResourceVersion in precondition: ",
        "ResourceVersion in object meta: ",
    ] {
        if let Some((start, rest)) = seen.split_once(before) {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            seen = format!("{start}{before}VERSION{rest}");
        }
    }
    seen
}

/// Returns whether a text is a time in UTC.
fn is_time(text: &str) -> bool {
    let date = text.get(..11).unwrap_or_default();
    let is_date = date.chars().enumerate().all(|(at, c)| match at {
        4 | 7 => c == '-',
        10 => c == 'T',
        _ => c.is_ascii_digit(),
    });
    is_date && text.len() >= 20 && text.ends_with('Z')
}

/// Returns whether a cell of a table tells for how long an object has existed, such as `5m3s`.
fn is_age(text: &str) -> bool {
    let units = text.split_inclusive(['s', 'm', 'h', 'd', 'y']);
    let is_part = |part: &str| {
        let number = part.trim_end_matches(|c: char| c.is_ascii_lowercase());
        number.len() + 1 == part.len()
            && !number.is_empty()
            && number.chars().all(|c| c.is_ascii_digit())
    };
    !text.is_empty() && units.into_iter().all(is_part)
}

fn without_uids(text: &str) -> String {
    let is_uid = |text: &str| {
        text.char_indices().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        })
    };
    let mut seen = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let uid = rest.split_at_checked(36).filter(|(start, _)| is_uid(start));
        match uid {
            Some((_, after)) => {
                seen.push_str("UID");
                rest = after;
            }
            None => {
                seen.push(first);
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_makes_up_is_left_out() {
        let object = json!({
            "metadata": {
                "name": "a", "uid": "x", "resourceVersion": "7",
                "labels": { "of": "123e4567-e89b-12d3-a456-426614174000!" },
                "managedFields": [
                    { "manager": "two", "operation": "Apply", "time": "2026-11-21T04:00:00Z" },
                    { "manager": "one", "operation": "Apply" },
                    {
                        "manager": "kube-apiserver", "operation": "Update", "subresource": "status",
                        "apiVersion": "apiregistration.k8s.io/v1",
                    },
                ],
            },
            "spec": { "at": "2026-11-21T04:00:00Z", "none": null },
        });
        let answer = Answer {
            code: 200,
            media: "application/json".to_owned(),
            warnings: Vec::new(),
            waits: false,
            body: object,
        };
        let seen = answer.comparable(true, Nulls::Nothing);
        assert_eq!(
            seen["body"],
            json!({
                "metadata": {
                    "name": "a", "labels": { "of": "UID!" },
                    "managedFields": [
                        { "manager": "one", "operation": "Apply" },
                        { "manager": "two", "operation": "Apply" },
                    ],
                },
                "spec": { "at": "TIME" },
            })
        );
        assert_eq!(
            answer.comparable(true, Nulls::Kept)["body"]["spec"]["none"],
            Value::Null
        );
    }

    #[test]
    fn a_refusal_counts_with_or_without_its_words() {
        let status = |message: &str| {
            let causes = json!([
                { "field": "b", "message": message }, { "field": "a" }, { "field": "a" },
            ]);
            json!({
                "kind": "Status", "status": "Failure", "reason": "Invalid", "message": message,
                "details": { "causes": causes },
            })
        };
        let one = refusal(&status("x"), false, Nulls::Nothing);
        assert_eq!(one, refusal(&status("y"), false, Nulls::Nothing));
        assert_eq!(
            one["details"]["causes"],
            json!([{ "field": "a" }, { "field": "b" }])
        );
        let worded = |text: &str| refusal(&status(text), true, Nulls::Nothing);
        assert_ne!(worded("x"), worded("y"));
        let stale = |asked: u32, live: u32| {
            worded(&format!(
                "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({live}). It"
            ))
        };
        assert_eq!(stale(1, 5), stale(1, 77));
        let unknown = "no kind \"A\" is registered for version \"b/v9\"";
        let placed = format!("{unknown} in scheme \"pkg/runtime/scheme.go:111\"");
        assert_eq!(worded(unknown), worded(&placed));
        assert!(is_age("5s") && is_age("12m") && is_age("5m3s"));
        assert!(!is_age("s") && !is_age("5") && !is_age(""));
    }
}
