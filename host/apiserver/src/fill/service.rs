//! Services: their addresses and ports. Must not know HTTP.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::absent::absent;
use super::node_ports;
use crate::state::Inner;
use crate::status::{Cause, INVALID, cause};

const STORAGE: &str = "/services";
/// Addresses are 10.96.x.y, as in most development clusters.
const NETWORK: [u8; 2] = [10, 96];

/// Fills in the defaults of a service.
pub(super) fn default(new: &mut Value) {
    let Some(spec) = new.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter(|port| port.is_object()) {
        let target = &port["targetPort"];
        if target.is_null() || *target == 0 || *target == "" {
            port["targetPort"] = port["port"].clone();
        }
    }
    affinity(spec);
    let kind = spec["type"].as_str().unwrap_or_default();
    let mut defaults = match kind {
        "ExternalName" => json!({}),
        "LoadBalancer" => {
            json!({ "internalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": true })
        }
        _ => json!({ "internalTrafficPolicy": "Cluster" }),
    };
    if is_open(spec) {
        defaults["externalTrafficPolicy"] = json!("Cluster");
    }
    absent(spec, &defaults);
}

/// Completes how long a client stays with its pod. Without affinity there is nothing to say.
fn affinity(spec: &mut Value) {
    let seconds = spec.pointer("/sessionAffinityConfig/clientIP/timeoutSeconds");
    let is_set = seconds.is_some_and(|seconds| !seconds.is_null());
    let Some(fields) = spec.as_object_mut() else {
        return;
    };
    match fields.get("sessionAffinity").and_then(Value::as_str) {
        Some("None") => {
            fields.remove("sessionAffinityConfig");
        }
        Some("ClientIP") if !is_set => {
            let three_hours = json!({ "clientIP": { "timeoutSeconds": 10_800 } });
            fields.insert("sessionAffinityConfig".to_owned(), three_hours);
        }
        _ => {}
    }
}

/// Returns whether a service is reached from outside of the cluster.
fn is_open(spec: &Value) -> bool {
    let has_addresses = || {
        let addresses = spec["externalIPs"].as_array();
        addresses.is_some_and(|addresses| !addresses.is_empty())
    };
    has_node_ports(spec) || (spec["type"] == "ClusterIP" && has_addresses())
}

fn has_node_ports(spec: &Value) -> bool {
    spec["type"] == "NodePort" || spec["type"] == "LoadBalancer"
}

/// Gives a service its addresses and its ports on nodes; returns what is wrong with those that it
/// asks for.
pub(super) fn allocate(inner: &Inner, live: Option<&Value>, new: &mut Value) -> Vec<Cause> {
    let Some(spec) = new.get_mut("spec").filter(|spec| spec.is_object()) else {
        return Vec::new();
    };
    if let Some(old) = live.and_then(|live| live.get("spec")) {
        drop_unneeded(old, spec);
    }
    if spec["type"] == "ExternalName" {
        return Vec::new();
    }
    let had = live.map_or("", address);
    families(live, had, spec);
    let asked = spec
        .get("clusterIP")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let address = match (asked.as_str(), had) {
        ("", "") => free(inner),
        // A client that replaces a service may omit the address.
        ("", had) => had.to_owned(),
        (asked, "") if asked != "None" && in_use(inner).contains(asked) => {
            let why = format!(
                "Invalid value: [{asked:?}]: failed to allocate IP {asked}: provided IP is already allocated"
            );
            return vec![cause(INVALID, "spec.clusterIPs", why)];
        }
        (asked, had) if !had.is_empty() && asked != had => {
            let why = format!("Invalid value: [{asked:?}]: may not change once set");
            return vec![cause(INVALID, "spec.clusterIPs[0]", why)];
        }
        (asked, _) => asked.to_owned(),
    };
    spec["clusterIP"] = json!(address);
    spec["clusterIPs"] = json!([address]);
    node_ports::fill(inner, live, new)
}

/// Sets the families of a service's addresses. One without an address and without pods of its own
/// has both, whatever the cluster has. `had` is the address of the service that is replaced.
fn families(live: Option<&Value>, had: &str, spec: &mut Value) {
    let is_headless = match spec["clusterIP"].as_str() {
        None | Some("") => had == "None",
        Some(address) => address == "None",
    };
    let selector = spec["selector"].as_object();
    let is_bare = is_headless && selector.is_none_or(serde_json::Map::is_empty);
    let before = live.and_then(|live| live.pointer("/spec/ipFamilyPolicy"));
    let policy = match before {
        Some(before) => before.clone(),
        None if is_bare => json!("RequireDualStack"),
        None => json!("SingleStack"),
    };
    absent(
        spec,
        &json!({ "ipFamilies": ["IPv4"], "ipFamilyPolicy": policy }),
    );
    let is_single = spec["ipFamilyPolicy"] == "SingleStack";
    if let Some(families) = spec["ipFamilies"].as_array_mut()
        && is_bare
        && !is_single
        && families.len() == 1
    {
        let other = if families[0] == "IPv4" {
            "IPv6"
        } else {
            "IPv4"
        };
        families.push(json!(other));
    }
}

/// Drops what a service of its new type does not need, unless the author of the write changed it.
fn drop_unneeded(old: &Value, spec: &mut Value) {
    let is_named = |spec: &Value| spec["type"] == "ExternalName";
    let is_balanced = |spec: &Value| spec["type"] == "LoadBalancer";
    let mut fields: Vec<&str> = Vec::new();
    if is_named(spec) && !is_named(old) {
        fields.extend(["ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]);
        if old.get("clusterIP") == spec.get("clusterIP") {
            fields.extend(["clusterIP", "clusterIPs"]);
        }
    }
    if is_balanced(old) && !is_balanced(spec) {
        fields.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if is_open(old) && !is_open(spec) {
        fields.push("externalTrafficPolicy");
    }
    if has_node_ports(old) && !has_node_ports(spec) {
        fields.push("healthCheckNodePort");
        // Ports may be added, but no ports on nodes.
        if node_ports::of(spec).is_subset(&node_ports::of(old)) {
            node_ports::close(spec);
        }
    }
    if let Some(map) = spec.as_object_mut() {
        map.retain(|field, value| {
            !(fields.contains(&field.as_str()) && old.get(field) == Some(&*value))
        });
    }
}

fn address(service: &Value) -> &str {
    let address = service.pointer("/spec/clusterIP").and_then(Value::as_str);
    address.unwrap_or_default()
}

fn in_use(inner: &Inner) -> HashSet<String> {
    let services = inner.store.list(STORAGE, None);
    let addresses = services.map(|(_, service)| address(&service).to_owned());
    addresses.collect()
}

/// Returns an address that no service has; empty if all 65,000 are in use.
fn free(inner: &Inner) -> String {
    let used = in_use(inner);
    let start = fastrand::u16(1..u16::MAX);
    let all = (0..u16::MAX).map(|step| start.wrapping_add(step));
    all.map(|number| {
        let [high, low] = number.to_be_bytes();
        Ipv4Addr::new(NETWORK[0], NETWORK[1], high, low).to_string()
    })
    .find(|address| !used.contains(address.as_str()))
    .unwrap_or_default()
}
