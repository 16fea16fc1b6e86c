//! The rules of services, ingresses, network policies and endpoints.

use std::collections::HashSet;
use std::net::IpAddr;

use serde_json::Value;

use super::told::{PORT, Rule, Told, has, int, is_blank, is_port, list, text};
use crate::meta::check::is_subdomain;

const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

#[cfg(test)]
pub(super) const COUNT: usize = 12;

pub(super) fn rule(name: &str) -> Option<Rule> {
    let rule: Rule = match name {
        "core.v1.ServiceSpec" => service,
        "core.v1.EndpointSubset" => subset,
        "core.v1.EndpointAddress" => old_address,
        "discovery.v1.Endpoint" => endpoint,
        "networking.v1.IngressSpec" => ingress,
        "networking.v1.IngressRule" => host,
        "networking.v1.HTTPIngressPath" => path,
        "networking.v1.IngressClassSpec" => class,
        "networking.v1.NetworkPolicyPeer" => peer,
        "networking.v1.NetworkPolicyPort" => policy_port,
        "networking.v1.IPBlock" => block,
        "discovery.v1.EndpointSlice" => slice,
        _ => return None,
    };
    Some(rule)
}

fn service(of: &Value, told: &mut Told<'_>) {
    let kind = text(of, "type");
    let is_headless = of["clusterIP"] == "None";
    let ports: Vec<(usize, &Value)> = list(of, "ports").collect();
    if ports.is_empty() && !is_headless && kind != "ExternalName" {
        told.required("ports", "");
    }
    if kind == "ExternalName" {
        match text(of, "externalName").trim_end_matches('.') {
            "" => told.required("externalName", ""),
            name if !is_subdomain(name) => told.subdomain(of, "externalName"),
            _ => {}
        }
    }
    let mut names = HashSet::new();
    for (at, port) in &ports {
        let field = |name: &str| format!("ports[{at}].{name}");
        let name = text(port, "name");
        if name.is_empty() && ports.len() > 1 {
            told.required(&field("name"), "");
        }
        if !name.is_empty() {
            let before = told.causes.len();
            let path = format!("{}.ports[{at}]", told.path);
            let mut below = Told {
                path: &path,
                causes: told.causes,
            };
            below.label(port, "name");
            if told.causes.len() == before && !names.insert(name) {
                told.duplicate(&field("name"), &port["name"]);
            }
        }
        if int(port, "port").is_some_and(|number| !is_port(number)) {
            told.invalid(&field("port"), &port["port"], PORT);
        }
        let target = &port["targetPort"];
        if target.as_i64().is_some_and(|number| !is_port(number)) {
            told.invalid(&field("targetPort"), target, PORT);
        }
        if let Some(name) = target.as_str() {
            told.port_name(&field("targetPort"), name);
        }
        if kind == "ClusterIP" && int(port, "nodePort").is_some_and(|number| number != 0) {
            told.forbidden(
                &field("nodePort"),
                "may not be used when `type` is 'ClusterIP'",
            );
        }
    }
    let is_open = kind != "ClusterIP" || list(of, "externalIPs").next().is_some();
    if !text(of, "externalTrafficPolicy").is_empty() && !is_open {
        let policy = &of["externalTrafficPolicy"];
        let why = "may only be set for externally-accessible services";
        told.invalid("externalTrafficPolicy", policy, why);
    }
    for (at, ip) in list(of, "externalIPs") {
        told.ip(&format!("externalIPs[{at}]"), ip);
    }
    for (at, range) in list(of, "loadBalancerSourceRanges") {
        // The text may have spaces around it.
        let range: Value = range.as_str().map(str::trim).into();
        told.cidr(&format!("LoadBalancerSourceRanges[{at}]"), &range);
    }
}

fn subset(of: &Value, told: &mut Told<'_>) {
    let none = |name: &str| list(of, name).next().is_none();
    if none("addresses") && none("notReadyAddresses") {
        told.required("", "must specify `addresses` or `notReadyAddresses`");
    }
}

/// Checks the address of an endpoint: none that leads back to the node.
fn address(told: &mut Told<'_>, name: &str, value: &Value) {
    let text = value.as_str().unwrap_or_default();
    let why = match text.parse::<IpAddr>().ok() {
        None => return told.ip(name, value),
        Some(ip) if ip.is_unspecified() => format!("may not be unspecified ({text})"),
        Some(ip) if ip.is_loopback() => {
            "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()
        }
        Some(_) => return,
    };
    told.invalid(name, value, &why);
}

/// Checks an address of Endpoints. What is none is told twice.
fn old_address(of: &Value, told: &mut Told<'_>) {
    let ip = &of["ip"];
    if ip
        .as_str()
        .is_some_and(|text| text.parse::<IpAddr>().is_err())
    {
        told.invalid("ip", ip, "must be a valid IP address");
    }
    address(told, "ip", ip);
}

fn endpoint(of: &Value, told: &mut Told<'_>) {
    if of["addresses"].as_array().is_some_and(Vec::is_empty) {
        told.required("addresses", "must contain at least 1 address");
    }
}

/// Checks what depends on the type of addresses.
fn slice(of: &Value, told: &mut Told<'_>) {
    if !matches!(text(of, "addressType"), "IPv4" | "IPv6") {
        return;
    }
    for (at, endpoint) in list(of, "endpoints") {
        for (number, ip) in list(endpoint, "addresses") {
            address(told, &format!("endpoints[{at}].addresses[{number}]"), ip);
        }
    }
}

fn ingress(of: &Value, told: &mut Told<'_>) {
    if list(of, "rules").next().is_none() && !has(of, "defaultBackend") {
        let why = "either `defaultBackend` or `rules` must be specified";
        told.invalid("", of.get("rules").unwrap_or(&Value::Null), why);
    }
    told.subdomain(of, "ingressClassName");
    if has(of, "defaultBackend") {
        backend(&of["defaultBackend"], told, "defaultBackend");
    }
}

fn host(of: &Value, told: &mut Told<'_>) {
    let host = text(of, "host");
    if host.parse::<IpAddr>().is_ok() {
        told.invalid("host", &of["host"], "must be a DNS name, not an IP address");
    } else if host.contains('*') {
        if !host.strip_prefix("*.").is_some_and(is_subdomain) {
            told.invalid("host", &of["host"], WILDCARD);
        }
    } else {
        told.subdomain(of, "host");
    }
}

fn path(of: &Value, told: &mut Told<'_>) {
    let path = text(of, "path");
    if matches!(text(of, "pathType"), "Exact" | "Prefix") {
        if !path.starts_with('/') {
            told.invalid("path", &path.into(), "must be an absolute path");
        }
        for part in ["//", "/./", "/../", "%2f", "%2F"] {
            if path.contains(part) {
                told.invalid("path", &of["path"], &format!("must not contain '{part}'"));
            }
        }
    }
    backend(&of["backend"], told, "backend");
}

fn backend(of: &Value, told: &mut Told<'_>, name: &str) {
    let port = &of["service"]["port"];
    let has_name = !text(port, "name").is_empty();
    let has_number = int(port, "number").is_some_and(|number| number != 0);
    match (has(of, "service"), has(of, "resource")) {
        (true, true) => {
            told.invalid(
                name,
                &"".into(),
                "cannot set both resource and service backends",
            );
        }
        (false, false) => {
            told.invalid(name, &"".into(), "resource or service backend is required");
        }
        (true, false) if has_name && has_number => {
            told.invalid(name, &"".into(), "cannot set both port name & port number");
        }
        (true, false) if !has_name && !has_number => {
            told.required(name, "port name or number is required");
        }
        _ => {}
    }
}

fn class(of: &Value, told: &mut Told<'_>) {
    let controller = text(of, "controller");
    if controller.is_empty() {
        told.required("controller", "");
    } else if !controller.contains('/') {
        let why = r#"must be a domain-prefixed path (such as "acme.io/foo")"#;
        told.invalid("controller", &of["controller"], why);
    }
}

fn peer(of: &Value, told: &mut Told<'_>) {
    let selects = has(of, "podSelector") || has(of, "namespaceSelector");
    match (has(of, "ipBlock"), selects) {
        (true, true) => told.forbidden("", "may not specify both ipBlock and another peer"),
        (false, false) => told.required("", "must specify a peer"),
        _ => {}
    }
}

fn policy_port(of: &Value, told: &mut Told<'_>) {
    told.port(of, "port");
    let (from, to) = (int(of, "port"), int(of, "endPort"));
    if from.zip(to).is_some_and(|(from, to)| to < from) {
        // A real server shows the port.
        let why = "must be greater than or equal to `port`";
        told.invalid("endPort", &of["port"], why);
    }
}

fn block(of: &Value, told: &mut Told<'_>) {
    if is_blank(of, "cidr") {
        told.required("cidr", "");
    } else {
        told.cidr("cidr", &of["cidr"]);
    }
}
