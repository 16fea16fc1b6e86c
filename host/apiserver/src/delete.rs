//! DELETE, of one object and of many.
//!
//! Owns preconditions, finalizers, and what follows when an object is gone. Must not know HTTP.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::kinds::{Kind, Target};
use crate::owners::{FOREGROUND, ORPHAN};
use crate::selector::Selector;
use crate::state::Inner;
use crate::status::{ApiError, NOT_SUPPORTED, cause};
use crate::store::{Key, Object};
use crate::write::Call;
use crate::{crd, meta, namespace};

/// The body of a DELETE.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    pub preconditions: Option<Preconditions>,
    pub propagation_policy: Option<String>,
    /// The older form of the policy.
    pub orphan_dependents: Option<bool>,
    pub dry_run: Option<Vec<String>>,
}

/// What becomes of the dependents of an object that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The object's finalizers say; without them as [`Policy::Background`].
    Unsaid,
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

impl Policy {
    /// The finalizers of an object that is deleted with this policy.
    fn finalizers(self, live: &Value) -> Vec<Value> {
        let list = meta::get(live, "finalizers").and_then(Value::as_array);
        let mut list = list.cloned().unwrap_or_default();
        if self != Policy::Unsaid {
            list.retain(|f| f != FOREGROUND && f != ORPHAN);
        }
        match self {
            Policy::Foreground => list.push(json!(FOREGROUND)),
            Policy::Orphan => list.push(json!(ORPHAN)),
            Policy::Unsaid | Policy::Background => {}
        }
        list
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preconditions {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
}

impl DeleteOptions {
    /// Reads a body; `query` is what the request's address says, which counts when there is none.
    pub fn parse(body: &[u8], query: &DeleteOptions) -> Result<DeleteOptions, ApiError> {
        let options: DeleteOptions = if body.iter().all(u8::is_ascii_whitespace) {
            query.clone()
        } else {
            serde_yaml_ng::from_slice(body).map_err(|e| ApiError::bad_request(e.to_string()))?
        };
        if options.orphan_dependents.is_some() && options.propagation_policy.is_some() {
            return Err(ApiError::bad_request(
                "orphanDependents and propagationPolicy cannot be both set",
            ));
        }
        match options.propagation_policy.as_deref() {
            None | Some("" | "Background" | "Foreground" | "Orphan") => Ok(options),
            Some(other) => {
                let known = "\"Foreground\", \"Background\", \"Orphan\", \"nil\"";
                let why = format!("Unsupported value: {other:?}: supported values: {known}");
                let causes = [cause(NOT_SUPPORTED, "propagationPolicy", why)];
                Err(ApiError::invalid_of(
                    "DeleteOptions.meta.k8s.io",
                    "",
                    &causes,
                ))
            }
        }
    }

    fn policy(&self) -> Policy {
        match (self.propagation_policy.as_deref(), self.orphan_dependents) {
            (Some("Orphan"), _) | (_, Some(true)) => Policy::Orphan,
            (Some("Foreground"), _) => Policy::Foreground,
            (Some("Background"), _) | (_, Some(false)) => Policy::Background,
            _ => Policy::Unsaid,
        }
    }

    fn dry(&self, call: &Call<'_>) -> bool {
        call.options.dry_run
            || self
                .dry_run
                .as_ref()
                .is_some_and(|d| d.iter().any(|d| d == "All"))
    }
}

/// What a DELETE came to.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// Gone: the `Status` to answer with.
    Gone(Value),
    /// Still there, until its finalizers are.
    Waiting(Object),
}

/// Deletes one object.
pub(crate) fn delete(
    inner: &mut Inner,
    call: &Call<'_>,
    options: &DeleteOptions,
) -> Result<Deleted, ApiError> {
    let live = call.live(inner)?.clone();
    check(call, options, &live)?;
    let kind = &call.target.kind;
    if kind.protected.iter().any(|name| name == call.name) {
        return Err(ApiError::forbidden(
            call.target,
            call.name,
            "this namespace may not be deleted",
        ));
    }
    let policy = options.policy();
    if options.dry(call) {
        return Ok(if policy.finalizers(&live).is_empty() {
            Deleted::Gone(success(call.target, call.name, &live))
        } else {
            Deleted::Waiting(call.target.view(&live))
        });
    }
    Ok(
        match end(inner, kind, &call.key(), &live, call.now, policy) {
            Some(waiting) => Deleted::Waiting(call.target.view(&waiting)),
            None => Deleted::Gone(success(call.target, call.name, &live)),
        },
    )
}

/// Deletes everything that a selector matches, and returns what was there.
pub(crate) fn delete_collection(
    inner: &mut Inner,
    call: &Call<'_>,
    namespace: Option<&str>,
    options: &DeleteOptions,
    selector: &Selector,
) -> Result<Vec<Object>, ApiError> {
    let kind = &call.target.kind;
    let objects: Vec<(Key, Object)> = inner
        .store
        .list(&kind.storage, namespace)
        .map(|(k, o)| (k.clone(), o.clone()))
        .collect();
    let mut deleted = Vec::new();
    for (key, object) in objects {
        let shown = call.target.view(&object);
        if !selector.matches(&shown) {
            continue;
        }
        let one = Call {
            namespace: &key.namespace,
            name: &key.name,
            ..*call
        };
        match delete(inner, &one, options) {
            Ok(_) => deleted.push(shown),
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(deleted)
}

fn check(call: &Call<'_>, options: &DeleteOptions, live: &Value) -> Result<(), ApiError> {
    let Some(preconditions) = &options.preconditions else {
        return Ok(());
    };
    let uid = meta::text(live, "uid");
    if let Some(asked) = preconditions.uid.as_deref().filter(|asked| *asked != uid) {
        let why = format!(
            "the UID in the precondition ({asked}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
        );
        return Err(ApiError::delete_conflict(call.target, call.name, why));
    }
    let version = meta::text(live, "resourceVersion");
    if let Some(asked) = preconditions
        .resource_version
        .as_deref()
        .filter(|asked| *asked != version)
    {
        let why = format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({version}). The object might have been modified"
        );
        return Err(ApiError::delete_conflict(call.target, call.name, why));
    }
    Ok(())
}

fn success(target: &Target, name: &str, live: &Value) -> Value {
    let mut details =
        json!({ "name": name, "kind": target.kind.plural, "uid": meta::text(live, "uid") });
    if !target.kind.group.is_empty() {
        details["group"] = json!(target.kind.group);
    }
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}

/// Ends an object: it is removed, or marked if finalizers hold it. What is returned is still there, or was when its
/// own end began.
pub(crate) fn end(
    inner: &mut Inner,
    kind: &Kind,
    key: &Key,
    live: &Object,
    now: &str,
    policy: Policy,
) -> Option<Object> {
    match &*kind.storage {
        namespace::STORAGE => {
            let marked = mark(inner, kind, key, live, now, namespace::terminate);
            namespace::empty(inner, &key.name, now);
            return Some(marked);
        }
        crd::STORAGE => {
            let marked = mark(inner, kind, key, live, now, crd::terminate);
            crd::empty(inner, &key.name, now);
            return Some(marked);
        }
        _ => {}
    }
    let finalizers = policy.finalizers(live);
    if finalizers.is_empty() {
        let mut last = Value::clone(live);
        meta::set(&mut last, "finalizers", None);
        remove(inner, kind, key, last);
        return None;
    }
    Some(mark(inner, kind, key, live, now, |new| {
        meta::set(new, "finalizers", Some(json!(finalizers)));
    }))
}

/// Sets the deletion time stamp, once, and whatever else changes.
fn mark(
    inner: &mut Inner,
    kind: &Kind,
    key: &Key,
    live: &Object,
    now: &str,
    also: impl FnOnce(&mut Value),
) -> Object {
    let mut new = Value::clone(live);
    if !meta::is_deleting(live) {
        meta::set(&mut new, "deletionTimestamp", Some(json!(now)));
        if kind.namespaced || kind.custom {
            meta::set(&mut new, "deletionGracePeriodSeconds", Some(json!(0)));
        }
        if let Some(generation) = meta::get(live, "generation").and_then(Value::as_i64) {
            meta::set(&mut new, "generation", Some(json!(generation + 1)));
        }
    }
    also(&mut new);
    if new == **live {
        return live.clone();
    }
    inner.store.put(&kind.storage, key.clone(), new)
}

/// Takes an object out of the store, and with it what only waited for it to go.
pub(crate) fn remove(inner: &mut Inner, kind: &Kind, key: &Key, last: Value) -> Object {
    let removed = inner.store.remove(&kind.storage, key, last);
    namespace::after_remove(inner, &key.namespace);
    crd::after_remove(inner, kind);
    removed
}
