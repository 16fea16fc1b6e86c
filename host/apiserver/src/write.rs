//! Creates and replaces objects: the common steps of every write.
//!
//! Owns the order of the steps (decode, carry over what the server owns, prune, default, track
//! ownership, admit, prepare, validate, compare, store). Nobody owns what admission and the code of
//! the kind set, because ownership is tracked before. Must not know HTTP, or how a patch produced
//! the new object.

mod admit;
mod fixed;
mod pinned;
mod same;
mod status;
mod steps;
mod types;

use serde_json::{Value, json};
use vmhost_merge::keep_times;

use admit::Proposal;
use steps::{check, check_depth, known_faults, prepare, shape};
pub(crate) use steps::{check_named, check_place, check_preconditions, check_type};

use crate::access::{creation, review};
use crate::call::{Call, Done, Door};
use crate::kinds::{Kind, Target};
use crate::object::{Key, Object};
use crate::state::Inner;
use crate::status::{ApiError, INVALID, cause};
use crate::{change, meta, namespace, refuse};

/// Stores a new object. `tracked`: an apply has already recorded the ownership.
pub(crate) fn create(
    inner: &mut Inner,
    call: &Call<'_>,
    mut new: Value,
    tracked: bool,
) -> Result<Done, ApiError> {
    let target = call.target;
    let kind = &target.kind;
    check_type(target, &mut new)?;
    check_depth(&new)?;
    let unknown = meta::check::decode(&mut new)?;
    if let Some(answer) = &kind.answer {
        let warnings = shape(call, &mut new, unknown, false)?;
        let proposal = Proposal {
            live: None,
            named: false,
        };
        admit::mutate(inner, call, &proposal, &mut new)?;
        prepare(inner, call, None, &mut new)?;
        admit::validate(inner, call, None, &new)?;
        let asked = new.clone();
        json_patch::merge(&mut new, answer);
        review::answer(inner, call, &asked, &mut new)?;
        return Ok(Done {
            code: 201,
            object: new.into(),
            warnings,
        });
    }
    if is_terminating(inner, target)? {
        let mut error = ApiError::method_not_allowed();
        error.message =
            "create not allowed while custom resource definition is terminating".to_owned();
        return Err(error);
    }
    let mut named = false;
    if meta::text(&new, "name").is_empty() {
        if !call.name.is_empty() {
            meta::set(&mut new, "name", Some(json!(call.name)));
        } else if !meta::text(&new, "generateName").is_empty() {
            let name = meta::generate(meta::text(&new, "generateName"));
            meta::set(&mut new, "name", Some(json!(name)));
            named = true;
        } else if kind.named_by_uid {
            meta::set(&mut new, "name", Some(json!(call.questions.uid())));
            named = true;
        }
    }
    check_place(call, &mut new)?;
    let name = meta::text(&new, "name").to_owned();
    if kind.namespaced {
        namespace::admit(inner, target, call.namespace, &name)?;
    }
    let versioned = !meta::text(&new, "resourceVersion").is_empty();
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
        "generation",
    ] {
        meta::set(&mut new, field, None);
    }
    meta::set(&mut new, "uid", Some(json!(call.questions.uid())));
    meta::set(&mut new, "creationTimestamp", Some(json!(call.now)));
    if kind.custom || kind.has_generation {
        meta::set(&mut new, "generation", Some(json!(1)));
    }
    status::keep(call, None, &mut new);
    let mut warnings = shape(call, &mut new, unknown, tracked)?;
    if !tracked {
        call.track(None, &mut new);
    }
    let proposal = Proposal { live: None, named };
    admit::mutate(inner, call, &proposal, &mut new)?;
    check_place(call, &mut new)?;
    // A webhook may give another name.
    let name = meta::text(&new, "name").to_owned();
    prepare(inner, call, None, &mut new)?;
    warnings.extend(check(call, &name, None, &new, Vec::new(), &[])?);
    protect(kind, &mut new);
    admit::validate(inner, call, None, &new)?;
    // An invalid object is refused as that, whatever is stored.
    if versioned && !call.options.dry_run {
        return Err(ApiError::new(
            500,
            "",
            "resourceVersion should not be set on objects to be created",
        ));
    }
    let key = Key::new(call.namespace, &name);
    if inner.store.contains(&kind.storage, &key) {
        return Err(refuse::already_exists(target, &name));
    }
    let object = if call.options.dry_run {
        new.into()
    } else {
        let stored = call.store(new)?;
        call.outcome(change::put(inner, kind, &key, stored))
    };
    Ok(Done {
        code: 201,
        object,
        warnings,
    })
}

/// Returns whether the kind of a request is being deleted. It may be gone since the request came
/// and webhooks were asked: then nobody would ever see the object.
fn is_terminating(inner: &Inner, target: &Target) -> Result<bool, ApiError> {
    let kind = &target.kind;
    if !kind.custom || inner.partial {
        return Ok(kind.terminating);
    }
    let version = &target.version().name;
    let now = inner.registry.find(&kind.group, version, &kind.plural);
    let definition = kind.definition.split('/').next();
    match now.filter(|now| now.kind.definition.split('/').next() == definition) {
        Some(now) => Ok(now.kind.terminating),
        None => Err(ApiError::no_such_path()),
    }
}

/// PUT: replaces the object with the body.
pub(crate) fn update(inner: &mut Inner, call: &Call<'_>, mut new: Value) -> Result<Done, ApiError> {
    check_type(call.target, &mut new)?;
    check_named(call, &new)?;
    let live = match call.live(inner) {
        Ok(live) => live,
        Err(_) if call.target.kind.create_on_update && call.door == Door::Main => {
            creation::permit(inner, call)?;
            return create(inner, call, new, false);
        }
        Err(error) => return Err(error),
    };
    check_place(call, &mut new)?;
    let has_version = meta::get(&new, "resourceVersion").is_some_and(|v| v.as_str() != Some(""));
    if call.target.kind.custom && !has_version {
        let why = cause(
            INVALID,
            "metadata.resourceVersion",
            "Invalid value: 0: must be specified for an update",
        );
        let what = call.target.qualified();
        let mut error = ApiError::invalid_of(&what, call.name, &[why]);
        if let Some(details) = &mut error.details {
            details["name"] = json!(call.name);
        }
        return Err(error);
    }
    replace(inner, call, &live, new, false)
}

/// Replaces `live` with `new`, whichever verb produced it. A uid or resourceVersion in `new` is a
/// precondition.
pub(crate) fn replace(
    inner: &mut Inner,
    call: &Call<'_>,
    live: &Object,
    mut new: Value,
    tracked: bool,
) -> Result<Done, ApiError> {
    let target = call.target;
    let kind = &target.kind;
    let shown = call.view(live)?;
    check_type(target, &mut new)?;
    check_depth(&new)?;
    let unknown = meta::check::decode(&mut new)?;
    check_place(call, &mut new)?;
    check_preconditions(call, &shown, &new)?;
    for field in ["uid", "creationTimestamp", "generation", "resourceVersion"] {
        meta::set(&mut new, field, meta::get(&shown, field).cloned());
    }
    if meta::is_deleting(&shown) {
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
            meta::set(&mut new, field, meta::get(&shown, field).cloned());
        }
    }
    status::keep(call, Some(&shown), &mut new);
    let mut warnings = shape(call, &mut new, unknown, tracked)?;
    if !tracked {
        call.track(Some(&shown), &mut new);
    }
    let proposal = Proposal {
        live: Some(&shown),
        named: false,
    };
    admit::mutate(inner, call, &proposal, &mut new)?;
    check_place(call, &mut new)?;
    prepare(inner, call, Some(&shown), &mut new)?;
    if (kind.custom || kind.has_generation)
        && call.door != Door::Status
        && !same_content(kind, &shown, &new)
    {
        let generation = meta::get(&shown, "generation")
            .and_then(Value::as_i64)
            .unwrap_or(0);
        meta::set(&mut new, "generation", Some(json!(generation + 1)));
    }
    // The other cluster's server may be newer than the rules here, and allow more.
    let known = match inner.partial {
        true => known_faults(call, &shown),
        false => Vec::new(),
    };
    let mut causes = meta::check::validate_update(&shown, &new);
    if call.door != Door::Status {
        let mut fixed = fixed::changed(&kind.fixed, &shown, &new);
        if !fixed.is_empty() {
            fixed = fixed::changed(&kind.fixed, &pinned::completed(call, &shown), &new);
        }
        causes.extend(fixed);
        causes.extend(pinned::changed(call, &shown, &new));
    }
    let old = Some(&*shown);
    warnings.extend(check(call, call.name, old, &new, causes, &known)?);
    keep_times(&shown, &mut new);
    admit::validate(inner, call, Some(&shown), &new)?;
    if *shown == new {
        return Ok(Done {
            code: 200,
            object: shown,
            warnings,
        });
    }
    if call.options.dry_run {
        return Ok(Done {
            code: 200,
            object: new.into(),
            warnings,
        });
    }
    let key = call.key();
    let stored = call.store(new)?;
    let object = change::settle(inner, kind, &key, stored);
    Ok(Done {
        code: 200,
        object: call.outcome(object),
        warnings,
    })
}

/// Adds the finalizer that protects new objects of the kind.
fn protect(kind: &Kind, new: &mut Value) {
    let Some(finalizer) = &kind.deletion.finalizer else {
        return;
    };
    let finalizers = meta::get(new, "finalizers").and_then(Value::as_array);
    let mut finalizers = finalizers.cloned().unwrap_or_default();
    if !finalizers.iter().any(|name| name == finalizer) {
        finalizers.push(json!(finalizer));
        meta::set(new, "finalizers", Some(json!(finalizers)));
    }
}

/// Returns whether the objects are equal except for the metadata that is no content of the kind.
fn same_content(kind: &Kind, a: &Value, b: &Value) -> bool {
    let content = |v: &Value| {
        let map = v.as_object().cloned().unwrap_or_default();
        map.into_iter()
            .filter(|(k, _)| k != "metadata")
            .collect::<Vec<_>>()
    };
    // An empty map counts as a missing one.
    let is_some = |map: &&Value| map.as_object().is_none_or(|map| !map.is_empty());
    let same =
        |field: &String| meta::get(a, field).filter(is_some) == meta::get(b, field).filter(is_some);
    kind.content.iter().all(same) && content(a) == content(b)
}
