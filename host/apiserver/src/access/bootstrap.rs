//! The roles and bindings that every cluster has.
//!
//! Owns their table (`policy.json`), which is what kube-apiserver creates when it starts; the test
//! `access` compares the two. Must not know what roles mean.

use serde_json::{Value, json};
use vmhost_merge::{Manager, track_update};

use super::aggregate;
use super::rbac::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, GROUP, ROLE_BINDINGS, ROLES};
use crate::meta;
use crate::object::Key;
use crate::state::Inner;

/// Creates what is missing. What exists is left as an administrator changed it.
pub(crate) fn ensure(inner: &mut Inner) {
    // The table is embedded and a test reads it.
    let policy: Vec<Value> = serde_json::from_str(include_str!("policy.json")).unwrap_or_default();
    for object in policy {
        create(inner, object);
    }
    if inner.controllers {
        aggregate::fill(inner);
    }
}

fn create(inner: &mut Inner, mut object: Value) {
    let (storage, plural) = match object.get("kind").and_then(Value::as_str) {
        Some("ClusterRole") => (CLUSTER_ROLES, "clusterroles"),
        Some("ClusterRoleBinding") => (CLUSTER_ROLE_BINDINGS, "clusterrolebindings"),
        Some("Role") => (ROLES, "roles"),
        _ => (ROLE_BINDINGS, "rolebindings"),
    };
    let key = Key::new(
        meta::text(&object, "namespace"),
        meta::text(&object, "name"),
    );
    if inner.store.contains(storage, &key) {
        return;
    }
    let api_version = format!("{GROUP}/v1");
    object["apiVersion"] = json!(api_version);
    let now = meta::now();
    meta::set(&mut object, "uid", Some(json!(meta::new_uid())));
    meta::set(&mut object, "creationTimestamp", Some(json!(now)));
    let target = inner.registry.find(GROUP, "v1", plural);
    let version = target.as_ref().map(|target| target.version());
    let manager = Manager {
        name: "kube-apiserver",
        api_version: &api_version,
        empty: version.and_then(|version| version.empty.as_ref()),
        ..Manager::default()
    };
    let schema = target.as_ref().and_then(|target| target.schema());
    track_update(schema, None, &mut object, &manager, &now);
    inner.store.put(&storage.into(), key, object);
}

#[cfg(test)]
mod tests {
    use super::super::ask::Ask;
    use super::super::rbac::decide_for;
    use super::super::user::User;
    use crate::state::State;

    use super::*;

    #[test]
    fn every_user_may_look_around_and_nobody_else_may_do_more() {
        let state = State::new();
        state.write(ensure);
        let before = state.read(|inner| inner.store.version());
        state.write(ensure);
        assert_eq!(state.read(|inner| inner.store.version()), before);

        let path = |path: &str| Ask {
            verb: "get".to_owned(),
            path: Some(path.to_owned()),
            ..Ask::default()
        };
        let secrets = Ask {
            verb: "list".to_owned(),
            resource: "secrets".to_owned(),
            ..Ask::default()
        };
        let decide = |user: &User, ask: &Ask| state.read(|i| decide_for(i, user, ask).allowed);
        let (nobody, alice) = (User::anonymous(), User::known("alice", Vec::new()));
        assert!(decide(&nobody, &path("/healthz")) && decide(&nobody, &path("/version")));
        assert!(!decide(&nobody, &path("/apis")));
        assert!(decide(&alice, &path("/apis/apps/v1")) && decide(&alice, &path("/openapi/v3")));
        assert!(!decide(&alice, &path("/metrics")) && !decide(&alice, &secrets));
    }
}
