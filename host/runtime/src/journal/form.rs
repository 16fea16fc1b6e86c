//! An effect as JSON, in the form of a plugin's test case, and what it changes of an object.
//!
//! The form is the one of `host/src/workshop/cases/form.rs`. This module must not know whether an
//! effect was carried out, or which values are sensitive.

use json_patch::PatchOperation;
use serde_json::{Value, json};
use vmhost_core::{Effect, ObjectKey, Patch, PatchType};

use crate::elsewhere::{self, Elsewhere};
use crate::journal::story::Field;
use crate::journal::{diff, path};

/// Maximum number of steps in the path of a JSON patch that is carried out here. With longer paths
/// a short patch could build an object of any depth.
const DEEPEST: usize = 64;

/// Members that name an item of a list, so that an apply finds it at another position.
const NAMES: [&str; 2] = ["name", "type"];

/// Returns the effect in the form of a test case: `{"patch": {...}}`.
pub(crate) fn of(effect: &Effect) -> Value {
    let text = |text: &Option<String>| text.as_deref().map(Value::from);
    match effect {
        Effect::Apply(apply) => {
            let form = json!({
                "object": body(&apply.object),
                "force": apply.force,
                "createIfAbsent": apply.create_if_absent,
            });
            let subresource = text(&apply.subresource);
            let version = text(&apply.if_version);
            json!({ "apply": with(form, [("subresource", subresource), ("ifVersion", version)]) })
        }
        Effect::Patch(patch) => {
            let form = json!({
                "key": key(&patch.key),
                "type": patch.kind,
                "body": body(&patch.body),
            });
            let subresource = text(&patch.subresource);
            let version = text(&patch.if_version);
            json!({ "patch": with(form, [("subresource", subresource), ("ifVersion", version)]) })
        }
        Effect::Create(create) => json!({ "create": { "object": body(&create.object) } }),
        Effect::Delete(delete) => {
            let form = json!({ "key": key(&delete.key) });
            let propagation = delete.propagation.map(|propagation| json!(propagation));
            let optional = [
                ("uid", text(&delete.uid)),
                ("ifVersion", text(&delete.if_version)),
                ("propagation", propagation),
            ];
            json!({ "delete": with(form, optional) })
        }
        Effect::Event(event) => {
            let form = json!({ "type": event.kind, "reason": event.reason, "note": event.note });
            let action = Some(&event.action).filter(|action| !action.is_empty());
            let optional = [
                ("action", action.map(|action| json!(action))),
                ("related", event.related.as_ref().map(key)),
            ];
            json!({ "event": with(form, optional) })
        }
        Effect::Other(other) => {
            // Any other body is left out: nothing tells which of its values are sensitive.
            let body = in_cluster(effect).map(|Elsewhere { cluster, effect }| {
                let inner = of(&effect);
                json!({ "cluster": cluster, "effect": inner })
            });
            json!({ "other": with(json!({ "name": other.name }), [("body", body)]) })
        }
    }
}

/// Returns what an effect that names its cluster says. `None` for any other effect, or if its body
/// says something else.
pub(crate) fn in_cluster(effect: &Effect) -> Option<Elsewhere> {
    elsewhere::read(effect)?.ok()
}

/// Returns the form of the effect in the cluster that this form names, or else the form itself.
pub(crate) fn inner(form: &Value) -> &Value {
    form.pointer(elsewhere::INNER).unwrap_or(form)
}

/// Adds the members that have a value.
fn with<const N: usize>(mut form: Value, optional: [(&str, Option<Value>); N]) -> Value {
    if let Value::Object(members) = &mut form {
        for (name, value) in optional {
            if let Some(value) = value {
                members.insert(name.to_owned(), value);
            }
        }
    }
    form
}

fn key(key: &ObjectKey) -> Value {
    let form = json!({
        "apiVersion": key.kind.api_version(),
        "kind": key.kind.kind,
        "name": key.name.name(),
    });
    with(form, [("namespace", key.name.namespace().map(Value::from))])
}

/// Returns the plugin's text as JSON, or as a string if it is not valid JSON.
fn body(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Returns the fields that an effect changes, and the object afterwards. If the object before is
/// not known, the fields are those that the effect names, and there is no object.
///
/// The API server may change something else: this function knows no schema, defaults or webhooks.
pub(crate) fn change(effect: &Effect, before: Option<&Value>) -> (Vec<Field>, Option<Value>) {
    // Another subresource, such as `eviction`, has fields of its own.
    let before = before.filter(|_| matches!(effect.subresource(), None | Some("status")));
    match effect {
        Effect::Create(create) => {
            let object: Option<Value> = serde_json::from_str(&create.object).ok();
            (diff::fields(None, object.as_ref()).0, object)
        }
        Effect::Apply(apply) => {
            let Ok(applied) = serde_json::from_str::<Value>(&apply.object) else {
                return Default::default();
            };
            let after = before.map(|before| {
                let mut after = before.clone();
                overlay(&mut after, &applied);
                after
            });
            changed(before, after, || diff::fields(None, Some(&applied)).0)
        }
        Effect::Patch(patch) => patched(patch, before),
        // No object of this cluster tells what there was in the other one.
        Effect::Other(_) => match in_cluster(effect) {
            Some(there) => (change(&there.effect, None).0, None),
            None => Default::default(),
        },
        Effect::Delete(_) | Effect::Event(_) => Default::default(),
    }
}

/// Compares two objects. If the object afterwards is not known, returns the fields that `named`
/// returns.
fn changed(
    before: Option<&Value>,
    after: Option<Value>,
    named: impl FnOnce() -> Vec<Field>,
) -> (Vec<Field>, Option<Value>) {
    match after {
        Some(after) => (diff::fields(before, Some(&after)).0, Some(after)),
        None => (named(), None),
    }
}

fn patched(patch: &Patch, before: Option<&Value>) -> (Vec<Field>, Option<Value>) {
    let Ok(body) = serde_json::from_str::<Value>(&patch.body) else {
        return Default::default();
    };
    match patch.kind {
        PatchType::Merge => {
            let after = before.map(|before| {
                let mut after = before.clone();
                json_patch::merge(&mut after, &body);
                after
            });
            changed(before, after, || diff::fields(None, Some(&body)).0)
        }
        PatchType::Json => {
            let after = before.and_then(|before| carry_out(&body, before));
            changed(before, after, || named_by(&body))
        }
    }
}

/// Carries a JSON patch out. Returns `None` if it does not apply, or if it could make the object
/// far larger than its own text, by copies or by moves along long paths.
fn carry_out(body: &Value, before: &Value) -> Option<Value> {
    let patch: json_patch::Patch = serde_json::from_value(body.clone()).ok()?;
    let is_bounded = |operation: &PatchOperation| {
        let steps = operation.path().as_str().split('/').count();
        let grows = matches!(operation, PatchOperation::Copy(_) | PatchOperation::Move(_));
        !grows && steps <= DEEPEST
    };
    if !patch.iter().all(is_bounded) {
        return None;
    }
    let mut after = before.clone();
    json_patch::patch(&mut after, &patch).ok()?;
    Some(after)
}

/// The fields that the operations of a JSON patch name.
fn named_by(body: &Value) -> Vec<Field> {
    let operations = body.as_array().into_iter().flatten();
    let fields = operations
        .filter(|operation| operation["op"] != "test")
        .flat_map(|operation| {
            let path = path::from_pointer(operation["path"].as_str().unwrap_or_default());
            match operation.get("value") {
                Some(value) => diff::fields_at(&path, None, Some(value)).0,
                None => vec![Field {
                    path,
                    ..Field::default()
                }],
            }
        });
    fields.take(diff::SHOWN).collect()
}

/// Sets the leaves of an applied object. Fields that it does not name stay, since only the API
/// server knows which fields the manager gives up.
fn overlay(value: &mut Value, applied: &Value) {
    match (value, applied) {
        (Value::Object(members), Value::Object(applied)) => {
            for (name, applied) in applied {
                // Serialisers write null for a field that is not set.
                if !applied.is_null() {
                    overlay(members.entry(name.as_str()).or_insert(Value::Null), applied);
                }
            }
        }
        (Value::Array(items), Value::Array(applied)) => {
            for (index, applied) in applied.iter().enumerate() {
                let place = place(items, index, applied);
                match items.get_mut(place) {
                    Some(item) => overlay(item, applied),
                    None => items.push(applied.clone()),
                }
            }
        }
        (value, applied) => *value = applied.clone(),
    }
}

/// Returns the position in a list at which an applied item goes: that of the item with the same
/// name, or else the applied item's own position. Returns the list's length if a named item is new.
fn place(items: &[Value], index: usize, applied: &Value) -> usize {
    let name = NAMES
        .iter()
        .find_map(|name| Some((*name, applied.get(name)?)));
    match name {
        Some((name, wanted)) => items
            .iter()
            .position(|item| item.get(name) == Some(wanted))
            .unwrap_or(items.len()),
        None => index,
    }
}

#[cfg(test)]
mod tests;
