//! Computes field ownership after a write.
//!
//! Follows structured-merge-diff `merge/update.go` and k8s.io/apimachinery's stripmeta.go. An
//! update takes ownership of what it changes. An apply takes ownership of what it states, and
//! removes fields that it no longer states and that no other manager owns. Must not know the form
//! of `managedFields`.

use serde_json::Value;

use crate::compare::{Comparison, compare};
use crate::managed::{Id, Managers, Owned};
use crate::merge::merge;
use crate::set::{Set, Step};
use crate::shape::Place;
use crate::walk;

/// Fields that no manager can own.
const NEVER_OWNED: [&str; 12] = [
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
];

/// Why an apply failed.
pub(crate) enum Failure {
    /// The conflicting fields, by owner.
    Conflicts(Vec<(Id, Vec<Step>)>),
    /// The merge itself failed.
    Merge(String),
}

fn strip_meta(set: &Set) -> Set {
    set.difference(&Set::of_fields(NEVER_OWNED))
}

/// Adapts all sets to the current schema.
pub(crate) fn reconcile(place: Place<'_>, managers: &mut Managers) {
    for owned in managers.values_mut() {
        owned.set = walk::reconcile(place, &owned.set);
    }
}

/// Takes the changed fields from every manager but `except`. Without `force`, fails if another
/// manager owns a changed field.
fn take(
    managers: &mut Managers,
    changes: &Comparison,
    except: Option<&Id>,
    force: bool,
) -> Result<(), Failure> {
    let changed = changes.modified.union(&changes.added);
    let mut conflicts = Vec::new();
    for (id, owned) in managers.iter().filter(|(id, _)| except != Some(*id)) {
        for path in owned.set.intersection(&changed).paths() {
            conflicts.push((id.clone(), path));
        }
    }
    if !force && !conflicts.is_empty() {
        return Err(Failure::Conflicts(conflicts));
    }
    for (_, owned) in managers.iter_mut().filter(|(id, _)| except != Some(*id)) {
        owned.set = owned.set.difference(&changed).difference(&changes.removed);
    }
    managers.retain(|_, owned| !owned.set.is_empty());
    Ok(())
}

/// Computes the ownership after an update by `id`.
pub(crate) fn update(
    place: Place<'_>,
    live: &Value,
    new: &Value,
    managers: &mut Managers,
    id: &Id,
    reset: &Set,
    now: &str,
) -> Result<(), String> {
    reconcile(place, managers);
    let changes = compare(place, live, new)?.without(reset);
    // With force: an update never conflicts.
    if let Err(Failure::Merge(error)) = take(managers, &changes, None, true) {
        return Err(error);
    }
    let own = strip_meta(&changes.modified.union(&changes.added));
    if !own.is_empty() {
        let before = managers
            .remove(id)
            .map(|owned| owned.set)
            .unwrap_or_default();
        let owned = Owned {
            set: own.union(&before),
            api_version: id.api_version.clone(),
            time: Some(now.to_owned()),
        };
        managers.insert(id.clone(), owned);
    }
    Ok(())
}

/// Returns the merged object, and computes the ownership after an apply by `id`.
pub(crate) fn apply(
    place: Place<'_>,
    live: &Value,
    applied: &Value,
    managers: &mut Managers,
    writer: (&Id, &str),
    reset: &Set,
    force: bool,
) -> Result<Value, Failure> {
    let (id, api_version) = writer;
    reconcile(place, managers);
    let merged = merge(place, live, applied)
        .map_err(|error| Failure::Merge(format!("failed to merge config: {error}")))?;
    let last = managers.remove(id);
    let set = walk::fields(place, applied).recursive_difference(reset);
    let time = last.as_ref().and_then(|owned| owned.time.clone());
    managers.insert(
        id.clone(),
        Owned {
            set,
            api_version: api_version.to_owned(),
            time,
        },
    );
    let new = prune(place, merged, managers, last.map(|owned| owned.set));
    let changes = compare(place, live, &new)
        .map_err(|error| Failure::Merge(format!("failed to compare objects: {error}")))?
        .without(reset);
    take(managers, &changes, Some(id), force)?;
    if let Some(owned) = managers.get_mut(id) {
        owned.set = strip_meta(&owned.set);
        if owned.set.is_empty() {
            managers.remove(id);
        }
    }
    Ok(new)
}

/// Removes the fields of the manager's last apply, unless it states them again or another manager
/// owns them.
fn prune(place: Place<'_>, merged: Value, managers: &Managers, last: Option<Set>) -> Value {
    let Some(last) = last.filter(|last| !last.is_empty()) else {
        return merged;
    };
    let parents = |set: &Set| walk::with_parents(Some(place), set);
    let object = |value: Value| {
        if value.is_null() {
            Value::Object(serde_json::Map::new())
        } else {
            value
        }
    };
    let remove = |set: &Set| object(walk::remove(place, &merged, set));
    let last = parents(&last);
    let pruned = remove(&last);

    // Keep what any manager owns, with its ancestors.
    let owned = managers
        .values()
        .fold(Set::default(), |all, owned| all.union(&owned.set));
    let all = parents(&walk::fields(place, &merged));
    let kept = parents(&walk::fields(place, &pruned)).union(&parents(&owned));
    let pruned = remove(&all.difference(&kept));

    // Keep what the manager did not own before.
    let kept = parents(&walk::fields(place, &pruned));
    remove(&all.difference(&kept).intersection(&last))
}
