//! The scale subresource: one number of an object, as `autoscaling/v1` shows it.
//!
//! Owns the form of `Scale`. Its writes go through the object's own pipeline.

use serde_json::{Value, json};

use crate::kinds::{Scale, Target};
use crate::meta;
use crate::patch::Patch;
use crate::state::Inner;
use crate::status::{ApiError, INVALID, cause};
use crate::write::{self, Call, Done};

fn paths(target: &Target) -> Result<&Scale, ApiError> {
    target
        .version()
        .scale
        .as_ref()
        .ok_or_else(ApiError::no_such_path)
}

/// An object as a `Scale`.
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
    if let Some(selector) = paths.selector.as_ref().and_then(|p| p.first(object)) {
        status["selector"] = selector.clone();
    }
    Ok(json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": { "replicas": number(&paths.spec) },
        "status": status,
    }))
}

/// PUT and PATCH of a scale.
pub(crate) fn write(
    inner: &mut Inner,
    call: &Call<'_>,
    make: impl FnOnce(&Value) -> Result<Value, ApiError>,
) -> Result<Done, ApiError> {
    let paths = paths(call.target)?;
    let live = call.live(inner)?.clone();
    let shown = call.target.view(&live);
    let scale = make(&show(call.target, &shown)?)?;
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
        return Err(ApiError::invalid(
            call.target,
            call.name,
            &[cause(INVALID, "spec.replicas", why)],
        ));
    }
    let mut new = Value::clone(&shown);
    for field in ["resourceVersion", "uid"] {
        meta::set(&mut new, field, meta::get(&scale, field).cloned());
    }
    if paths.spec.first(&shown).and_then(Value::as_i64) != Some(count)
        && !paths.spec.set(&mut new, replicas)
    {
        return Err(ApiError::internal("the scale path leads nowhere"));
    }
    let done = write::replace(inner, call, &live, new, false)?;
    let object = show(call.target, &done.object)?.into();
    Ok(Done { object, ..done })
}

/// A patch of the shown scale.
pub(crate) fn patched(patch: &Patch) -> impl FnOnce(&Value) -> Result<Value, ApiError> + '_ {
    |scale| patch.onto(scale)
}
