//! CustomResourceDefinitions: kinds that clients bring.
//!
//! Owns their life: accepted names, established, registered, ended with everything that was made of them. What a good
//! definition is, and the kind that it describes, are in the two modules below.

mod check;
mod kind;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::delete::{self, Policy};
use crate::kinds::{Kind, Target};
use crate::schema::Cause;
use crate::state::Inner;
use crate::store::Key;
use crate::{meta, write};

/// Where they lie.
pub(crate) const STORAGE: &str = "apiextensions.k8s.io/customresourcedefinitions";
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Fills in what a definition may leave out, and says what is wrong with it.
pub(crate) fn prepare(_inner: &Inner, live: Option<&Value>, new: &mut Value) -> Vec<Cause> {
    check::default(new);
    if live.is_none() {
        let stored = storage_version(new).map(str::to_owned);
        new["status"] = json!({
            "acceptedNames": { "kind": "", "plural": "" },
            "conditions": [],
            "storedVersions": stored.into_iter().collect::<Vec<_>>(),
        });
    }
    check::check(live, new)
}

/// Follows a write: of a definition, the names are accepted and the kind is served.
pub(crate) fn after_put(inner: &mut Inner, kind: &Kind, key: &Key) {
    if &*kind.storage != STORAGE {
        return;
    }
    let Some(live) = inner.store.get(STORAGE, key).cloned() else {
        return;
    };
    let Some(target) =
        inner
            .registry
            .find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    else {
        return;
    };
    let status = status_of(inner, &live);
    write::server_status(inner, &target, key, status);
    register(inner);
    let served = inner
        .registry
        .kinds()
        .find(|k| k.custom && definition_name(k) == key.name)
        .cloned();
    if let Some(kind) = served.filter(|_| meta::is_deleting(&live)) {
        // A finalizer of somebody else's may have been the last thing in its way.
        after_remove(inner, &kind);
    }
}

/// What a definition looks like from its deletion on.
pub(crate) fn terminate(definition: &mut Value) {
    let finalizers = meta::of(definition)
        .entry("finalizers")
        .or_insert_with(|| json!([]));
    if let Some(list) = finalizers
        .as_array_mut()
        .filter(|list| !list.iter().any(|f| f == CLEANUP))
    {
        list.push(json!(CLEANUP));
    }
    let condition = condition(
        definition,
        "Terminating",
        true,
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
    );
    set_condition(&mut definition["status"], condition);
}

/// Deletes everything of a definition's kind, and the definition when nothing is left.
pub(crate) fn empty(inner: &mut Inner, name: &str, now: &str) {
    register(inner);
    let served = inner
        .registry
        .kinds()
        .find(|k| k.custom && definition_name(k) == name)
        .cloned();
    match served {
        Some(kind) => {
            let objects: Vec<_> = inner
                .store
                .list(&kind.storage, None)
                .map(|(k, o)| (k.clone(), o.clone()))
                .collect();
            for (key, object) in objects {
                delete::end(inner, &kind, &key, &object, now, Policy::Unsaid);
            }
            after_remove(inner, &kind);
        }
        // Its names were never accepted, so nothing was made of it.
        None => release(inner, name),
    }
}

/// Follows a removal: of the last object of a kind whose definition waits for it, or of a definition.
pub(crate) fn after_remove(inner: &mut Inner, kind: &Kind) {
    if &*kind.storage == STORAGE {
        register(inner);
    } else if kind.custom && inner.store.list(&kind.storage, None).next().is_none() {
        release(inner, &definition_name(kind));
    }
}

/// Takes our finalizer off a definition that is being deleted.
fn release(inner: &mut Inner, name: &str) {
    let key = Key::new("", name);
    let Some(live) = inner
        .store
        .get(STORAGE, &key)
        .filter(|d| meta::is_deleting(d))
        .cloned()
    else {
        return;
    };
    let mut last = Value::clone(&live);
    if let Some(list) = meta::of(&mut last)
        .get_mut("finalizers")
        .and_then(Value::as_array_mut)
    {
        list.retain(|f| f != CLEANUP);
    }
    if meta::has_finalizers(&last) {
        if last != *live {
            inner.store.put(&STORAGE.into(), key, last);
        }
    } else {
        meta::set(&mut last, "finalizers", None);
        inner.store.remove(&STORAGE.into(), &key, last);
    }
    register(inner);
}

fn definition_name(kind: &Kind) -> String {
    format!("{}.{}", kind.plural, kind.group)
}

/// Serves the established definitions of now. A definition that did not change keeps its kind.
fn register(inner: &mut Inner) {
    let old = inner.registry.clone();
    let mut kinds: Vec<Arc<Kind>> = Vec::new();
    let mut changed = Vec::new();
    for (_, definition) in inner.store.list(STORAGE, None) {
        if !has_condition(definition, "Established") {
            continue;
        }
        let mark = kind::mark(definition);
        match old.kinds().find(|k| k.custom && k.definition == mark) {
            Some(same) => kinds.push(same.clone()),
            None => {
                if let Some(made) = kind::of(definition, mark) {
                    let made = Arc::new(made);
                    changed.push(made.clone());
                    kinds.push(made);
                }
            }
        }
    }
    inner.registry = Arc::new(old.with_custom(kinds));
    for kind in changed {
        reread(inner, &kind);
    }
}

/// Stored objects are read by the schema of now: pruned, and with its defaults.
fn reread(inner: &mut Inner, kind: &Arc<Kind>) {
    for version in 0..kind.versions.len() {
        let target = Target {
            kind: kind.clone(),
            version,
        };
        let Some(schema) = target
            .schema()
            .filter(|_| target.api_version() == kind.stored_as)
        else {
            continue;
        };
        inner.store.reread(&kind.storage, |object| {
            let mut read = object.clone();
            read["apiVersion"] = json!(kind.stored_as);
            schema.prune(&mut read);
            schema.apply_defaults(&mut read);
            (read != *object).then_some(read)
        });
    }
}

/// The status of a definition: its conditions, the names that it got, the versions that it was stored in.
fn status_of(inner: &Inner, definition: &Value) -> Value {
    let mut status = definition
        .get("status")
        .filter(|s| s.is_object())
        .cloned()
        .unwrap_or_else(|| json!({}));
    match name_conflict(inner, definition) {
        None => {
            status["acceptedNames"] = definition["spec"]["names"].clone();
            let accepted = condition(
                definition,
                "NamesAccepted",
                true,
                "NoConflicts",
                "no conflicts found",
            );
            set_condition(&mut status, accepted);
            let text = "the initial names have been accepted";
            let established = condition(
                definition,
                "Established",
                true,
                "InitialNamesAccepted",
                text,
            );
            set_condition(&mut status, established);
        }
        Some(why) => {
            let refused = condition(definition, "NamesAccepted", false, "KindConflict", &why);
            set_condition(&mut status, refused);
            if !has_condition(definition, "Established") {
                let text = "not all names are accepted";
                set_condition(
                    &mut status,
                    condition(definition, "Established", false, "NotAccepted", text),
                );
            }
        }
    }
    if let Some(version) = storage_version(definition) {
        let stored = &mut status["storedVersions"];
        match stored.as_array_mut() {
            Some(list) if list.iter().any(|v| v == version) => {}
            Some(list) => list.push(json!(version)),
            None => *stored = json!([version]),
        }
    }
    status
}

/// Another definition of the group that has one of the names already.
fn name_conflict(inner: &Inner, definition: &Value) -> Option<String> {
    let names = |d: &Value| {
        let names = &d["spec"]["names"];
        let short = names["shortNames"].as_array().into_iter().flatten();
        let all = [&names["plural"], &names["singular"]]
            .into_iter()
            .chain(short);
        all.filter_map(Value::as_str)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let kinds = |d: &Value| {
        [
            d["spec"]["names"]["kind"].clone(),
            d["spec"]["names"]["listKind"].clone(),
        ]
    };
    let (mine, my_kinds) = (names(definition), kinds(definition));
    for (_, other) in inner.store.list(STORAGE, None) {
        let same = meta::text(other, "uid") == meta::text(definition, "uid");
        if same
            || other["spec"]["group"] != definition["spec"]["group"]
            || !has_condition(other, "Established")
        {
            continue;
        }
        if let Some(name) = names(other).into_iter().find(|name| mine.contains(name)) {
            return Some(format!("{name:?} is already in use"));
        }
        if let Some(kind) = kinds(other)
            .into_iter()
            .find(|kind| my_kinds.contains(kind))
        {
            return Some(format!("{kind} is already in use"));
        }
    }
    None
}

fn storage_version(definition: &Value) -> Option<&str> {
    let versions = definition.pointer("/spec/versions")?.as_array()?;
    versions
        .iter()
        .find(|v| v["storage"] == json!(true))?
        .get("name")?
        .as_str()
}

fn has_condition(definition: &Value, kind: &str) -> bool {
    let conditions = definition
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|c| c["type"] == kind && c["status"] == "True")
}

fn condition(definition: &Value, kind: &str, status: bool, reason: &str, message: &str) -> Value {
    let status = if status { "True" } else { "False" };
    let conditions = definition
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let before = conditions
        .into_iter()
        .flatten()
        .find(|c| c["type"] == kind && c["status"] == status);
    let since = before
        .and_then(|c| c["lastTransitionTime"].as_str())
        .map_or_else(meta::now, str::to_owned);
    json!({ "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since })
}

fn set_condition(status: &mut Value, condition: Value) {
    let conditions = &mut status["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    if let Some(list) = conditions.as_array_mut() {
        match list.iter_mut().find(|c| c["type"] == condition["type"]) {
            Some(at) => *at = condition,
            None => list.push(condition),
        }
    }
}
