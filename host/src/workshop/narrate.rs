//! Prints changes of objects while `vmhost dev` runs: `VirtualMachine default/public-wx
//! spec.status: creating -> complete`.
//!
//! It watches like any client, independently of the controllers. This module must not know plugins.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use serde_json::Value;
use vmhost_cluster::{Informers, Notice, NoticeCause, Subscriber, Subscription, WatchSpec};
use vmhost_core::{Gvk, ObjectName};

/// Prints changes of one kind as long as it lives.
pub(crate) struct Narration {
    _subscription: Subscription,
}

struct Narrator {
    kind: String,
    known: Mutex<HashMap<ObjectName, Leaves>>,
    say: Box<dyn Fn(String) + Send + Sync>,
}

/// The values of an object's `spec`, `status`, labels and annotations, by path.
type Leaves = BTreeMap<String, String>;

/// Maximum length of a shown value, in characters.
const VALUE: usize = 80;

/// The keyed hash for hidden values, so that nobody can find a value by guessing.
static HIDDEN: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Starts printing changes of the objects of a kind.
pub(crate) fn narrate(
    informers: &Informers,
    kind: &Gvk,
    say: impl Fn(String) + Send + Sync + 'static,
) -> Narration {
    let narrator = Arc::new(Narrator {
        kind: kind.kind.clone(),
        known: Mutex::default(),
        say: Box::new(say),
    });
    let subscription = informers.subscribe(WatchSpec::of(kind.clone()), Some(narrator));
    Narration {
        _subscription: subscription,
    }
}

impl Subscriber for Narrator {
    fn notice(&self, notice: Notice<'_>) {
        let mut known = self.known.lock();
        let name = notice.name;
        if notice.cause == NoticeCause::Deleted {
            known.remove(name);
            (self.say)(format!("{} {name} deleted", self.kind));
            return;
        }
        let Some(object) = notice.new else {
            return;
        };
        let Ok(value) = serde_json::from_str::<Value>(&object.text) else {
            return;
        };
        let now = leaves(&value);
        let changes = match known.get(name) {
            Some(before) => changes(before, &now),
            None => appeared(&now),
        };
        known.insert(name.clone(), now);
        if !changes.is_empty() {
            (self.say)(format!("{} {name} {}", self.kind, changes.join(", ")));
        }
    }
}

fn appeared(now: &Leaves) -> Vec<String> {
    let status = now
        .iter()
        .find(|(path, _)| path.ends_with("status") || path.ends_with("phase"));
    vec![status.map_or_else(
        || "created".to_owned(),
        |(path, value)| format!("created, {path}: {value}"),
    )]
}

fn changes(before: &Leaves, now: &Leaves) -> Vec<String> {
    let mut changes = Vec::new();
    for (path, value) in now {
        match before.get(path) {
            Some(old) if old != value => changes.push(format!("{path}: {old} -> {value}")),
            Some(_) => {}
            None => changes.push(format!("{path}: {value}")),
        }
    }
    changes.extend(
        before
            .keys()
            .filter(|path| !now.contains_key(*path))
            .map(|path| format!("{path}: removed")),
    );
    changes
}

fn leaves(object: &Value) -> Leaves {
    let mut found = Leaves::new();
    // `data` is left out, since it may be a Secret's.
    for part in ["spec", "status"] {
        if let Some(value) = object.get(part) {
            collect(part.to_owned(), value, &mut found);
        }
    }
    for part in ["labels", "annotations"] {
        if let Some(value) = object
            .get("metadata")
            .and_then(|metadata| metadata.get(part))
        {
            collect(format!("metadata.{part}"), value, &mut found);
        }
    }
    found
}

/// Returns whether a field of this name may hold a secret.
fn is_secret(path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or_default().to_lowercase();
    [
        "password",
        "passwd",
        "token",
        "secretkey",
        "apikey",
        "privatekey",
    ]
    .iter()
    .any(|secret| name.contains(secret))
}

fn collect(path: String, value: &Value, found: &mut Leaves) {
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, value)| collect(format!("{path}.{name}"), value, found)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, value)| collect(format!("{path}[{index}]"), value, found)),
        Value::String(text) if is_secret(&path) => {
            // The hash shows that the value has changed, but not the value.
            let digest = HIDDEN.hash_one(text);
            found.insert(path, format!("(hidden {:04x})", digest as u16));
        }
        Value::String(text) => {
            found.insert(path, text.chars().take(VALUE).collect());
        }
        other => {
            found.insert(path, other.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_is_said_as_from_and_to() {
        let before = leaves(&json!({"spec": {"status": "creating", "disk": 1, "gone": true}}));
        let now = leaves(&json!({"spec": {"status": "complete", "disk": 1, "list": [{"a": 1}]}}));
        assert_eq!(
            changes(&before, &now),
            [
                "spec.list[0].a: 1",
                "spec.status: creating -> complete",
                "spec.gone: removed"
            ]
        );
        assert_eq!(appeared(&before), ["created, spec.status: creating"]);
        let before = leaves(&json!({"spec": {"password": "hunter2", "dbToken": "a"}}));
        let now = leaves(&json!({"spec": {"password": "hunter3", "dbToken": "a"}}));
        let said = changes(&before, &now);
        assert!(said.len() == 1 && !said[0].contains("hunter"), "{said:?}");
    }
}
