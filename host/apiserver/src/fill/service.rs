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
    if spec["sessionAffinity"] == "ClientIP" {
        let three_hours =
            json!({ "sessionAffinityConfig": { "clientIP": { "timeoutSeconds": 10_800 } } });
        absent(spec, &three_hours);
    }
    let defaults = match spec["type"].as_str().unwrap_or_default() {
        "ExternalName" => json!({}),
        "NodePort" => {
            json!({ "internalTrafficPolicy": "Cluster", "externalTrafficPolicy": "Cluster" })
        }
        "LoadBalancer" => json!({
            "internalTrafficPolicy": "Cluster", "externalTrafficPolicy": "Cluster",
            "allocateLoadBalancerNodePorts": true,
        }),
        _ => json!({ "internalTrafficPolicy": "Cluster" }),
    };
    absent(spec, &defaults);
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
    absent(
        spec,
        &json!({ "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack" }),
    );
    let had = live.map_or("", address);
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

/// Drops what a service of its new type does not need, unless the author of the write changed it.
fn drop_unneeded(old: &Value, spec: &mut Value) {
    let is_named = |spec: &Value| spec["type"] == "ExternalName";
    let is_balanced = |spec: &Value| spec["type"] == "LoadBalancer";
    let is_open = |spec: &Value| is_balanced(spec) || spec["type"] == "NodePort";
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
        fields.extend(["externalTrafficPolicy", "healthCheckNodePort"]);
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
