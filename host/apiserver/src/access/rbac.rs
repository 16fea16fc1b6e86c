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
use crate::object::{Key, Object};
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
    for binding in bindings(inner, user, &ask.namespace) {
        let of = binding.namespace(&ask.namespace);
        match role_of(inner, &binding.object["roleRef"], of) {
            Ok(role) if Rule::of_role(&role).iter().any(|rule| rule.allows(ask)) => {
                let by = source(&binding);
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

/// Returns all roles of a user in a namespace, and those that are missing.
pub(crate) fn roles_for(inner: &Inner, user: &User, namespace: &str) -> (Vec<Object>, Vec<NoRole>) {
    let (mut roles, mut absent) = (Vec::new(), Vec::new());
    for binding in bindings(inner, user, namespace) {
        let of = binding.namespace(namespace);
        match role_of(inner, &binding.object["roleRef"], of) {
            Ok(role) => roles.push(role),
            Err(no_role) => absent.push(no_role),
        }
    }
    (roles, absent)
}

/// Returns the role that a binding in this namespace names.
pub(crate) fn role_of(inner: &Inner, reference: &Value, namespace: &str) -> Result<Object, NoRole> {
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
    role.ok_or_else(|| NoRole {
        what,
        name: name.to_owned(),
    })
}

/// A binding that applies to a user.
struct Binding {
    object: Object,
    /// Which of its subjects names the user.
    subject: usize,
    /// Whether it is a ClusterRoleBinding.
    cluster: bool,
}

impl Binding {
    /// Returns the namespace of the role that it names, if the binding itself is in this one.
    fn namespace<'n>(&self, own: &'n str) -> &'n str {
        if self.cluster { "" } else { own }
    }
}

/// Returns the bindings that apply to a user.
fn bindings(inner: &Inner, user: &User, namespace: &str) -> Vec<Binding> {
    let of_cluster = inner.store.list(CLUSTER_ROLE_BINDINGS, None);
    let of_cluster = of_cluster.map(|(_, binding)| (binding, true));
    let of_namespace = inner.store.list(ROLE_BINDINGS, Some(namespace));
    let of_namespace = of_namespace
        .filter(|_| !namespace.is_empty())
        .map(|(_, binding)| (binding, false));
    let mut found = Vec::new();
    for (object, cluster) in of_cluster.chain(of_namespace) {
        let subjects = object.get("subjects").and_then(Value::as_array);
        let own = if cluster { "" } else { namespace };
        let mut subjects = subjects.into_iter().flatten();
        if let Some(subject) = subjects.position(|subject| applies(subject, user, own)) {
            found.push(Binding {
                object,
                subject,
                cluster,
            });
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
fn source(of: &Binding) -> String {
    let binding = &*of.object;
    let subject = &binding["subjects"][of.subject];
    let text = |object: &Value, field: &str| {
        let text = object.get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let role = &binding["roleRef"];
    let (name, namespace) = (
        meta::text(binding, "name"),
        meta::text(binding, "namespace"),
    );
    let binding = match of.cluster {
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
