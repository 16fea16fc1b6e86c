//! Ownership after a write that is not an apply, and the times of ownership after any write.
//!
//! Follows k8s.io/apimachinery `util/managedfields/internal`. Must not know how the new object was
//! created.

use serde_json::Value;
use vmhost_schema::Schema;

use crate::compare;
use crate::managed::{self, Id, Managers, Operation};
use crate::manager::Manager;
use crate::set::Set;
use crate::shape::Place;
use crate::update;

/// Sets the ownership of `new` after a write that is not an apply: POST (`live` is `None`), PUT and
/// patches.
///
/// `new` is the object to be stored, with `manager.reset` restored. A new object is compared with
/// `manager.empty`. A client that sends its own list replaces the ownership with it, except through
/// a subresource; `[{}]` ends the tracking, and so does an empty list on a built-in kind.
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
    let mut before = live.cloned().unwrap_or_else(|| manager.start());
    managed::strip(&mut before);
    let open = Schema::open();
    let place = Place::root(schema.unwrap_or(&open).root());
    let id = manager.id(Operation::Update);
    let mut tried = managers.clone();
    // An object that does not fit its schema keeps its ownership, because no better one can be
    // computed.
    if update::update(
        place,
        &before,
        new,
        &mut tried,
        &id,
        &manager.reset_fields(),
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

/// Restores the live times of ownership in `new` if nothing else differs, so that a write that
/// changes nothing is detected. Follows k8s.io/apiserver
/// `endpoints/handlers/fieldmanager/equality.go`.
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

/// Returns the entries without their times, in an order that does not depend on the times.
fn timeless(list: &Value) -> Option<Vec<(Id, Set, String)>> {
    let managers = managed::decode(list)?;
    Some(
        managers
            .into_iter()
            .map(|(id, owned)| (id, owned.set, owned.api_version))
            .collect(),
    )
}

/// Returns whether a version belongs to a CustomResourceDefinition, judging by its group.
fn is_custom(api_version: &str) -> bool {
    api_version
        .split_once('/')
        .is_some_and(|(group, _)| group.contains('.') && !group.ends_with(".k8s.io"))
}
