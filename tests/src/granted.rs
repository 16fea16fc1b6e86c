//! The objects of a release, and the rights in them as data. This module must not know what a right
//! is for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::proxy::Request;

/// The namespace of a release in a text, which occurs there in no other meaning.
pub const NAMESPACE: &str = "vmhost-system";

/// A verb on a resource, whatever the namespaces and names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// The API group; empty for the core.
    pub group: String,
    /// The plural, with a subresource behind a slash.
    pub resource: String,
    /// The verb in RBAC's form.
    pub verb: String,
}

/// The objects of a release.
pub struct Release(Vec<Value>);

impl Release {
    /// Reads a text that was rendered for [`NAMESPACE`], as a release in another namespace.
    pub fn read(text: &str, namespace: &str) -> Result<Release> {
        let text = text.replace(NAMESPACE, namespace);
        let mut objects = Vec::new();
        for document in serde_yaml_ng::Deserializer::from_str(&text) {
            let object = Value::deserialize(document).context("an object of a release")?;
            if object.is_object() {
                objects.push(object);
            }
        }
        Ok(Release(objects))
    }

    /// Returns the objects of this kind.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |object| object["kind"] == kind)
    }

    /// Returns the roles that a binding of the release names.
    pub fn bound(&self) -> impl Iterator<Item = &Value> {
        let roles = self.of_kind("Role").chain(self.of_kind("ClusterRole"));
        roles.filter(move |role| {
            let binding = format!("{}Binding", role["kind"].as_str().unwrap_or_default());
            let mut bindings = self.of_kind(&binding);
            bindings.any(|binding| {
                binding["roleRef"]["name"] == role["metadata"]["name"]
                    && binding["metadata"]["namespace"] == role["metadata"]["namespace"]
            })
        })
    }

    /// Returns the rights of each rule of the bound roles, by the rule's text. Rules of one text
    /// are one.
    pub fn rules(&self) -> BTreeMap<String, BTreeSet<Right>> {
        let mut rules: BTreeMap<String, BTreeSet<Right>> = BTreeMap::new();
        for rule in self.bound().flat_map(|role| items(&role["rules"])) {
            rules.entry(text_of(rule)).or_default().extend(rights(rule));
        }
        rules
    }

    /// Takes these rights out of all rules.
    pub fn take(&mut self, taken: &BTreeSet<Right>) {
        for object in &mut self.0 {
            let Some(rules) = object.get_mut("rules").and_then(Value::as_array_mut) else {
                continue;
            };
            let mut kept = Vec::new();
            for rule in rules.iter() {
                for right in rights(rule).difference(taken) {
                    let mut one = rule.clone();
                    one["apiGroups"] = json!([right.group]);
                    one["resources"] = json!([right.resource]);
                    one["verbs"] = json!([right.verb]);
                    kept.push(one);
                }
            }
            *rules = kept;
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        match self.group.as_str() {
            "" => Ok(()),
            group => write!(f, ".{group}"),
        }
    }
}

/// Returns the rights that the API server asks access control for when it gets this request, as far
/// as the request tells: not whom it is sent as.
pub fn asked(request: &Request) -> Vec<Right> {
    let mut parts = request.path.split('/').filter(|part| !part.is_empty());
    let group = match (parts.next(), parts.next()) {
        (Some("api"), Some(_)) => "",
        (Some("apis"), Some(group)) if parts.next().is_some() => group,
        _ => return Vec::new(),
    };
    let mut rest: Vec<&str> = parts.collect();
    // These are parts of a namespace; whatever else stands behind one is in it.
    let is_part = matches!(rest.as_slice(), [_, _, "status" | "finalize"]);
    if rest.len() > 2 && rest.first() == Some(&"namespaces") && !is_part {
        rest.drain(..2);
    }
    let Some(plural) = rest.first() else {
        return Vec::new();
    };
    let resource = match rest.get(2) {
        Some(below) => format!("{plural}/{below}"),
        None => (*plural).to_owned(),
    };
    let is_named = rest.len() > 1;
    let verbs: &[&str] = match (request.method.as_str(), is_named) {
        ("GET", _) if request.is_watch() => &["watch"],
        ("GET", true) => &["get"],
        ("GET", false) => &["list"],
        ("POST", _) => &["create"],
        ("PUT", _) => &["update"],
        // What does not exist is created by an apply, for which the server asks, too.
        ("PATCH", _) if request.content_type.contains("apply-patch") => &["create", "patch"],
        ("PATCH", _) => &["patch"],
        ("DELETE", true) => &["delete"],
        _ => &[],
    };
    let right = |verb: &&str| Right {
        group: group.to_owned(),
        resource: resource.clone(),
        verb: (*verb).to_owned(),
    };
    verbs.iter().map(right).collect()
}

/// Returns the rights of a rule.
pub fn rights(rule: &Value) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for group in texts(&rule["apiGroups"]) {
        for resource in texts(&rule["resources"]) {
            for verb in texts(&rule["verbs"]) {
                rights.insert(Right {
                    group: group.to_owned(),
                    resource: resource.to_owned(),
                    verb: verb.to_owned(),
                });
            }
        }
    }
    rights
}

/// `VERBS RESOURCES`, each sorted.
fn text_of(rule: &Value) -> String {
    let sorted = |list: &Value| {
        let sorted: BTreeSet<&str> = texts(list).collect();
        sorted.into_iter().collect::<Vec<_>>().join(",")
    };
    format!("{} {}", sorted(&rule["verbs"]), sorted(&rule["resources"]))
}

/// Returns the items of a list; none if it is no list.
pub fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Returns the texts of a list.
pub fn texts(list: &Value) -> impl Iterator<Item = &str> {
    items(list).filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn sent(method: &str, path: &str, content_type: &str, watch: bool) -> Vec<String> {
        let watch = watch.then(|| ("watch".to_owned(), "true".to_owned()));
        let request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            query: watch.into_iter().collect(),
            user_agent: String::new(),
            content_type: content_type.to_owned(),
            authorization: String::new(),
            traceparent: String::new(),
            body: Bytes::new(),
            answered: None,
            began: 0,
            ended: 0,
        };
        asked(&request).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_request_tells_which_rights_it_needs() {
        let (plain, apply) = ("application/json", "application/apply-patch+yaml");
        let secrets = "/api/v1/namespaces/a/secrets";
        let status = "/apis/x.io/v1/namespaces/a/things/t/status";
        let applied = ["create things/status.x.io", "patch things/status.x.io"];
        let part = "/api/v1/namespaces/a/status";
        let cases: [(&str, &str, &str, bool, &[&str]); 9] = [
            ("GET", "/api/v1/namespaces", "", false, &["list namespaces"]),
            (
                "GET",
                "/api/v1/namespaces/a",
                "",
                false,
                &["get namespaces"],
            ),
            ("GET", part, "", false, &["get namespaces/status"]),
            ("GET", "/api/v1/secrets", "", true, &["watch secrets"]),
            ("GET", secrets, "", false, &["list secrets"]),
            ("POST", secrets, plain, false, &["create secrets"]),
            ("PATCH", status, apply, false, &applied),
            ("GET", "/apis/x.io/v1", "", false, &[]),
            ("GET", "/version", "", false, &[]),
        ];
        for (method, path, content_type, watch, wanted) in cases {
            let found = sent(method, path, content_type, watch);
            assert_eq!(found, wanted, "{method} {path}");
        }
    }

    #[test]
    fn a_right_is_taken_out_of_all_rules() {
        let text = "\
kind: Role
metadata: {name: a, namespace: vmhost-system}
rules:
- {apiGroups: [''], resources: [secrets, pods], verbs: [get, list]}
- {apiGroups: [''], resources: [secrets], resourceNames: [s], verbs: [get]}
---
kind: RoleBinding
metadata: {name: a, namespace: vmhost-system}
roleRef: {name: a}
---
kind: ClusterRole
metadata: {name: lonely}
rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]
";
        let mut release = Release::read(text, "here").unwrap();
        let rules = release.rules();
        let keys: Vec<&String> = rules.keys().collect();
        assert_eq!(keys, ["get secrets", "get,list pods,secrets"]);
        release.take(&rules["get secrets"]);
        let left: Vec<String> = release.rules().into_keys().collect();
        assert_eq!(left, ["get pods", "list pods", "list secrets"]);
        let role = release.bound().next().unwrap();
        assert_eq!(role["metadata"]["namespace"], "here");
    }
}
