//! PATCH: JSON merge, JSON patch, strategic merge and server-side apply.
//!
//! Owns parsing patch bodies and applying each kind of patch to the live object. The rest of the
//! write is the same as for a PUT, and is not here. An unsupported kind of patch is refused, never
//! merged in another way. Must not know HTTP.

use json_patch::PatchOperation;
use serde_json::{Value, json};
use vmhost_merge::{ApplyError, Conflict};

use crate::access::creation;
use crate::call::{Call, Done, Door};
use crate::decode::{Body, Twice};
use crate::kinds::Target;
use crate::request::{Options, Validation};
use crate::state::Inner;
use crate::status::{ApiError, FORBIDDEN, REQUIRED, cause};
use crate::{decode, meta, operations, refuse, strategic, write};

/// A parsed patch.
#[derive(Debug)]
pub(crate) enum Patch {
    Merge(Value),
    Json(json_patch::Patch),
    Strategic { patch: Value, schema: Value },
    Apply(Body),
}

/// The most operations of a JSON patch, as in a real server.
const OPERATIONS: usize = 10_000;

const ACCEPTED: &str =
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";

impl Patch {
    /// Parses a body by its media type.
    pub fn parse(target: &Target, media: &str, body: &[u8]) -> Result<Patch, ApiError> {
        let bad = |error: &dyn std::fmt::Display| {
            ApiError::bad_request(format!("error decoding patch: {error}"))
        };
        match media {
            "application/merge-patch+json" => {
                let patch: Value = serde_json::from_slice(body).map_err(|e| bad(&e))?;
                if !patch.is_object() {
                    return Err(bad(&"json: cannot unmarshal into an object"));
                }
                Ok(Patch::Merge(patch))
            }
            "application/json-patch+json" => Ok(Patch::Json(
                serde_json::from_slice(body).map_err(|e| bad(&e))?,
            )),
            "application/apply-patch+yaml" | "application/apply-patch+json" => {
                let patch = decode::yaml(body)
                    .map_err(|e| ApiError::bad_request(format!("error decoding YAML: {e}")))?;
                Ok(Patch::Apply(patch))
            }
            "application/strategic-merge-patch+json" if !target.kind.custom => {
                let patch = serde_json::from_slice(body).map_err(|e| bad(&e))?;
                Ok(Patch::Strategic {
                    patch,
                    schema: target.version().raw_schema.clone(),
                })
            }
            _ if target.kind.custom => Err(ApiError::unsupported_media_type(ACCEPTED)),
            _ => Err(ApiError::unread_form()),
        }
    }

    /// Checks the options of the request.
    pub fn check(&self, options: &Options) -> Result<(), ApiError> {
        if options.force && !matches!(self, Patch::Apply(_)) {
            let why = "Forbidden: may not be specified for non-apply patch";
            let why = cause(FORBIDDEN, "force", why);
            return Err(ApiError::invalid_of("PatchOptions.meta.k8s.io", "", &[why]));
        }
        Ok(())
    }

    /// Applies a patch to an object, except for a server-side apply.
    pub fn onto(&self, live: &Value) -> Result<Value, ApiError> {
        let mut new = live.clone();
        match self {
            Patch::Merge(patch) => json_patch::merge(&mut new, patch),
            Patch::Strategic { patch, schema } => strategic::merge(&mut new, patch, schema)?,
            Patch::Json(patch) => operate(&mut new, patch)?,
            Patch::Apply(_) => return Err(ApiError::unsupported_media_type(ACCEPTED)),
        }
        Ok(new)
    }
}

/// Carries out the operations of a client's JSON patch.
fn operate(object: &mut Value, patch: &[PatchOperation]) -> Result<(), ApiError> {
    if patch.len() > OPERATIONS {
        let count = patch.len();
        let why = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {OPERATIONS}, got {count}"
        );
        return Err(ApiError::new(413, "RequestEntityTooLarge", why));
    }
    operations::operate(object, patch).map_err(|why| not_applied(&String::from(why)))
}

/// Returns the refusal of a JSON patch that does not apply.
fn not_applied(why: &str) -> ApiError {
    tracing::debug!(%why, "json patch does not apply");
    let mut refusal = ApiError::new(
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
    );
    refusal.details = Some(json!({}));
    refusal
}

/// Executes a patch.
pub(crate) fn patch(inner: &mut Inner, call: &Call<'_>, patch: &Patch) -> Result<Done, ApiError> {
    if let Patch::Apply(applied) = patch {
        return apply(inner, call, applied);
    }
    let live = call.live(inner)?;
    let shown = call.view(&live)?;
    let mut new = patch.onto(&shown)?;
    if !new.is_object() {
        return Err(ApiError::bad_request("the patch leaves no object"));
    }
    write::check_named(call, &new)?;
    // A patch that removes resourceVersion removes the precondition, not the version.
    meta::of(&mut new).retain(|field, value| field != "resourceVersion" || value.is_string());
    write::replace(inner, call, &live, new, false)
}

fn apply(inner: &mut Inner, call: &Call<'_>, patch: &Body) -> Result<Done, ApiError> {
    let target = call.target;
    if call
        .options
        .manager
        .as_deref()
        .unwrap_or_default()
        .is_empty()
    {
        let why = cause(
            REQUIRED,
            "fieldManager",
            "Required value: is required for apply patch",
        );
        return Err(ApiError::invalid_of("PatchOptions.meta.k8s.io", "", &[why]));
    }
    let mut applied = patch.value.clone();
    if applied.is_null() {
        applied = json!({});
    }
    check_kind(target, &applied)?;
    write::check_type(target, &mut applied)?;
    if meta::get(&applied, "managedFields").is_some() {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    write::check_place(call, &mut applied)?;
    let api_version = target.api_version();
    let manager = call.author(&api_version);
    let force = call.options.force;
    match call.live(inner) {
        Ok(live) => {
            let shown = call.view(&live)?;
            let merged = vmhost_merge::apply(
                target.schema(),
                Some(&shown),
                &applied,
                &manager,
                force,
                call.now,
            );
            let mut merged = merged.map_err(|error| refusal(call, error))?;
            let warnings = strictly(call, &patch.duplicates)?;
            // The preconditions are those of the applied object, not those that the merge added.
            for field in ["resourceVersion", "uid"] {
                meta::set(&mut merged, field, meta::get(&applied, field).cloned());
            }
            Ok(write::replace(inner, call, &live, merged, true)?.warned(warnings))
        }
        Err(missing) if call.door != Door::Main => Err(missing),
        Err(_) => {
            let uid = meta::text(&applied, "uid");
            if !uid.is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                );
                return Err(refuse::conflict(target, call.name, why));
            }
            creation::permit(inner, call)?;
            let new =
                vmhost_merge::apply(target.schema(), None, &applied, &manager, force, call.now);
            let new = new.map_err(|error| refusal(call, error))?;
            let warnings = strictly(call, &patch.duplicates)?;
            Ok(write::create(inner, call, new, true)?.warned(warnings))
        }
    }
}

/// Refuses or reports what an applied patch gives twice. A real server looks for that after it has
/// merged the patch, so that a conflict is told first.
fn strictly(call: &Call<'_>, twice: &[Twice]) -> Result<Vec<String>, ApiError> {
    match call.options.validation {
        Validation::Ignore => Ok(Vec::new()),
        Validation::Strict if !twice.is_empty() => {
            let why = decode::refusal(twice, &[], None);
            let why = format!("error strict decoding YAML: error converting YAML to JSON: {why}");
            Err(ApiError::bad_request(why))
        }
        Validation::Warn | Validation::Strict => Ok(decode::faults(twice, &[], None)),
    }
}

/// Checks that the body of an apply names its kind.
fn check_kind(target: &Target, applied: &Value) -> Result<(), ApiError> {
    if !applied.is_object() {
        let text = "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal into Go value of type map[string]interface {}";
        return Err(ApiError::bad_request(text));
    }
    let text = |name: &str| applied[name].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version == target.api_version() && kind == target.kind.kind {
        return Ok(());
    }
    let slash = if api_version.contains('/') { "" } else { "/" };
    let text = format!("invalid object type: {slash}{api_version}, Kind={kind}");
    Err(ApiError::bad_request(text))
}

/// Returns the refusal of an apply whose merge failed.
fn refusal(call: &Call<'_>, error: ApplyError) -> ApiError {
    let message = error.to_string();
    match error {
        ApplyError::Conflict(conflicts) => {
            let cause = |c: &Conflict| json!({ "reason": "FieldManagerConflict", "message": c.message, "field": c.field });
            ApiError::new(409, "Conflict", message)
                .with_causes(conflicts.iter().map(cause).collect())
        }
        ApplyError::Undeclared(_) => ApiError::new(500, "", message),
        ApplyError::Invalid(_) => {
            tracing::debug!(name = call.name, message, "applied object is invalid");
            ApiError::bad_request(message)
        }
    }
}
