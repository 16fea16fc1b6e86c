//! The scale subresource: the replicas of an object in the form of `autoscaling/v1`.
//!
//! Owns the form of `Scale`. Its writes go through the object's own pipeline.

use serde_json::{Value, json};

use crate::admission;
use crate::admission::review::Operation;
use crate::call::{Call, Done};
use crate::decode::Body;
use crate::kinds::{Scale, Target};
use crate::patch::{self, Patch};
use crate::state::Inner;
use crate::status::{ApiError, INVALID, cause};
use crate::{meta, refuse, selector, write};

fn paths(target: &Target) -> Result<&Scale, ApiError> {
    target
        .version()
        .scale
        .as_ref()
        .ok_or_else(ApiError::no_such_path)
}

/// Returns an object as a `Scale`.
pub(crate) fn show(target: &Target, object: &Value) -> Result<Value, ApiError> {
    let paths = paths(target)?;
    let mut metadata = json!({});
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(value) = meta::get(object, field) {
            metadata[field] = value.clone();
        }
    }
    let number =
        |path: &crate::jsonpath::JsonPath| path.first(object).and_then(Value::as_i64).unwrap_or(0);
    let mut status = json!({ "replicas": number(&paths.status) });
    let selector = paths.selector.as_ref().and_then(|p| p.first(object));
    if let Some(text) = selector.and_then(selector::text) {
        status["selector"] = json!(text);
    }
    // A real server omits a zero here, but not in the status.
    let spec = match number(&paths.spec) {
        0 => json!({}),
        replicas => json!({ "replicas": replicas }),
    };
    Ok(json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }))
}

/// Executes a PUT of a scale, or a PATCH except for an apply. The outcome is the object.
pub(crate) fn write(
    inner: &mut Inner,
    call: &Call<'_>,
    make: impl FnOnce(&Value) -> Result<Value, ApiError>,
) -> Result<Done, ApiError> {
    let paths = paths(call.target)?;
    let live = call.live(inner)?;
    let shown = call.view(&live)?;
    let old = show(call.target, &shown)?;
    let scale = make(&old)?;
    check_type(&scale)?;
    let scale = admit(inner, call, old, scale)?;
    let (replicas, count) = replicas(call, &scale)?;
    let mut new = Value::clone(&shown);
    for field in ["resourceVersion", "uid"] {
        meta::set(&mut new, field, meta::get(&scale, field).cloned());
    }
    if paths.spec.first(&shown).and_then(Value::as_i64) != Some(count)
        && !paths.spec.set(&mut new, replicas)
    {
        return Err(ApiError::internal("the scale path leads nowhere"));
    }
    write::replace(inner, call, &live, new, false)
}

/// Asks webhooks and policies about a new scale, and returns what they make of it.
fn admit(inner: &Inner, call: &Call<'_>, old: Value, mut scale: Value) -> Result<Value, ApiError> {
    if inner.registered.is_empty() {
        return Ok(scale);
    }
    if let Some(scale) = scale.as_object_mut() {
        for field in ["apiVersion", "kind"] {
            scale.insert(field.to_owned(), old[field].clone());
        }
    }
    let objects = (Some(scale.into()), Some(old.into()));
    let made = admission::ask(inner, call, Operation::Update, objects, None)?;
    Ok(made.map(|made| Value::clone(&made)).unwrap_or_default())
}

/// Executes an apply of a scale: an apply of the object that states only the replicas, recorded
/// under the subresource. The outcome is the object.
pub(crate) fn apply(inner: &mut Inner, call: &Call<'_>, scale: &Value) -> Result<Done, ApiError> {
    let target = call.target;
    let paths = paths(target)?;
    check_type(scale)?;
    let mut applied = json!({
        "apiVersion": target.api_version(),
        "kind": target.kind.kind,
        "metadata": scale.get("metadata").cloned().unwrap_or_else(|| json!({})),
    });
    let stated = scale.pointer("/spec/replicas").is_some();
    let (replicas, _) = replicas(call, scale)?;
    if stated && !paths.spec.set(&mut applied, replicas) {
        return Err(ApiError::internal("the scale path leads nowhere"));
    }
    if !inner.registered.is_empty() {
        let live = call.live(inner)?;
        let shown = call.view(&live)?;
        let old = show(target, &shown)?;
        let mut new = old.clone();
        if let Some(replicas) = scale.pointer("/spec/replicas") {
            new["spec"]["replicas"] = replicas.clone();
        }
        let made = admit(inner, call, old, new)?;
        let (replicas, _) = self::replicas(call, &made)?;
        if stated {
            paths.spec.set(&mut applied, replicas);
        }
    }
    let patch = Body {
        value: applied,
        ..Body::default()
    };
    patch::patch(inner, call, &Patch::Apply(patch))
}

fn check_type(scale: &Value) -> Result<(), ApiError> {
    for (field, expected) in [("apiVersion", "autoscaling/v1"), ("kind", "Scale")] {
        match scale.get(field).and_then(Value::as_str) {
            None | Some("") => {}
            Some(got) if got == expected => {}
            Some(got) => {
                return Err(ApiError::bad_request(format!(
                    "the {field} of a scale is {expected}, not {got}"
                )));
            }
        }
    }
    Ok(())
}

/// Returns the replicas of a scale, in the original form and as a number.
fn replicas(call: &Call<'_>, scale: &Value) -> Result<(Value, i64), ApiError> {
    let replicas = scale
        .pointer("/spec/replicas")
        .cloned()
        .unwrap_or_else(|| json!(0));
    let Some(count) = replicas.as_i64() else {
        return Err(ApiError::bad_request(
            "json: cannot unmarshal into Go struct field ScaleSpec.spec.replicas of type int32",
        ));
    };
    if count < 0 {
        let why = format!("Invalid value: {count}: should be a non-negative integer");
        return Err(refuse::invalid(
            call.target,
            call.name,
            &[cause(INVALID, "spec.replicas", why)],
        ));
    }
    Ok((replicas, count))
}

/// Returns a function that applies a patch to the scale.
pub(crate) fn patched(patch: &Patch) -> impl FnOnce(&Value) -> Result<Value, ApiError> + '_ {
    |scale| patch.onto(scale)
}
