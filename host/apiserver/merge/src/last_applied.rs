//! The annotation of client-side apply, for objects that kubectl moves to server-side apply.
//!
//! Follows k8s.io/apimachinery `util/managedfields/internal/lastapplied*.go`, which concerns only
//! the manager `kubectl`.

use serde_json::Value;

use crate::compare::compare;
use crate::set::Set;
use crate::shape::Place;
use crate::walk;

/// The only manager whose fields are moved.
pub(crate) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn annotation(object: &Value) -> Option<&str> {
    object
        .get("metadata")?
        .get("annotations")?
        .get(ANNOTATION)?
        .as_str()
        .filter(|text| !text.is_empty())
}

/// Returns the fields that client-side apply set and that have not changed since. Taking them is no
/// conflict.
pub(crate) fn unchanged_since(place: Place<'_>, live: &Value, api_version: &str) -> Option<Set> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return None;
    }
    walk::check(place, &last, false).ok()?;
    let changes = compare(place, &last, live).ok()?;
    let set = walk::fields(place, &last);
    Some(
        set.difference(&changes.modified)
            .difference(&changes.added)
            .difference(&changes.removed),
    )
}

/// Updates the annotation to the applied object, if the annotation exists.
pub(crate) fn refresh(object: &mut Value, applied: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(annotations) = applied
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        annotations.remove(ANNOTATION);
    }
    if let Some(annotations) = object
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        annotations.insert(ANNOTATION.to_owned(), Value::String(format!("{applied}\n")));
    }
}
