//! The change that the writes of one version make to one object, in the form that is shown: without
//! sensitive values, and with placeholders for names, uids and times.
//!
//! This module must not know how changes are grouped or printed.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use vmhost_runtime::journal::shown::{self, Hide, Saw};
use vmhost_runtime::journal::story::Field;

use super::ids::Id;
use super::names::Names;
use super::stage::Wrote;
use super::world::Touched;

/// What happens to an object. Deletions come first, then creations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verb {
    Delete,
    Create,
    Patch,
}

/// A change of an object.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) id: Id,
    pub(super) verb: Verb,
    /// The fields that differ, as they are shown.
    pub(super) fields: Vec<Field>,
    /// The finalizers that a deleted object waits for.
    pub(super) waits_for: Vec<String>,
    /// What the server generated the name from.
    pub(super) generated: Option<String>,
}

impl Change {
    /// Returns a text that is the same for two runs if they change the same object in the same way.
    pub(super) fn identity(&self) -> String {
        let Id { group, kind, name } = &self.id;
        let name = match &self.generated {
            Some(from) => format!("{}/{from}*", name.namespace().unwrap_or_default()),
            None => name.to_string(),
        };
        let fields = serde_json::to_string(&self.fields).unwrap_or_default();
        let waits_for = self.waits_for.join(",");
        format!("{:?} {group}/{kind} {name} {waits_for} {fields}", self.verb)
    }
}

/// Returns what became of an object: no change, one change, or a deletion and the creation of
/// another object. `during` is the time in which the preview ran.
pub(super) fn changes(
    touched: &Touched<'_>,
    wrote: Option<&Wrote>,
    hide: &Hide,
    during: (Timestamp, Timestamp),
) -> Vec<Change> {
    let (before, after) = (touched.before.as_deref(), touched.after.as_deref());
    let deleted = || deletion(touched.id, after.filter(|after| is_deleting(after)));
    let whole = |before: Option<&Value>, after: &Value| {
        let fields = shown::fields(before, Some(after));
        let fields = as_shown(
            touched.id,
            fields,
            wrote,
            hide,
            &[before, Some(after)],
            during,
        );
        let verb = match before {
            Some(_) => Verb::Patch,
            None => Verb::Create,
        };
        let generated = text(after, "generateName").filter(|_| verb == Verb::Create);
        Change {
            id: touched.id.clone(),
            verb,
            fields,
            waits_for: Vec::new(),
            generated: generated.map(str::to_owned),
        }
    };
    match (before, after) {
        (None, None) => Vec::new(),
        (None, Some(after)) => vec![whole(None, after)],
        (Some(_), None) => vec![deleted()],
        (Some(before), Some(after)) if text(before, "uid") != text(after, "uid") => {
            vec![deletion(touched.id, None), whole(None, after)]
        }
        (Some(before), Some(after)) if is_deleting(after) && !is_deleting(before) => {
            vec![deleted()]
        }
        (Some(before), Some(after)) => {
            let change = whole(Some(before), after);
            Some(change)
                .filter(|change| !change.fields.is_empty())
                .into_iter()
                .collect()
        }
    }
}

fn deletion(id: &Id, left: Option<&Value>) -> Change {
    let finalizers = left.and_then(|left| left.pointer("/metadata/finalizers"));
    let finalizers = finalizers.and_then(Value::as_array).into_iter().flatten();
    let finalizers = finalizers.filter_map(Value::as_str).map(str::to_owned);
    Change {
        id: id.clone(),
        verb: Verb::Delete,
        fields: Vec::new(),
        waits_for: finalizers.collect(),
        generated: None,
    }
}

/// Hides sensitive values, and then puts placeholders in.
fn as_shown(
    id: &Id,
    mut fields: Vec<Field>,
    wrote: Option<&Wrote>,
    hide: &Hide,
    states: &[Option<&Value>],
    during: (Timestamp, Timestamp),
) -> Vec<Field> {
    let none = Saw::default();
    let saw = wrote.map_or(&none, |wrote| &wrote.saw);
    hide.change(saw, &id.to_string(), &mut fields, &mut []);
    let mut others: Vec<(String, &'static str)> = Vec::new();
    let states = || states.iter().copied().flatten();
    let uids = states().filter_map(|state| text(state, "uid"));
    others.extend(uids.map(|uid| (uid.to_owned(), "<uid>")));
    if let Some(wrote) = wrote {
        others.push((wrote.key.name().to_owned(), "<key>"));
        others.push((wrote.uid.clone(), "<key uid>"));
    }
    for owner in states().flat_map(owners) {
        for (name, mark) in [("uid", "<owner uid>"), ("name", "<owner>")] {
            let value = owner.get(name).and_then(Value::as_str);
            others.extend(value.map(|value| (value.to_owned(), mark)));
        }
    }
    let names = Names::new(id.name.name(), id.name.namespace(), others, during);
    let shown = fields.into_iter().map(|Field { path, old, new }| Field {
        old: old.map(|value| names.value(&path, &value)),
        new: new.map(|value| names.value(&path, &value)),
        path: names.path(&path),
    });
    shown.collect()
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    let owners = object.pointer("/metadata/ownerReferences");
    owners.and_then(Value::as_array).into_iter().flatten()
}

fn text<'o>(object: &'o Value, field: &str) -> Option<&'o str> {
    object.get("metadata")?.get(field)?.as_str()
}

fn is_deleting(object: &Value) -> bool {
    text(object, "deletionTimestamp").is_some()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use serde_json::json;
    use vmhost_core::ObjectName;

    use super::*;

    fn object(name: &str, more: Value) -> Value {
        let mut object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": "a", "uid": format!("uid-of-{name}"), "resourceVersion": "7" },
        });
        json_merge(&mut object, more);
        object
    }

    fn json_merge(into: &mut Value, more: Value) {
        match (into, more) {
            (Value::Object(into), Value::Object(more)) => {
                for (key, value) in more {
                    json_merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
            (into, more) => *into = more,
        }
    }

    fn made(name: &str, before: Option<Value>, after: Option<Value>) -> Vec<Change> {
        let id = Id {
            group: String::new(),
            kind: "ConfigMap".into(),
            name: ObjectName::new(Some("a"), name),
        };
        let touched = Touched {
            id: &id,
            before: before.map(Arc::new),
            after: after.map(Arc::new),
        };
        let wrote = Wrote {
            key: ObjectName::new(Some("a"), name.trim_end_matches("-child")),
            uid: format!("key-of-{name}"),
            saw: Saw::default(),
        };
        let hide = Hide::new(Vec::new(), HashMap::new());
        let now = Timestamp::now();
        changes(&touched, Some(&wrote), &hide, (now, now))
    }

    fn lines(changes: &[Change]) -> Vec<String> {
        let line = |change: &Change| {
            let fields = change.fields.iter().map(|field| {
                let side =
                    |value: &Option<Value>| value.as_ref().map_or("-".into(), Value::to_string);
                format!(" {} {} {}", field.path, side(&field.old), side(&field.new))
            });
            let fields: String = fields.collect();
            format!("{:?}{fields}{}", change.verb, change.waits_for.join(","))
        };
        changes.iter().map(line).collect()
    }

    #[test]
    fn the_same_change_of_two_objects_looks_the_same() {
        let change = |key: &str| {
            let name = format!("{key}-child");
            let owner = json!([{ "name": key, "uid": format!("key-of-{name}") }]);
            let more = json!({
                "metadata": { "ownerReferences": owner, "labels": { "app": key } },
                "data": { "self": name, "id": format!("uid-of-{name}") },
            });
            made(&name, None, Some(object(&name, more)))
        };
        let (one, two) = (lines(&change("one")), lines(&change("two")));
        assert_eq!(one, two);
        let text = one.join("");
        for part in [
            "Create",
            r#""<key>""#,
            r#""<key uid>""#,
            r#""<name>""#,
            r#""<uid>""#,
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("resourceVersion"), "{text}");
    }

    #[test]
    fn an_object_is_created_patched_deleted_or_left_alone() {
        let (old, new) = (
            object("x", json!({ "data": { "a": "1" } })),
            object("x", json!({ "data": { "a": "2" } })),
        );
        assert_eq!(
            lines(&made("x", Some(old.clone()), Some(new))),
            [r#"Patch data.a "1" "2""#]
        );
        assert_eq!(lines(&made("x", Some(old.clone()), None)), ["Delete"]);
        let newer = object(
            "x",
            json!({ "metadata": { "resourceVersion": "8" }, "data": { "a": "1" } }),
        );
        assert!(made("x", Some(old.clone()), Some(newer)).is_empty());
        assert!(made("x", None, None).is_empty());
        let waits = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"] } });
        assert_eq!(
            lines(&made("x", Some(old.clone()), Some(object("x", waits)))),
            ["Deletef"]
        );
        let other = object(
            "x",
            json!({ "metadata": { "uid": "another" }, "data": { "a": "1" } }),
        );
        assert_eq!(
            lines(&made("x", Some(old), Some(other))),
            ["Delete", r#"Create data.a - "1""#]
        );
    }

    #[test]
    fn a_generated_name_makes_no_other_change() {
        let more = || json!({ "metadata": { "generateName": "x-" }, "data": { "a": "1" } });
        let identity = |name: &str| made(name, None, Some(object(name, more())))[0].identity();
        assert_eq!(identity("x-abcde"), identity("x-fghij"));
        let named = |name: &str| made(name, None, Some(object(name, json!({}))))[0].identity();
        assert_ne!(named("one"), named("two"));
    }
}
