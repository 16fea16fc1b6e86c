//! The steps of a write, each a function of the request and the object: they refuse the object or
//! complete it.
//!
//! Must not know the order of the steps, or how an object is stored.

use serde_json::{Value, json};

use crate::builtin::{DEFINITIONS, NAMESPACES};
use crate::call::Call;
use crate::kinds::Target;
use crate::request::Validation;
use crate::state::Inner;
use crate::status::{ApiError, Cause, INVALID, cause};
use crate::{crd, fill, meta, namespace, refuse};

/// Checks apiVersion and kind of a body, and fills them in for built-in kinds.
pub(crate) fn check_type(target: &Target, body: &mut Value) -> Result<(), ApiError> {
    let Some(map) = body.as_object_mut() else {
        return Err(ApiError::bad_request(
            "the object provided is unrecognized: json: cannot unmarshal into an object",
        ));
    };
    for (field, shown, expected) in [
        ("apiVersion", "apiVersion", target.api_version()),
        ("kind", "Kind", target.kind.kind.clone()),
    ] {
        match map.get(field).and_then(Value::as_str).unwrap_or_default() {
            "" if target.kind.custom => {
                let text = Value::Object(map.clone());
                return Err(ApiError::bad_request(format!(
                    "Object '{shown}' is missing in '{text}'"
                )));
            }
            "" => {
                map.insert(field.to_owned(), json!(expected));
            }
            got if got == expected => {}
            got if field == "kind" && target.kind.custom => {
                let what = format!("{got}.{}", target.kind.group);
                let why = format!("Invalid value: {got:?}: must be {expected}");
                let why = cause(INVALID, "kind", why);
                return Err(ApiError::invalid_of(&what, "", &[why]));
            }
            got if field == "kind" => {
                let version = &target.version().name;
                return Err(ApiError::bad_request(format!(
                    "{got} in version {version:?} cannot be handled as a {expected}: the kind in the data does not match"
                )));
            }
            got => {
                return Err(ApiError::bad_request(format!(
                    "the API version in the data ({got}) does not match the expected API version ({expected})"
                )));
            }
        }
    }
    Ok(())
}

/// Checks that name and namespace of the body match the path, and fills them in if they are
/// missing.
pub(crate) fn check_place(call: &Call<'_>, new: &mut Value) -> Result<(), ApiError> {
    let name = meta::text(new, "name");
    if name.is_empty() && !call.name.is_empty() {
        meta::set(new, "name", Some(json!(call.name)));
    } else if !call.name.is_empty() && name != call.name {
        let url = call.name;
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({url})"
        )));
    }
    let namespace = meta::text(new, "namespace");
    if !call.target.kind.namespaced {
        meta::set(new, "namespace", None);
    } else if namespace.is_empty() {
        meta::set(new, "namespace", Some(json!(call.namespace)));
    } else if namespace != call.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

pub(crate) fn check_preconditions(
    call: &Call<'_>,
    shown: &Value,
    new: &Value,
) -> Result<(), ApiError> {
    let (asked, live) = (meta::text(new, "uid"), meta::text(shown, "uid"));
    if !asked.is_empty() && asked != live && call.is_patch {
        let why = format!("Invalid value: {asked:?}: field is immutable");
        let why = cause(INVALID, "metadata.uid", why);
        return Err(refuse::invalid(call.target, call.name, &[why]));
    }
    if !asked.is_empty() && asked != live {
        let why = format!(
            "Precondition failed: UID in precondition: {asked}, UID in object meta: {live}"
        );
        return Err(refuse::conflict(call.target, call.name, why));
    }
    let asked = meta::text(new, "resourceVersion");
    if !asked.is_empty() && asked != "0" && asked != meta::text(shown, "resourceVersion") {
        if asked.parse::<u64>().is_err() {
            let why = cause(
                INVALID,
                "metadata.resourceVersion",
                format!("Invalid value: {asked:?}: invalid syntax"),
            );
            return Err(refuse::invalid(call.target, call.name, &[why]));
        }
        return Err(refuse::stale(call.target, call.name));
    }
    Ok(())
}

/// Prunes and fills in defaults. Unknown fields are refused, reported as warnings, or dropped.
pub(crate) fn shape(
    call: &Call<'_>,
    new: &mut Value,
    mut unknown: Vec<String>,
    merged: bool,
) -> Result<Vec<String>, ApiError> {
    let target = call.target;
    target.complete(new);
    if let Some(schema) = target.schema() {
        // The result of an apply was checked before and is not pruned again, except for typed
        // kinds.
        if !merged || !target.kind.custom {
            unknown.extend(schema.prune(new));
        }
        schema.apply_defaults(new);
    }
    let mut warnings: Vec<String> = target.version().warning.iter().cloned().collect();
    let texts = unknown
        .iter()
        .map(|field| format!("unknown field {field:?}"));
    match call.options.validation {
        Validation::Ignore => {}
        Validation::Warn => warnings.extend(texts),
        Validation::Strict if unknown.is_empty() => {}
        Validation::Strict => {
            let all: Vec<String> = texts.collect();
            let why = format!("strict decoding error: {}", all.join(", "));
            if call.is_patch {
                let patched = cause(
                    INVALID,
                    "patch",
                    format!("Invalid value: {:?}: {why}", new.to_string()),
                );
                let mut error = ApiError::invalid_of("", "", &[patched]);
                error.message = error.message.trim_start().to_owned();
                return Err(error);
            }
            let (kind, version) = (&target.kind.kind, &target.version().name);
            return Err(ApiError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
            )));
        }
    }
    Ok(warnings)
}

/// Applies the code of the kind before the object is checked.
pub(crate) fn prepare(
    inner: &Inner,
    call: &Call<'_>,
    live: Option<&Value>,
    new: &mut Value,
) -> Result<(), ApiError> {
    match &*call.target.kind.storage {
        NAMESPACES => namespace::prepare(live, new),
        DEFINITIONS => {
            let causes = crd::prepare(live, new);
            if !causes.is_empty() {
                return Err(refuse::invalid(
                    call.target,
                    meta::text(new, "name"),
                    &causes,
                ));
            }
        }
        _ => {
            let causes = fill::fill(call.target.kind.fill, inner, live, new);
            if !causes.is_empty() {
                let name = meta::text(new, "name");
                return Err(refuse::invalid(call.target, name, &causes));
            }
        }
    }
    Ok(())
}

/// Checks the rules of metadata and schema. Faults that are `known` are forgiven.
pub(crate) fn check(
    call: &Call<'_>,
    name: &str,
    new: &Value,
    mut causes: Vec<Cause>,
    known: &[Cause],
) -> Result<(), ApiError> {
    causes.extend(meta::check::validate(new, call.target.kind.label_names));
    let faults = schema_faults(call, new).into_iter();
    causes.extend(faults.filter(|fault| !known.contains(fault)));
    if causes.is_empty() {
        Ok(())
    } else {
        Err(refuse::invalid(call.target, name, &causes))
    }
}

/// Returns what an object breaks of its kind's schema.
pub(crate) fn schema_faults(call: &Call<'_>, object: &Value) -> Vec<Cause> {
    let schema = call.target.schema();
    let faults = schema.map(|schema| schema.validate(object));
    let faults = faults.unwrap_or_default().into_iter();
    faults.map(Cause::from).collect()
}
