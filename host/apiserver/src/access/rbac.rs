//! Role-based access control: the rules that a user's roles give.
//!
//! Owns which bindings apply to a user and which role they name (k8s.io/kubernetes
//! `pkg/registry/rbac/validation`). Must not know what a rule allows, or requests.

use serde_json::Value;

use super::ask::Ask;
use super::credentials::Author;
use super::rule::Rule;
use super::user::{MASTERS, User, as_service_account};
use crate::meta;
use crate::object::Key;
use crate::state::Inner;

pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";
pub(crate) const ROLES: &str = "rbac.authorization.k8s.io/roles";
pub(crate) const CLUSTER_ROLES: &str = "rbac.authorization.k8s.io/clusterroles";
pub(crate) const ROLE_BINDINGS: &str = "rbac.authorization.k8s.io/rolebindings";
pub(crate) const CLUSTER_ROLE_BINDINGS: &str = "rbac.authorization.k8s.io/clusterrolebindings";

/// An answer to a question, with the reason for people.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub allowed: bool,
    pub reason: String,
}

/// A role that a binding names and that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoRole {
    /// `role` or `clusterrole`.
    pub what: &'static str,
    pub name: String,
}

impl std::fmt::Display for NoRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{GROUP} {:?} not found", self.what, self.name)
    }
}

/// Returns whether a user may do something.
pub(crate) fn decide(inner: &Inner, author: &Author, ask: &Ask) -> Decision {
    if !author.access.rbac {
        return Decision {
            allowed: true,
            reason: "a development server allows everything".to_owned(),
        };
    }
    decide_for(inner, &author.user, ask)
}

/// Returns whether the roles of a user allow something.
pub(crate) fn decide_for(inner: &Inner, user: &User, ask: &Ask) -> Decision {
    let allowed = |reason: String| Decision {
        allowed: true,
        reason,
    };
    if user.is_in(MASTERS) {
        return allowed(String::new());
    }
    let mut absent = Vec::new();
    for (binding, subject, cluster) in bindings(inner, user, &ask.namespace) {
        let namespace = if cluster { "" } else { ask.namespace.as_str() };
        match rules_of(inner, &binding["roleRef"], namespace) {
            Ok(rules) if rules.iter().any(|rule| rule.allows(ask)) => {
                let by = source(binding, subject, cluster);
                return allowed(format!("RBAC: allowed by {by}"));
            }
            Ok(_) => {}
            Err(no_role) => absent.push(no_role),
        }
    }
    let reason = match told(&absent) {
        why if why.is_empty() => why,
        why => format!("RBAC: {why}"),
    };
    Decision {
        allowed: false,
        reason,
    }
}

/// Returns the words for roles that do not exist; empty if there are none.
pub(crate) fn told(absent: &[NoRole]) -> String {
    let mut texts: Vec<String> = absent.iter().map(ToString::to_string).collect();
    texts.sort();
    texts.dedup();
    match texts.as_slice() {
        [] | [_] => texts.concat(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// Returns all rules of a user in a namespace, and the roles that are missing.
pub(crate) fn rules_for<'s>(
    inner: &'s Inner,
    user: &User,
    namespace: &'s str,
) -> (Vec<Rule<'s>>, Vec<NoRole>) {
    let (mut rules, mut absent) = (Vec::new(), Vec::new());
    for (binding, _, cluster) in bindings(inner, user, namespace) {
        let of = if cluster { "" } else { namespace };
        match rules_of(inner, &binding["roleRef"], of) {
            Ok(more) => rules.extend(more),
            Err(no_role) => absent.push(no_role),
        }
    }
    (rules, absent)
}

/// Returns the rules of the role that a binding in this namespace names.
pub(crate) fn rules_of<'s>(
    inner: &'s Inner,
    reference: &Value,
    namespace: &str,
) -> Result<Vec<Rule<'s>>, NoRole> {
    let text = |field: &str| reference.get(field).and_then(Value::as_str);
    let name = text("name").unwrap_or_default();
    let (what, storage, namespace) = match text("kind") {
        Some("ClusterRole") => ("clusterrole", CLUSTER_ROLES, ""),
        Some("Role") => ("role", ROLES, namespace),
        // A reference to anything else gives nothing.
        _ => {
            let name = name.to_owned();
            return Err(NoRole { what: "role", name });
        }
    };
    let role = inner.store.get(storage, &Key::new(namespace, name));
    role.map(|role| Rule::of_role(role)).ok_or_else(|| NoRole {
        what,
        name: name.to_owned(),
    })
}

/// Returns the bindings that apply to a user: each with the subject that names the user, and
/// whether it is a ClusterRoleBinding.
fn bindings<'s>(
    inner: &'s Inner,
    user: &User,
    namespace: &'s str,
) -> Vec<(&'s Value, &'s Value, bool)> {
    let of_cluster = inner.store.list(CLUSTER_ROLE_BINDINGS, None);
    let of_cluster = of_cluster.map(|(_, binding)| (&**binding, true));
    let of_namespace = inner.store.list(ROLE_BINDINGS, Some(namespace));
    let of_namespace = of_namespace
        .filter(|_| !namespace.is_empty())
        .map(|(_, binding)| (&**binding, false));
    let mut found = Vec::new();
    for (binding, cluster) in of_cluster.chain(of_namespace) {
        let subjects = binding.get("subjects").and_then(Value::as_array);
        let own = if cluster { "" } else { namespace };
        let names = |subject: &&Value| applies(subject, user, own);
        if let Some(subject) = subjects.into_iter().flatten().find(names) {
            found.push((binding, subject, cluster));
        }
    }
    found
}

fn applies(subject: &Value, user: &User, namespace: &str) -> bool {
    let text = |field: &str| subject.get(field).and_then(Value::as_str);
    let name = text("name").unwrap_or_default();
    match text("kind") {
        Some("User") => user.name == name,
        Some("Group") => user.is_in(name),
        Some("ServiceAccount") => {
            let namespace = text("namespace")
                .filter(|n| !n.is_empty())
                .unwrap_or(namespace);
            !namespace.is_empty() && as_service_account(&user.name) == Some((namespace, name))
        }
        _ => false,
    }
}

/// Names a binding with its role and its subject.
fn source(binding: &Value, subject: &Value, cluster: bool) -> String {
    let text = |object: &Value, field: &str| {
        let text = object.get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let role = &binding["roleRef"];
    let (name, namespace) = (
        meta::text(binding, "name"),
        meta::text(binding, "namespace"),
    );
    let binding = match cluster {
        true => format!("ClusterRoleBinding {name:?}"),
        false => format!("RoleBinding {:?}", format!("{name}/{namespace}")),
    };
    let (kind, mut who) = (text(subject, "kind"), text(subject, "name"));
    if kind == "ServiceAccount" {
        let own = text(subject, "namespace");
        let of = if own.is_empty() {
            namespace
        } else {
            own.as_str()
        };
        who = format!("{who}/{of}");
    }
    format!(
        "{binding} of {} {:?} to {kind} {who:?}",
        text(role, "kind"),
        text(role, "name")
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::state::State;

    fn put(inner: &mut Inner, storage: &str, namespace: &str, name: &str, mut object: Value) {
        object["metadata"] = json!({ "name": name, "namespace": namespace });
        let storage: Arc<str> = storage.into();
        inner.store.put(&storage, Key::new(namespace, name), object);
    }

    fn pods(verb: &str, namespace: &str) -> Ask {
        Ask {
            verb: verb.to_owned(),
            resource: "pods".to_owned(),
            namespace: namespace.to_owned(),
            ..Ask::default()
        }
    }

    /// A cluster in which a role in `n` and a cluster role allow to get and list pods.
    fn cluster() -> Arc<State> {
        let state = State::new();
        state.write(|inner| {
            let rule = |verb: &str| json!({ "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": [verb] }] });
            put(inner, ROLES, "n", "reader", rule("get"));
            put(inner, CLUSTER_ROLES, "", "lister", rule("list"));
            let robot = json!({ "kind": "ServiceAccount", "name": "robot" });
            let devs = json!({ "kind": "Group", "name": "devs" });
            let binding = |kind: &str, name: &str, subject: &Value| json!({ "roleRef": { "kind": kind, "name": name }, "subjects": [subject] });
            put(inner, ROLE_BINDINGS, "n", "robots", binding("Role", "reader", &robot));
            put(inner, ROLE_BINDINGS, "n", "lost", binding("Role", "gone", &robot));
            put(inner, CLUSTER_ROLE_BINDINGS, "", "devs", binding("ClusterRole", "lister", &devs));
        });
        state
    }

    #[test]
    fn bindings_give_the_rules_of_their_roles() {
        let state = cluster();
        let robot = User::known("system:serviceaccount:n:robot", Vec::new());
        let dev = User::known("alice", vec!["devs".to_owned()]);
        let decide = |user: &User, ask: &Ask| state.read(|inner| decide_for(inner, user, ask));
        let allowed = decide(&robot, &pods("get", "n"));
        assert_eq!(
            allowed.reason,
            r#"RBAC: allowed by RoleBinding "robots/n" of Role "reader" to ServiceAccount "robot/n""#
        );
        assert!(allowed.allowed);
        let denied = decide(&robot, &pods("list", "n"));
        assert!(!denied.allowed);
        assert_eq!(
            denied.reason,
            r#"RBAC: role.rbac.authorization.k8s.io "gone" not found"#
        );
        assert!(!decide(&robot, &pods("get", "other")).allowed);
        assert!(!decide(&robot, &pods("get", "")).allowed);
        for namespace in ["", "n", "other"] {
            assert!(decide(&dev, &pods("list", namespace)).allowed);
            assert!(!decide(&dev, &pods("get", namespace)).allowed);
        }
        let master = User::known("root", vec![MASTERS.to_owned()]);
        assert!(decide(&master, &pods("anything", "")).allowed);
        assert!(!decide(&User::anonymous(), &pods("get", "n")).allowed);
    }
}
