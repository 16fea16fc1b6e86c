//! Server-side apply and field ownership: `metadata.managedFields` as kube-apiserver keeps them.
//!
//! Owns the merge of an applied object into the live one and the ownership of every field after any kind of write
//! (sigs.k8s.io/structured-merge-diff v6 and k8s.io/apimachinery `util/managedfields`, as of Kubernetes 1.36).
//! Must not know: storage, HTTP, validation, clocks.

mod compare;
mod last_applied;
mod managed;
mod merge;
mod set;
mod shape;
mod update;
mod walk;

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::schema::{Node, Schema};
use managed::{Id, Managers, Operation};
use set::Set;
use shape::Place;
use update::Failure;

/// Who writes, and through which door.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manager<'a> {
    /// The `fieldManager` of the request.
    pub name: &'a str,
    /// The `apiVersion` that the request speaks, as `apps/v1`.
    pub api_version: &'a str,
    /// `""` or `"status"`.
    pub subresource: &'a str,
    /// Fields that this door cannot write, as dotted paths (`"status"`): the caller puts them back to their
    /// live values, and nobody gains or loses ownership of them through this write.
    /// See [`RESET_MAIN`], [`RESET_STATUS`].
    pub reset: &'a [&'a str],
}

/// What a write to the main resource resets when the kind has a status subresource.
pub const RESET_MAIN: &[&str] = &["status"];

/// What a write to the status subresource resets.
pub const RESET_STATUS: &[&str] = &["spec", "metadata"];

/// Why an apply was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields with other values (409); `force` would take them.
    #[error("{}", conflict_text(.0))]
    Conflict(Vec<Conflict>),
    /// The object does not fit the schema: a field that it does not declare, a wrong type, a list item without its
    /// keys, a duplicate (500).
    #[error("{0}")]
    Undeclared(String),
    /// The request itself is no good (400).
    #[error("{0}")]
    Invalid(String),
}

/// One field of another manager that an apply would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Name of the manager that owns the field.
    pub manager: String,
    /// `conflict with "one"`, or `conflict with "one" using v1` when it was an update: the text of the `Status` cause.
    pub message: String,
    /// `.spec.size`
    pub field: String,
}

/// The message of the `Status`.
fn conflict_text(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!(
            "Apply failed with 1 conflict: {}: {}",
            one.message, one.field
        );
    }
    let mut text = format!("Apply failed with {} conflicts: ", conflicts.len());
    let mut last = "";
    let mut lines = Vec::new();
    for conflict in conflicts {
        if conflict.message != last {
            lines.push(format!(
                "{}:",
                conflict.message.replacen("conflict", "conflicts", 1)
            ));
            last = &conflict.message;
        }
        lines.push(format!("- {}", conflict.field));
    }
    text.push_str(&lines.join("\n"));
    text
}

/// Merges `applied` into `live` on behalf of `manager` and returns the new object with its new `metadata.managedFields`.
///
/// `applied` must carry `apiVersion`, `kind` and the name; `now` is an RFC 3339 time in seconds. The result is neither
/// defaulted nor validated, and the fields in `manager.reset` are the caller's to put back. After that,
/// [`keep_times`] makes an apply that changed nothing the same object as before.
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
    let open = open();
    let place = place(schema, &open);
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
    let id = id(manager, Operation::Apply);
    let reset = reset(manager);
    if managers.is_empty() {
        // Nobody was tracked so far: whatever is there was there before the first apply.
        let nobody = Id {
            manager: BEFORE_FIRST_APPLY.to_owned(),
            ..self::id(manager, Operation::Update)
        };
        update::update(
            place,
            &json!({}),
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

/// Sets the ownership of `new` after a write that is not an apply: POST (`live` is `None`), PUT and patches.
///
/// `new` is the object as it is about to be stored, with `manager.reset` put back. A client that sends a list of its
/// own replaces the ownership with it, except through a subresource; `[{}]` ends the tracking, and so does an empty list on
/// a built-in kind.
pub fn track_update(
    schema: Option<&Schema>,
    live: Option<&Value>,
    new: &mut Value,
    manager: &Manager<'_>,
    now: &str,
) {
    let sent = managed::list(new).cloned();
    let mut managers = match &sent {
        Some(_) if !manager.subresource.is_empty() => managed::of(live),
        Some(list) if managed::is_reset(list, is_custom(manager.api_version)) => Managers::new(),
        Some(list) => match managed::decode(list) {
            Some(managers) if !managers.is_empty() => managers,
            _ => managed::of(live),
        },
        None => managed::of(live),
    };
    managed::strip(new);
    let exists = live
        .and_then(|live| live.get("metadata"))
        .and_then(|metadata| metadata.get("uid"))
        .is_some();
    if managers.is_empty() && exists {
        return;
    }
    let mut before = live.cloned().unwrap_or_else(|| json!({}));
    managed::strip(&mut before);
    let open = open();
    let id = id(manager, Operation::Update);
    let mut tried = managers.clone();
    // An object that does not fit its schema keeps the ownership it had, as nothing better can be said.
    if update::update(
        place(schema, &open),
        &before,
        new,
        &mut tried,
        &id,
        &reset(manager),
        now,
    )
    .is_ok()
    {
        managers = tried;
        managed::cap(&mut managers);
    }
    managed::encode(&managers, new);
    if let Some(live) = live {
        keep_times(live, new);
    }
}

/// Gives `new` the live times of ownership back when nothing else differs, so that a write that changes nothing is
/// seen as one. Follows k8s.io/apiserver `endpoints/handlers/fieldmanager/equality.go`.
pub fn keep_times(live: &Value, new: &mut Value) {
    let (Some(old), Some(list)) = (managed::list(live), managed::list(new)) else {
        return;
    };
    if timeless(old) != timeless(list) {
        return;
    }
    let old = old.clone();
    let (mut a, mut b) = (live.clone(), new.clone());
    managed::strip(&mut a);
    managed::strip(&mut b);
    if compare::equal(&a, &b) {
        new["metadata"]["managedFields"] = old;
    }
}

/// Entries without their times, in an order that does not depend on them.
fn timeless(list: &Value) -> Option<Vec<(Id, Set, String)>> {
    let managers = managed::decode(list)?;
    Some(
        managers
            .into_iter()
            .map(|(id, owned)| (id, owned.set, owned.api_version))
            .collect(),
    )
}

/// Who owns what was there before ownership was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

fn open() -> Node {
    Node {
        kind: Some(crate::schema::Type::Object),
        preserve: true,
        embedded: true,
        ..Node::default()
    }
}

fn place<'a>(schema: Option<&'a Schema>, open: &'a Node) -> Place<'a> {
    Place::root(schema.map_or(open, Schema::root))
}

/// Whether a version belongs to a CustomResourceDefinition, as far as its group tells.
fn is_custom(api_version: &str) -> bool {
    api_version
        .split_once('/')
        .is_some_and(|(group, _)| group.contains('.') && !group.ends_with(".k8s.io"))
}

fn reset(manager: &Manager<'_>) -> Set {
    Set::of_fields(manager.reset.iter().copied())
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn id(manager: &Manager<'_>, operation: Operation) -> Id {
    Id {
        manager: if manager.name.is_empty() {
            "unknown"
        } else {
            manager.name
        }
        .to_owned(),
        operation,
        api_version: if operation == Operation::Apply {
            ""
        } else {
            manager.api_version
        }
        .to_owned(),
        subresource: manager.subresource.to_owned(),
    }
}

fn conflict((id, path): &(Id, Vec<set::Step>)) -> Conflict {
    Conflict {
        manager: id.manager.clone(),
        message: format!("conflict with {id}"),
        field: set::text(path),
    }
}

/// `default/x; example.com/v1, Kind=Widget`, as the server's own errors name an object.
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
