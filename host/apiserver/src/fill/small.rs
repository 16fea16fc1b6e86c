//! Kinds with one or two rules each. Must not know HTTP, or how objects are stored.

use serde_json::{Value, json};

use super::absent::absent;
use crate::meta::check::{SUBDOMAIN_RULE, is_subdomain};
use crate::status::{Cause, INVALID, NOT_SUPPORTED, REQUIRED, cause};

const RBAC: &str = "rbac.authorization.k8s.io";
/// The taint of a node whose agent has not reported yet, as set by the admission plugin
/// `TaintNodesByCondition`.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Returns what is wrong with the rules of a role.
pub(super) fn role(object: &mut Value) -> Vec<Cause> {
    let of_cluster = object["kind"] == "ClusterRole";
    let rules = object["rules"].as_array();
    let mut causes = Vec::new();
    for (at, rule) in rules.into_iter().flatten().enumerate() {
        let has = |name: &str| rule[name].as_array().is_some_and(|list| !list.is_empty());
        let mut needs = |name: &str, why: &str| {
            let field = format!("rules[{at}].{name}");
            causes.push(cause(REQUIRED, field, format!("Required value: {why}")));
        };
        if !has("verbs") {
            needs("verbs", "verbs must contain at least one value");
        }
        if !has("nonResourceURLs") {
            if !has("apiGroups") {
                let why = "resource rules must supply at least one api group";
                needs("apiGroups", why);
            }
            if !has("resources") {
                let why = "resource rules must supply at least one resource";
                needs("resources", why);
            }
            continue;
        }
        let both = ["apiGroups", "resources", "resourceNames"]
            .into_iter()
            .any(has);
        for (is_wrong, why) in [
            (
                !of_cluster,
                "namespaced rules cannot apply to non-resource URLs",
            ),
            (
                both,
                "rules cannot apply to both regular resources and non-resource URLs",
            ),
        ] {
            if is_wrong {
                let why = format!("Invalid value: {}: {why}", rule["nonResourceURLs"]);
                let field = format!("rules[{at}].nonResourceURLs");
                causes.push(cause(INVALID, field, why));
            }
        }
    }
    causes
}

/// Fills in the groups of a role binding's role and subjects.
pub(super) fn binding_groups(object: &mut Value) {
    // What is no object is refused by the schema.
    if let Some(role) = object.get_mut("roleRef").filter(|role| role.is_object()) {
        group(role);
    }
    let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten() {
        let kind = subject.get("kind").and_then(Value::as_str);
        if matches!(kind, Some("User" | "Group")) {
            group(subject);
        }
    }
}

/// Returns what is wrong with the role and the subjects of a role binding.
pub(super) fn binding(object: &Value) -> Vec<Cause> {
    let of_cluster = object["kind"] == "ClusterRoleBinding";
    let known: &[&str] = match of_cluster {
        true => &["ClusterRole"],
        false => &["Role", "ClusterRole"],
    };
    let mut causes = Vec::new();
    // What is no object is refused by the schema.
    if let Some(role) = object.get("roleRef").filter(|role| role.is_object()) {
        let text = |field: &str| role[field].as_str();
        if let Some(other) = text("apiGroup").filter(|group| *group != RBAC) {
            causes.push(unsupported("roleRef.apiGroup".to_owned(), other, &[RBAC]));
        }
        if let Some(other) = text("kind").filter(|kind| !known.contains(kind)) {
            causes.push(unsupported("roleRef.kind".to_owned(), other, known));
        }
        if text("name") == Some("") {
            causes.push(cause(REQUIRED, "roleRef.name", "Required value"));
        }
    }
    let subjects = object.get("subjects").and_then(Value::as_array);
    let subjects = subjects.into_iter().flatten().enumerate();
    for (at, subject) in subjects.filter(|(_, subject)| subject.is_object()) {
        causes.extend(self::subject(
            &format!("subjects[{at}]"),
            subject,
            of_cluster,
        ));
    }
    causes
}

/// Fills in the group of a role, a user or a group.
fn group(of: &mut Value) {
    if of["apiGroup"].is_null() || of["apiGroup"] == "" {
        of["apiGroup"] = json!(RBAC);
    }
}

/// Returns what is wrong with a subject of a role binding.
fn subject(path: &str, subject: &Value, of_cluster: bool) -> Vec<Cause> {
    let kind = subject["kind"].as_str().unwrap_or_default();
    let is_account = kind == "ServiceAccount";
    let text = |field: &str| subject[field].as_str().unwrap_or_default();
    let field = |name: &str| format!("{path}.{name}");
    let required = |name: &str| cause(REQUIRED, field(name), "Required value");
    let mut causes = Vec::new();
    let name = text("name");
    if name.is_empty() {
        causes.push(required("name"));
    } else if is_account && !is_subdomain(name) {
        let why = format!("Invalid value: {name:?}: {SUBDOMAIN_RULE}");
        causes.push(cause(INVALID, field("name"), why));
    }
    let wanted = if is_account { "" } else { RBAC };
    match kind {
        "ServiceAccount" | "User" | "Group" if text("apiGroup") != wanted => {
            causes.push(unsupported(field("apiGroup"), text("apiGroup"), &[wanted]));
        }
        "ServiceAccount" | "User" | "Group" => {}
        other => {
            let known = ["ServiceAccount", "User", "Group"];
            causes.push(unsupported(field("kind"), other, &known));
        }
    }
    if is_account && of_cluster && text("namespace").is_empty() {
        causes.push(required("namespace"));
    }
    causes
}

fn unsupported(field: String, value: &str, known: &[&str]) -> Cause {
    let known: Vec<String> = known.iter().map(|known| format!("{known:?}")).collect();
    let known = known.join(", ");
    let why = format!("Unsupported value: {value:?}: supported values: {known}");
    cause(NOT_SUPPORTED, field, why)
}

pub(super) fn network_policy(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    let egress = spec.get("egress").and_then(Value::as_array);
    let types = match egress.is_some_and(|rules| !rules.is_empty()) {
        true => json!(["Ingress", "Egress"]),
        false => json!(["Ingress"]),
    };
    absent(spec, &json!({ "policyTypes": types }));
}

/// Completes a node: what it can give to pods is what it has, unless it says otherwise.
pub(super) fn node(object: &mut Value) {
    if let Some(status) = object.get_mut("status").filter(|status| status.is_object())
        && let Some(capacity) = status.get("capacity").cloned()
    {
        absent(status, &json!({ "allocatable": capacity }));
    }
}

/// Marks a new node as not ready.
pub(super) fn taint(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    absent(spec, &json!({ "taints": [] }));
    if let Some(taints) = spec.get_mut("taints").and_then(Value::as_array_mut)
        && !taints.iter().any(|taint| taint["key"] == NOT_READY)
    {
        taints.push(json!({ "key": NOT_READY, "effect": "NoSchedule" }));
    }
}

/// Completes the requests of a claim for devices.
pub(super) fn resource_claim(requests: Option<&mut Value>) {
    let requests = requests.and_then(Value::as_array_mut);
    for request in requests.into_iter().flatten() {
        if let Some(exact) = request.get_mut("exactly") {
            count(exact);
        }
        let list = request.get_mut("firstAvailable");
        let list = list.and_then(Value::as_array_mut);
        list.into_iter().flatten().for_each(count);
    }
}

fn count(request: &mut Value) {
    if request["allocationMode"] == "ExactCount" {
        absent(request, &json!({ "count": 1 }));
    }
}

/// Records who asks for a certificate. Later the request no longer changes.
pub(super) fn signing_request(live: Option<&Value>, object: &mut Value) {
    match live {
        Some(live) => object["spec"] = live["spec"].clone(),
        None => {
            let user = json!({
                "username": "vmhost-dev", "groups": ["system:masters", "system:authenticated"],
            });
            absent(&mut object["spec"], &user);
        }
    }
}

/// Records since when a new volume has its phase. `now` is the time of the request: each attempt of
/// a write that asks webhooks must make the same object.
pub(super) fn volume(live: Option<&Value>, object: &mut Value, now: &str) {
    let status = object.get_mut("status").filter(|_| live.is_none());
    if let Some(status) = status {
        absent(status, &json!({ "lastPhaseTransitionTime": now }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_a_role_are_complete() {
        let mut object = json!({ "kind": "ClusterRole", "rules": [
            { "verbs": [], "apiGroups": [""], "resources": ["pods"] },
            { "verbs": ["get"] },
            { "verbs": ["get"], "apiGroups": [""], "resources": [] },
            { "verbs": ["get"], "nonResourceURLs": ["/a"], "resources": ["x"] },
            { "verbs": ["get"], "nonResourceURLs": ["/a"] },
        ] });
        let told = |object: &mut Value| -> Vec<String> {
            let causes = role(object).into_iter();
            causes
                .map(|c| format!("{}: {}", c.field, c.message))
                .collect()
        };
        // As kube-apiserver 1.36.3 has it.
        assert_eq!(
            told(&mut object),
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[1].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[1].resources: Required value: resource rules must supply at least one resource",
                "rules[2].resources: Required value: resource rules must supply at least one resource",
                "rules[3].nonResourceURLs: Invalid value: [\"/a\"]: rules cannot apply to both regular resources and non-resource URLs",
            ]
        );
        let rule = json!({ "verbs": ["get"], "nonResourceURLs": ["/a"] });
        let told = told(&mut json!({ "kind": "Role", "rules": [rule] }));
        assert_eq!(
            told,
            [
                "rules[0].nonResourceURLs: Invalid value: [\"/a\"]: namespaced rules cannot apply to non-resource URLs"
            ]
        );
        assert!(role(&mut json!({ "kind": "Role", "rules": "x" })).is_empty());
    }

    #[test]
    fn a_binding_names_a_role_and_its_subjects() {
        let mut object = json!({
            "kind": "ClusterRoleBinding",
            "roleRef": { "apiGroup": "foo", "kind": "ClusterRole", "name": "view" },
            "subjects": [
                { "kind": "ServiceAccount", "name": "a" },
                { "kind": "Robot", "name": "b" },
                { "kind": "User", "name": "", "apiGroup": "z" },
                { "kind": "ServiceAccount", "apiGroup": "q", "name": "A_b", "namespace": "d" },
                { "kind": "Group", "name": "system:masters" },
            ],
        });
        // As kube-apiserver 1.36.3 has it.
        binding_groups(&mut object);
        let fields: Vec<String> = binding(&object).into_iter().map(|c| c.field).collect();
        assert_eq!(
            fields,
            [
                "roleRef.apiGroup",
                "subjects[0].namespace",
                "subjects[1].kind",
                "subjects[2].name",
                "subjects[2].apiGroup",
                "subjects[3].name",
                "subjects[3].apiGroup",
            ]
        );
        assert_eq!(object["subjects"][4]["apiGroup"], RBAC);
        let mut object = json!({
            "kind": "RoleBinding",
            "roleRef": { "kind": "Role", "name": "view" },
            "subjects": [{ "kind": "ServiceAccount", "name": "a" }],
        });
        binding_groups(&mut object);
        assert!(binding(&object).is_empty());
        assert_eq!(object["roleRef"]["apiGroup"], RBAC);
    }
}
