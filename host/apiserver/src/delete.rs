//! DELETE, of one object and of many.
//!
//! Owns the options, preconditions and answers. Must not know HTTP, or which other objects a
//! deletion removes.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::admission;
use crate::admission::review::Operation;
use crate::call::Call;
use crate::end::{Policy, end, foretell};
use crate::kinds::Target;
use crate::object::{Key, Object, Shown, Stored};
use crate::request::Options;
use crate::selector::Selector;
use crate::state::Inner;
use crate::status::{ApiError, INVALID, NOT_SUPPORTED, cause};
use crate::{decode, meta, refuse};

/// The name of the options in a refusal.
const OPTIONS: &str = "DeleteOptions.meta.k8s.io";

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
    pub fn parse(body: &[u8], query: DeleteOptions) -> Result<DeleteOptions, ApiError> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return query.checked();
        }
        let body = decode::yaml(body).map_err(|e| ApiError::bad_request(e.to_string()))?;
        DeleteOptions::of(body.value)
    }

    /// Reads options that are decoded already.
    pub fn of(options: Value) -> Result<DeleteOptions, ApiError> {
        let options: Result<DeleteOptions, _> = serde_json::from_value(options);
        let options = options.map_err(|e| ApiError::bad_request(e.to_string()))?;
        options.checked()
    }

    /// Refuses an unknown kind of dry run, and a propagation policy that is unknown or given twice.
    fn checked(self) -> Result<DeleteOptions, ApiError> {
        let mut asked = self.dry_run.iter().flatten();
        if let Some(other) = asked.find(|kind| *kind != "All") {
            let why = format!("Unsupported value: {other:?}: supported values: \"All\"");
            let causes = [cause(NOT_SUPPORTED, "dryRun", why)];
            return Err(ApiError::invalid_of(OPTIONS, "", &causes));
        }
        if self.orphan_dependents.is_some() && self.propagation_policy.is_some() {
            let policy = self.propagation_policy.as_deref().unwrap_or_default();
            let why = format!(
                "Invalid value: {policy:?}: orphanDependents and deletionPropagation cannot be both set"
            );
            let causes = [cause(INVALID, "propagationPolicy", why)];
            return Err(ApiError::invalid_of(OPTIONS, "", &causes));
        }
        match self.propagation_policy.as_deref() {
            None | Some("" | "Background" | "Foreground" | "Orphan") => Ok(self),
            Some(other) => {
                let known = "\"Foreground\", \"Background\", \"Orphan\", \"nil\"";
                let why = format!("Unsupported value: {other:?}: supported values: {known}");
                let causes = [cause(NOT_SUPPORTED, "propagationPolicy", why)];
                Err(ApiError::invalid_of(OPTIONS, "", &causes))
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

    /// Returns the options as webhooks see them.
    fn shown(&self, call: &Call<'_>) -> Value {
        let mut shown = json!({ "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1" });
        if let Some(policy) = &self.propagation_policy {
            shown["propagationPolicy"] = json!(policy);
        }
        if let Some(orphan) = self.orphan_dependents {
            shown["orphanDependents"] = json!(orphan);
        }
        if self.dry(call) {
            shown["dryRun"] = json!(["All"]);
        }
        if let Some(preconditions) = &self.preconditions {
            let mut shown_of = json!({});
            if let Some(uid) = &preconditions.uid {
                shown_of["uid"] = json!(uid);
            }
            if let Some(version) = &preconditions.resource_version {
                shown_of["resourceVersion"] = json!(version);
            }
            shown["preconditions"] = shown_of;
        }
        shown
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
    /// The object is the answer: it remains until its finalizers are removed, or its kind shows
    /// what is gone. It is in the version of the request, or in the stored one if a webhook has to
    /// convert it.
    Shown(Object),
}

/// Deletes one object, if webhooks and policies allow that.
pub(crate) fn delete(
    inner: &mut Inner,
    call: &Call<'_>,
    options: &DeleteOptions,
) -> Result<Deleted, ApiError> {
    warn(call, options);
    let live = call.live(inner)?;
    check(call, options, &live)?;
    admit(inner, call, options, &live)?;
    carry_out(inner, call, options)
}

/// Warns the author of a request that leaves it to the kind what happens to the dependents.
fn warn(call: &Call<'_>, options: &DeleteOptions) {
    let says_nothing = options.propagation_policy.is_none() && options.orphan_dependents.is_none();
    let warning = call.target.kind.deletion.warning.as_ref();
    if let Some(warning) = warning.filter(|_| says_nothing) {
        call.questions.warn(warning.clone());
    }
}

/// Asks webhooks and policies about a deletion. One of many objects is named by itself only, as in
/// a real server: the request has no name.
fn admit(
    inner: &Inner,
    call: &Call<'_>,
    options: &DeleteOptions,
    live: &Object,
) -> Result<(), ApiError> {
    if inner.registered.is_empty() {
        return Ok(());
    }
    let dry = Options {
        dry_run: options.dry(call),
        ..call.options.clone()
    };
    let call = Call {
        options: &dry,
        ..*call
    };
    let objects = (None, Some(call.view(live)?));
    let shown = Some(options.shown(&call));
    admission::ask(inner, &call, Operation::Delete, objects, shown)?;
    Ok(())
}

/// Deletes one object.
pub(crate) fn carry_out(
    inner: &mut Inner,
    call: &Call<'_>,
    options: &DeleteOptions,
) -> Result<Deleted, ApiError> {
    let live = call.live(inner)?;
    check(call, options, &live)?;
    let kind = &call.target.kind;
    if kind.protected.iter().any(|name| name == call.name) {
        return Err(refuse::forbidden(
            call.target,
            call.name,
            "this namespace may not be deleted",
        ));
    }
    let policy = options.policy().of(kind, &live);
    let ended = match options.dry(call) {
        true => foretell(inner, kind, &live, call.now, policy),
        false => end(inner, kind, &call.key(), &live, call.now, policy),
    };
    Ok(match ended.remains || kind.deletion.shows_object {
        true => Deleted::Shown(call.outcome(ended.object)),
        false => Deleted::Gone(success(call.target, call.name, &live)),
    })
}

/// Deletes everything that a selector matches, and returns the deleted objects.
pub(crate) fn delete_collection(
    inner: &mut Inner,
    call: &Call<'_>,
    namespace: Option<&str>,
    options: &DeleteOptions,
    selector: &Selector,
) -> Result<Vec<Shown>, ApiError> {
    warn(call, options);
    let kind = &call.target.kind;
    let objects: Vec<(Key, Stored)> = inner
        .store
        .list_stored(&kind.storage, namespace)
        .map(|(k, o)| (k.clone(), o.clone()))
        .collect();
    let mut matching = Vec::new();
    let mut unanswered = None;
    for (key, stored) in objects {
        match call.show(&stored) {
            Ok(shown) if selector.accepts(&shown) => matching.push((key, stored, shown)),
            Ok(_) => {}
            // All of them are converted by one call.
            Err(error) => unanswered = Some(error),
        }
    }
    if let Some(error) = unanswered {
        return Err(error);
    }
    // Everything is asked before the first object is deleted: a question without an answer must
    // leave nothing half done.
    let mut allowed = Vec::new();
    for (key, stored, _) in &matching {
        let one = Call {
            name: "",
            ..of(call, key)
        };
        allowed.push(match inner.registered.is_empty() {
            true => Ok(()),
            false => admit(inner, &one, options, &stored.object()),
        });
    }
    if call.questions.has_open() {
        return Err(ApiError::internal("a webhook was not asked yet"));
    }
    let mut deleted = Vec::new();
    for ((key, _, shown), allowed) in matching.into_iter().zip(allowed) {
        allowed?;
        match carry_out(inner, &of(call, &key), options) {
            Ok(_) => deleted.push(shown),
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(deleted)
}

/// Returns the request for one of many objects.
fn of<'a>(call: &Call<'a>, key: &'a Key) -> Call<'a> {
    Call {
        namespace: &key.namespace,
        name: &key.name,
        ..*call
    }
}

fn check(call: &Call<'_>, options: &DeleteOptions, live: &Value) -> Result<(), ApiError> {
    let Some(preconditions) = &options.preconditions else {
        return Ok(());
    };
    let (target, name) = (call.target, call.name);
    let checks_itself = target.kind.deletion.checks_itself;
    let uid = meta::text(live, "uid");
    if let Some(asked) = preconditions.uid.as_deref().filter(|asked| *asked != uid) {
        if checks_itself {
            let why = refuse::other_uid(asked, uid);
            return Err(refuse::conflict(target, name, why));
        }
        let why = format!(
            "the UID in the precondition ({asked}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
        );
        return Err(refuse::delete_conflict(target, name, why));
    }
    let version = meta::text(live, "resourceVersion");
    if let Some(asked) = preconditions
        .resource_version
        .as_deref()
        .filter(|asked| *asked != version)
    {
        if checks_itself {
            let why = format!(
                "Precondition failed: ResourceVersion in precondition: {asked}, ResourceVersion in object meta: {version}"
            );
            return Err(refuse::conflict(target, name, why));
        }
        let why = format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({version}). The object might have been modified"
        );
        return Err(refuse::delete_conflict(target, name, why));
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
