//! A server-side apply: the merge, the conflicts, and the ownership after it.
//!
//! Owns the order of the steps. Must not know how to merge or compare objects.

use serde_json::{Value, json};
use vmhost_schema::Schema;

use crate::error::{ApplyError, Conflict};
use crate::managed::{self, Id, Operation};
use crate::manager::Manager;
use crate::set::{self, Step};
use crate::shape::Place;
use crate::update::{self, Failure};
use crate::{compare, last_applied, walk};

/// Merges `applied` into `live` on behalf of `manager` and returns the new object with its new
/// `metadata.managedFields`. Without a `schema` the object may hold anything.
///
/// `applied` must carry `apiVersion`, `kind` and the name; `now` is an RFC 3339 time in seconds.
/// The result is neither defaulted nor validated. The caller must restore the fields in
/// `manager.reset`. After that, [`crate::keep_times`] detects an apply that changed nothing.
pub fn apply(
    schema: Option<&Schema>,
    live: Option<&Value>,
    applied: &Value,
    manager: &Manager<'_>,
    force: bool,
    now: &str,
) -> Result<Value, ApplyError> {
    let version = text(applied, "apiVersion");
    if version != manager.api_version {
        return Err(ApplyError::Invalid(format!(
            "Incorrect version specified in apply patch. Specified patch version: {version}, expected: {}",
            manager.api_version
        )));
    }
    if managed::list(applied).is_some() {
        return Err(ApplyError::Invalid(
            "metadata.managedFields must be nil".to_owned(),
        ));
    }
    let open = Schema::open();
    let place = Place::root(schema.unwrap_or(&open).root());
    walk::check(place, applied, false).map_err(|error| {
        let name = object_name(applied, manager);
        ApplyError::Undeclared(format!(
            "failed to create typed patch object ({name}): {error}"
        ))
    })?;

    let mut before = live
        .cloned()
        .unwrap_or_else(|| json!({ "apiVersion": version, "kind": text(applied, "kind") }));
    let mut managers = managed::of(Some(&before));
    managed::strip(&mut before);
    let id = manager.id(Operation::Apply);
    let reset = manager.reset_fields();
    if managers.is_empty() {
        // No manager was tracked so far, so all fields existed before the first apply.
        let nobody = Id {
            manager: BEFORE_FIRST_APPLY.to_owned(),
            ..manager.id(Operation::Update)
        };
        update::update(
            place,
            &manager.start(),
            &before,
            &mut managers,
            &nobody,
            &reset,
            now,
        )
        .map_err(ApplyError::Undeclared)?;
    }
    let mut tried = managers.clone();
    let result = update::apply(
        place,
        &before,
        applied,
        &mut tried,
        (&id, version),
        &reset,
        force,
    );
    let mut new = match result {
        Ok(new) => new,
        Err(Failure::Merge(error)) => return Err(ApplyError::Undeclared(error)),
        Err(Failure::Conflicts(mut conflicts)) => {
            if manager.name == last_applied::MANAGER
                && let Some(allowed) = last_applied::unchanged_since(place, &before, version)
            {
                conflicts.retain(|(_, path)| !allowed.has(path));
            }
            if !conflicts.is_empty() {
                return Err(ApplyError::Conflict(
                    conflicts.iter().map(conflict).collect(),
                ));
            }
            tried = managers;
            match update::apply(
                place,
                &before,
                applied,
                &mut tried,
                (&id, version),
                &reset,
                true,
            ) {
                Ok(new) => new,
                Err(Failure::Merge(error)) => return Err(ApplyError::Undeclared(error)),
                Err(Failure::Conflicts(conflicts)) => {
                    return Err(ApplyError::Conflict(
                        conflicts.iter().map(conflict).collect(),
                    ));
                }
            }
        }
    };
    if !compare::equal(&before, &new)
        && let Some(owned) = tried.get_mut(&id)
    {
        owned.time = Some(now.to_owned());
    }
    if manager.name == last_applied::MANAGER {
        last_applied::refresh(&mut new, applied);
    }
    managed::encode(&tried, &mut new);
    Ok(new)
}

/// The manager that owns the fields from before ownership was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn conflict((id, path): &(Id, Vec<Step>)) -> Conflict {
    Conflict {
        manager: id.manager.clone(),
        message: format!("conflict with {id}"),
        field: set::text(path),
    }
}

/// Returns the name of an object as in the server's own errors:
/// `default/x; example.com/v1, Kind=Widget`.
fn object_name(object: &Value, manager: &Manager<'_>) -> String {
    let metadata = |name: &str| {
        object
            .get("metadata")
            .map_or("", |metadata| text(metadata, name))
    };
    let version = if manager.api_version.contains('/') {
        ""
    } else {
        "/"
    };
    format!(
        "{}/{}; {version}{}, Kind={}",
        metadata("namespace"),
        metadata("name"),
        manager.api_version,
        text(object, "kind")
    )
}
