//! The status of a definition: its conditions, its accepted names, and the versions that its
//! objects were stored in.
//!
//! Owns what kube-apiserver's controllers write there. Must not know how kinds are served.

use serde_json::{Value, json};
use vmhost_merge::RESET_STATUS;

use super::{approval, names};
use crate::kinds::Target;
use crate::meta;
use crate::object::{Key, Object};
use crate::ownership;
use crate::state::Inner;

/// Updates the status, as a controller of a real server would.
pub(super) fn write(inner: &mut Inner, target: &Target, key: &Key, live: &Object) {
    let status = status_of(inner, live);
    if live.get("status") == Some(&status) {
        return;
    }
    let mut new = Value::clone(live);
    new["status"] = status;
    let part = ("status", RESET_STATUS);
    ownership::track(target, (live, &mut new), "kube-apiserver", part);
    inner.store.put(&target.kind.storage, key.clone(), new);
}

/// Sets the condition that a definition is being deleted.
pub(super) fn terminating(definition: &mut Value) {
    let condition = condition(
        definition,
        "Terminating",
        true,
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
    );
    set_condition(&mut definition["status"], condition);
}

fn status_of(inner: &Inner, definition: &Value) -> Value {
    let mut status = definition
        .get("status")
        .filter(|s| s.is_object())
        .cloned()
        .unwrap_or_else(|| json!({}));
    let (accepted, conflict) = names::accept(inner, definition);
    status["acceptedNames"] = accepted;
    let fine = ("NoConflicts", "no conflicts found".to_owned());
    let (reason, text) = conflict.clone().unwrap_or(fine);
    let accepted = condition(
        definition,
        "NamesAccepted",
        conflict.is_none(),
        reason,
        &text,
    );
    set_condition(&mut status, accepted);
    if conflict.is_none() && !has_condition(definition, "Established") {
        let text = "the initial names have been accepted";
        let reason = "InitialNamesAccepted";
        let established = condition(definition, "Established", true, reason, text);
        set_condition(&mut status, established);
    } else if !has_condition(definition, "Established") {
        let text = "not all names are accepted";
        let refused = condition(definition, "Established", false, "NotAccepted", text);
        set_condition(&mut status, refused);
    }
    if let Some(approval) = approval::of(definition) {
        let kind = "KubernetesAPIApprovalPolicyConformant";
        let (approved, reason) = (approval.approved, approval.reason);
        let approved = condition(definition, kind, approved, reason, &approval.text);
        set_condition(&mut status, approved);
    }
    if let Some(version) = storage_version(definition) {
        let stored = &mut status["storedVersions"];
        match stored.as_array_mut() {
            Some(list) if list.iter().any(|v| v == version) => {}
            Some(list) => list.push(json!(version)),
            None => *stored = json!([version]),
        }
    }
    status
}

/// Returns the version in which a definition's objects are stored.
pub(super) fn storage_version(definition: &Value) -> Option<&str> {
    let versions = definition.pointer("/spec/versions")?.as_array()?;
    versions
        .iter()
        .find(|v| v["storage"] == json!(true))?
        .get("name")?
        .as_str()
}

pub(super) fn has_condition(definition: &Value, kind: &str) -> bool {
    let conditions = definition
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|c| c["type"] == kind && c["status"] == "True")
}

fn condition(definition: &Value, kind: &str, status: bool, reason: &str, message: &str) -> Value {
    let status = if status { "True" } else { "False" };
    let conditions = definition
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let before = conditions
        .into_iter()
        .flatten()
        .find(|c| c["type"] == kind && c["status"] == status);
    let since = before
        .and_then(|c| c["lastTransitionTime"].as_str())
        .map_or_else(meta::now, str::to_owned);
    json!({ "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since })
}

fn set_condition(status: &mut Value, condition: Value) {
    let conditions = &mut status["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    if let Some(list) = conditions.as_array_mut() {
        match list.iter_mut().find(|c| c["type"] == condition["type"]) {
            Some(at) => *at = condition,
            None => list.push(condition),
        }
    }
}
