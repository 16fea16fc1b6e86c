//! The steps of a write, each a function of the request and the object: they refuse the object or
//! complete it.
//!
//! Must not know the order of the steps, or how an object is stored.

use serde_json::{Map, Value, json};

use super::types;
use crate::access::{escalation, signing};
use crate::builtin::{DEFINITIONS, NAMESPACES};
use crate::call::Call;
use crate::decode::{faults, refusal};
use crate::kinds::Target;
use crate::operations::nests;
use crate::request::Validation;
use crate::state::Inner;
use crate::status::{ApiError, Cause, INVALID, NOT_SUPPORTED, REQUIRED, TYPE_INVALID, cause};
use crate::{checks, crd, fill, meta, namespace, protobuf, refuse};

const QUANTITIES: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

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
                let name = map.get("metadata").and_then(|of| of.get("name")?.as_str());
                let name = name.unwrap_or_default();
                let mut error = ApiError::invalid_of(&what, name, &[why]);
                if let Some(details) = error.details.as_mut().filter(|_| !name.is_empty()) {
                    details["name"] = json!(name);
                }
                return Err(error);
            }
            got if field == "kind" => {
                let version = &target.version().name;
                return Err(ApiError::bad_request(format!(
                    "{got} in version {version:?} cannot be handled as a {expected}: the kind in the data does not match"
                )));
            }
            got if !target.kind.custom && !protobuf::knows(got, kind_in(map, target)) => {
                return Err(refuse::unregistered(target, got, kind_in(map, target)));
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

/// Returns the kind that a body says to be of, or that of the request.
fn kind_in<'a>(body: &'a Map<String, Value>, target: &'a Target) -> &'a str {
    let kind = body.get("kind").and_then(Value::as_str);
    let kind = kind.filter(|kind| !kind.is_empty());
    kind.unwrap_or(&target.kind.kind)
}

/// Refuses an object that nests too deep. (A real server stops at 10,000 levels.)
pub(super) fn check_depth(body: &Value) -> Result<(), ApiError> {
    if nests(body, 0) {
        return Ok(());
    }
    Err(ApiError::bad_request(
        "the object provided is unrecognized: json parse error: exceeded max depth",
    ))
}

/// Refuses an update that does not name its object: what has lost its metadata would also lose its
/// labels, owners and finalizers.
pub(crate) fn check_named(call: &Call<'_>, new: &Value) -> Result<(), ApiError> {
    if !meta::text(new, "name").is_empty() {
        return Ok(());
    }
    let name = call.name;
    Err(ApiError::bad_request(format!(
        "the name of the object ({name} based on URL) was undeterminable: name must be provided"
    )))
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
        return Err(refuse::other_object(call.target, &call.key(), asked, live));
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
    drop_zeros(target, new);
    target.complete(new);
    if let Some(schema) = target.schema() {
        // The result of an apply was checked before and is not pruned again, except for typed
        // kinds.
        if !merged || !target.kind.custom {
            unknown.extend(schema.prune(new));
        }
        schema.apply_defaults(new);
        if !target.kind.custom && !schema.normalize(new) {
            return Err(refuse::undecodable(target, QUANTITIES));
        }
    }
    default(target, new);
    let twice = call.duplicates;
    let json = call.body.filter(|_| !target.kind.custom);
    match call.options.validation {
        Validation::Ignore => Ok(Vec::new()),
        _ if unknown.is_empty() && twice.is_empty() => Ok(Vec::new()),
        Validation::Warn => Ok(faults(twice, &unknown, json)),
        Validation::Strict => {
            let why = refusal(twice, &unknown, json);
            let why = format!("strict decoding error: {why}");
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
            Err(refuse::undecodable(target, why))
        }
    }
}

/// Drops the zeros of a built-in kind that Go does not tell from fields that are absent.
pub(super) fn drop_zeros(target: &Target, new: &mut Value) {
    if let Some(schema) = target.schema().filter(|_| !target.kind.custom) {
        let (api_version, kind) = (target.api_version(), &target.kind.kind);
        protobuf::drop_zeros(&api_version, kind, schema.root(), new);
    }
}

/// Fills in the defaults of a built-in kind that its schema does not have.
pub(super) fn default(target: &Target, new: &mut Value) {
    match &*target.kind.storage {
        NAMESPACES => namespace::default(new),
        DEFINITIONS => crd::default(new),
        _ => fill::default(target.kind.fill, new),
    }
}

/// Completes an object as the admission plugins of every cluster do. They leave subresources alone.
pub(super) fn admit(
    inner: &Inner,
    call: &Call<'_>,
    live: Option<&Value>,
    new: &mut Value,
) -> Result<(), ApiError> {
    if !call.part.is_empty() {
        return Ok(());
    }
    match fill::admit(call.target.kind.fill, inner, live, new) {
        Some(why) => {
            let name = meta::text(new, "name");
            Err(refuse::forbidden(call.target, name, why))
        }
        None => Ok(()),
    }
}

/// Applies the code of the kind before the object is checked.
pub(crate) fn prepare(
    inner: &Inner,
    call: &Call<'_>,
    live: Option<&Value>,
    new: &mut Value,
) -> Result<(), ApiError> {
    escalation::check(inner, call, live, new)?;
    signing::record(call, live, new);
    signing::keep(call, live, new);
    let kind = &call.target.kind;
    let mut causes = match &*kind.storage {
        NAMESPACES => {
            namespace::prepare(live, new);
            Vec::new()
        }
        DEFINITIONS => crd::prepare(live, new),
        _ => fill::fill(kind.fill, inner, live, new, call.now),
    };
    causes.extend(signing::faults(call, live, new));
    if causes.is_empty() {
        return Ok(());
    }
    types::check(call, &schema_faults(call, live, new))?;
    // The schema may tell the same in other words.
    causes.extend(meta::check::validate(new, kind.names));
    causes.extend(rule_faults(call, live, new));
    let name = meta::text(new, "name");
    Err(refuse::invalid(call.target, name, &causes))
}

/// Checks the rules of metadata, schema and definition. `old` is the object that is replaced.
/// Faults that are `known` are forgiven. Returns warnings.
pub(crate) fn check(
    call: &Call<'_>,
    name: &str,
    old: Option<&Value>,
    new: &Value,
    mut causes: Vec<Cause>,
    known: &[Cause],
) -> Result<Vec<String>, ApiError> {
    causes.extend(meta::check::validate(new, call.target.kind.names));
    let is_new = |fault: &Cause| !known.contains(fault);
    causes.extend(rule_faults(call, old, new).into_iter().filter(is_new));
    let mut faults = schema_faults(call, old, new);
    faults.retain(is_new);
    types::check(call, &faults)?;
    causes.extend(faults);
    let warnings = definition_faults(call, old, new, &mut causes);
    if causes.is_empty() {
        Ok(warnings)
    } else {
        Err(refuse::invalid(call.target, name, &causes))
    }
}

/// Returns the rules of its kind's schema that an object breaks. In a custom kind, the ones that
/// the replaced object broke in the same way are left out.
fn schema_faults(call: &Call<'_>, old: Option<&Value>, object: &Value) -> Vec<Cause> {
    let Some(schema) = call.target.schema() else {
        return Vec::new();
    };
    let faults = match old.filter(|_| call.target.kind.custom) {
        Some(old) => schema.validate_update(object, old),
        None => schema.validate(object),
    };
    faults.into_iter().map(Cause::from).collect()
}

/// Returns what is wrong with an object of a part of a cluster, whose server accepted it.
pub(super) fn known_faults(call: &Call<'_>, object: &Value) -> Vec<Cause> {
    let mut faults = schema_faults(call, None, object);
    faults.extend(rule_faults(call, None, object));
    faults
}

/// Returns what the code of a built-in kind refuses. What is as in `old` is not looked at.
fn rule_faults(call: &Call<'_>, old: Option<&Value>, object: &Value) -> Vec<Cause> {
    let root = call.target.version().definition();
    root.map_or_else(Vec::new, |root| checks::faults(root, old, object))
}

/// Adds what an object breaks of its definition's rules, and returns warnings.
fn definition_faults(
    call: &Call<'_>,
    old: Option<&Value>,
    new: &Value,
    causes: &mut Vec<Cause>,
) -> Vec<String> {
    let rules = &call.target.version().rules;
    if rules.is_empty() {
        return Vec::new();
    }
    // Rules expect values of the right types and sizes.
    let blocks = |cause: &Cause| {
        matches!(
            cause.reason,
            REQUIRED | NOT_SUPPORTED | TYPE_INVALID | "FieldValueTooLong" | "FieldValueTooMany"
        )
    };
    if causes.iter().any(blocks) {
        let why = "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
        causes.push(cause(INVALID, "<nil>", why));
        return Vec::new();
    }
    let verdict = rules.check(new, old);
    causes.extend(verdict.faults.into_iter().map(Cause::from));
    verdict.warnings
}
