//! Cluster roles that are made of others.
//!
//! Owns the behaviour of kube-controller-manager's controller of them (k8s.io/kubernetes
//! `pkg/controller/clusterroleaggregation`), within the write that changes a role. Must not know
//! which users have a role.

use serde_json::{Value, json};

use super::rbac::{CLUSTER_ROLES, GROUP};
use crate::kinds::{Kind, Target};
use crate::object::Key;
use crate::ownership;
use crate::selector::{self, Selector};
use crate::state::Inner;

/// Roles may be made of roles that are made of others. A circle of them ends here.
const ROUNDS: usize = 8;

/// Follows a write or a removal: fills the roles that are made of cluster roles.
pub(crate) fn after_write(inner: &mut Inner, kind: &Kind) {
    if &*kind.storage == CLUSTER_ROLES && !inner.partial && inner.controllers {
        fill(inner);
    }
}

/// Fills every cluster role that is made of others.
pub(super) fn fill(inner: &mut Inner) {
    let Some(target) = inner.registry.find(GROUP, "v1", "clusterroles") else {
        return;
    };
    let storage = target.kind.storage.clone();
    for _ in 0..ROUNDS {
        let changed = changed(inner, &target);
        if changed.is_empty() {
            return;
        }
        for (key, role) in changed {
            inner.store.put(&storage, key, role);
        }
    }
}

/// Returns the roles whose rules are no longer those of the roles that they are made of.
fn changed(inner: &Inner, target: &Target) -> Vec<(Key, Value)> {
    let mut changed = Vec::new();
    for (key, live) in inner.store.list(CLUSTER_ROLES, None) {
        let selectors = live.pointer("/aggregationRule/clusterRoleSelectors");
        let Some(selectors) = selectors.and_then(Value::as_array) else {
            continue;
        };
        let rules = rules(inner, target, &key.name, selectors);
        let old = live.get("rules").and_then(Value::as_array);
        if old.map_or(0, Vec::len) == rules.len() && old.is_none_or(|old| *old == rules) {
            continue;
        }
        let mut new = Value::clone(&live);
        new["rules"] = json!(rules);
        let name = "clusterrole-aggregation-controller";
        ownership::track(target, (&live, &mut new), name, ("", &[]));
        changed.push((key.clone(), new));
    }
    changed
}

/// Returns the rules of all roles that are selected, each once.
fn rules(inner: &Inner, target: &Target, name: &str, selectors: &[Value]) -> Vec<Value> {
    let mut rules: Vec<Value> = Vec::new();
    for labels in selectors {
        let text = match labels.as_object() {
            Some(map) if map.is_empty() => Some(String::new()),
            _ => selector::text(labels),
        };
        let selector = text.and_then(|text| Selector::parse(target, &text, "").ok());
        let Some(selector) = selector else {
            continue;
        };
        for (key, role) in inner.store.list(CLUSTER_ROLES, None) {
            if key.name == name || !selector.matches(&role) {
                continue;
            }
            let more = role.get("rules").and_then(Value::as_array);
            for rule in more.into_iter().flatten() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    rules
}
