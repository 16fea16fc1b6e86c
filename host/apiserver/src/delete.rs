//! DELETE, of one object and of many.
//!
//! Owns the options, preconditions and answers. Must not know HTTP, or which other objects a
//! deletion removes.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::Call;
use crate::end::{Policy, end};
use crate::kinds::Target;
use crate::object::{Key, Object};
use crate::selector::Selector;
use crate::state::Inner;
use crate::status::{ApiError, INVALID, NOT_SUPPORTED, cause};
use crate::{meta, refuse};

/// The body of a DELETE.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    pub preconditions: Option<Preconditions>,
    pub propagation_policy: Option<String>,
    /// The older form of the propagation policy.
    pub orphan_dependents: Option<bool>,
    pub dry_run: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preconditions {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
}

impl DeleteOptions {
    /// Parses a body. Without a body, `query` counts: the options in the request's URL.
    pub fn parse(body: &[u8], query: &DeleteOptions) -> Result<DeleteOptions, ApiError> {
        let options: DeleteOptions = if body.iter().all(u8::is_ascii_whitespace) {
            query.clone()
        } else {
            serde_yaml_ng::from_slice(body).map_err(|e| ApiError::bad_request(e.to_string()))?
        };
        if options.orphan_dependents.is_some() && options.propagation_policy.is_some() {
            let policy = options.propagation_policy.as_deref().unwrap_or_default();
            let why = format!(
                "Invalid value: {policy:?}: orphanDependents and deletionPropagation cannot be both set"
            );
            let causes = [cause(INVALID, "propagationPolicy", why)];
            let what = "DeleteOptions.meta.k8s.io";
            return Err(ApiError::invalid_of(what, "", &causes));
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

    pub fn dry(&self, call: &Call<'_>) -> bool {
        call.options.dry_run
            || self
                .dry_run
                .as_ref()
                .is_some_and(|d| d.iter().any(|d| d == "All"))
    }
}

/// The result of a DELETE.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is gone. The `Status` is the answer.
    Gone(Value),
    /// The object remains until its finalizers are removed.
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
        return Err(refuse::forbidden(
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

/// Deletes everything that a selector matches, and returns the deleted objects.
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
        return Err(refuse::delete_conflict(call.target, call.name, why));
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
        return Err(refuse::delete_conflict(call.target, call.name, why));
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
