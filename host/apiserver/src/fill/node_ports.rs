//! The ports of services on every node.
//!
//! Must not know the addresses of services.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use crate::meta;
use crate::state::Inner;
use crate::status::{Cause, INVALID, cause};

const STORAGE: &str = "/services";
const FIRST: u16 = 30_000;
const LAST: u16 = 32_767;

/// Completes the ports of a service that is reached through nodes.
pub(super) fn fill(inner: &Inner, live: Option<&Value>, new: &mut Value) -> Vec<Cause> {
    let kind = new["spec"]["type"].as_str().unwrap_or_default().to_owned();
    if !matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        return Vec::new();
    }
    let mut used = in_use(inner, meta::text(new, "uid"));
    let spec = &mut new["spec"];
    if kind == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] == false {
        return Vec::new();
    }
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    let mut causes = Vec::new();
    // Anything else than an object is refused by the schema.
    let ports = ports.into_iter().flatten().enumerate();
    for (at, port) in ports.filter(|(_, port)| port.is_object()) {
        let asked = number(port).or_else(|| number(before(live, port)?));
        let refusal = match asked {
            None => None,
            Some(asked) if used.contains(&asked) => Some("provided port is already allocated"),
            Some(FIRST..=LAST) => None,
            Some(_) => Some(
                "provided port is not in the valid range. The range of valid ports is 30000-32767",
            ),
        };
        if let (Some(asked), Some(why)) = (asked, refusal) {
            let why = format!("Invalid value: {asked}: {why}");
            causes.push(cause(INVALID, format!("spec.ports[{at}].nodePort"), why));
        } else if let Some(chosen) = asked.or_else(|| free(&used)) {
            used.insert(chosen);
            port["nodePort"] = json!(chosen);
        }
    }
    causes
}

/// Returns the ports on nodes that a spec has.
pub(super) fn of(spec: &Value) -> BTreeSet<u16> {
    let ports = spec.get("ports").and_then(Value::as_array);
    ports.into_iter().flatten().filter_map(number).collect()
}

/// Takes the ports on nodes away.
pub(super) fn close(spec: &mut Value) {
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        port.remove("nodePort");
    }
}

fn number(port: &Value) -> Option<u16> {
    let number = port.get("nodePort")?.as_u64().filter(|port| *port > 0)?;
    // What does not fit is out of the range of valid ports.
    Some(u16::try_from(number).unwrap_or(u16::MAX))
}

/// Returns the same port of the live service.
fn before<'a>(live: Option<&'a Value>, port: &Value) -> Option<&'a Value> {
    let ports = live?.pointer("/spec/ports")?.as_array()?;
    let same = |other: &&Value| {
        ["port", "protocol"]
            .iter()
            .all(|name| other.get(name) == port.get(name))
    };
    ports.iter().find(same)
}

/// Returns the ports of all services but one.
fn in_use(inner: &Inner, uid: &str) -> HashSet<u16> {
    let services = inner.store.list(STORAGE, None);
    let mut ports = HashSet::new();
    for (_, service) in services.filter(|(_, service)| meta::text(service, "uid") != uid) {
        let own = service.pointer("/spec/ports").and_then(Value::as_array);
        ports.extend(own.into_iter().flatten().filter_map(number));
    }
    ports
}

/// Returns a port that no service has.
fn free(used: &HashSet<u16>) -> Option<u16> {
    let start = fastrand::u16(FIRST..=LAST);
    let mut all = (start..=LAST).chain(FIRST..start);
    all.find(|port| !used.contains(port))
}
