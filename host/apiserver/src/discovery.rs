//! Discovery: the served kinds, in the three forms that clients know.
//!
//! Owns `/api`, `/apis` and below, aggregated and plain. Must not know HTTP.

use serde_json::{Value, json};

use crate::kinds::{Target, join_version};
use crate::registry::{Group, Registry};

/// The media type by which clients recognise aggregated discovery.
pub(crate) const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The same, in protobuf.
pub(crate) const AGGREGATED_PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Returns aggregated discovery, of the core group or of all others.
pub(crate) fn aggregated(registry: &Registry, core: bool) -> Value {
    let groups = registry.groups();
    let items = groups
        .iter()
        .filter(|g| g.name.is_empty() == core)
        .map(|group| {
            let versions = group.versions.iter().map(|version| {
                let resources = registry
                    .of(&group.name, version)
                    .iter()
                    .map(aggregated_resource)
                    .collect::<Vec<_>>();
                json!({ "version": version, "resources": resources, "freshness": "Current" })
            });
            json!({
                "metadata": { "name": group.name, "creationTimestamp": null },
                "versions": versions.collect::<Vec<_>>(),
            })
        });
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items.collect::<Vec<_>>(),
    })
}

fn aggregated_resource(target: &Target) -> Value {
    let kind = &target.kind;
    let response =
        json!({ "group": kind.group, "version": target.version().name, "kind": kind.kind });
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": response,
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": kind.verbs,
    });
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        resource["categories"] = json!(kind.categories);
    }
    let subresources: Vec<Value> = target
        .subresources()
        .iter()
        .map(|sub| {
            let kind = json!({ "group": sub.group, "version": sub.version, "kind": sub.kind });
            json!({ "subresource": sub.name, "responseKind": kind, "verbs": sub.verbs })
        })
        .collect();
    if !subresources.is_empty() {
        resource["subresources"] = json!(subresources);
    }
    resource
}

/// Returns the answer for `/api`.
pub(crate) fn versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": address }],
    })
}

/// Returns the answer for `/apis`.
pub(crate) fn groups(registry: &Registry) -> Value {
    let groups = registry.groups();
    let groups: Vec<Value> = groups
        .iter()
        .filter(|g| !g.name.is_empty())
        .map(group_value)
        .collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// Returns the answer for `/apis/<group>`.
pub(crate) fn group(registry: &Registry, name: &str) -> Option<Value> {
    let groups = registry.groups();
    let found = groups.iter().find(|g| g.name == name && !name.is_empty())?;
    let mut value = group_value(found);
    value["kind"] = json!("APIGroup");
    value["apiVersion"] = json!("v1");
    Some(value)
}

fn group_value(group: &Group) -> Value {
    let version =
        |v: &String| json!({ "groupVersion": join_version(&group.name, v), "version": v });
    json!({
        "name": group.name,
        "versions": group.versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": group.versions.first().map(version),
    })
}

/// Returns the answer for `/api/v1` or `/apis/<group>/<version>`.
pub(crate) fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let targets = registry.of(group, version);
    if targets.is_empty() {
        return None;
    }
    let mut resources = Vec::new();
    for target in &targets {
        let kind = &target.kind;
        let mut resource = json!({
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": kind.verbs,
        });
        if !kind.short_names.is_empty() {
            resource["shortNames"] = json!(kind.short_names);
        }
        if !kind.categories.is_empty() {
            resource["categories"] = json!(kind.categories);
        }
        resources.push(resource);
        for sub in target.subresources() {
            let mut resource = json!({
                "name": format!("{}/{}", kind.plural, sub.name),
                "singularName": "",
                "namespaced": kind.namespaced,
                "kind": sub.kind,
                "verbs": sub.verbs,
            });
            if (&sub.group, &sub.version) != (&kind.group, &target.version().name) {
                resource["group"] = json!(sub.group);
                resource["version"] = json!(sub.version);
            }
            resources.push(resource);
        }
    }
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": join_version(group, version),
        "resources": resources,
    }))
}

/// Returns the answer for `/version`: a number that clients can compare, and a name for this
/// server.
pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": "v1.36.0-vmhost-dev",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
