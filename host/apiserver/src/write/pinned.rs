//! What an update may not change, where that depends on more than the field: the pods of a Pod and
//! of a Job, the size of a claim, the networks of a node.
//!
//! Follows k8s.io/kubernetes `pkg/apis/{core,batch}/validation`. `fixed` has the fields that never
//! change. Must not know how an object is stored.

mod claim;
mod job;
mod pod;

use serde_json::Value;

use super::same::same;
use super::steps;
use crate::call::Call;
use crate::kinds::Fill;
use crate::status::{Cause, FORBIDDEN, INVALID, cause};

/// Returns what an update of the object itself changes and must not. Subresources have rules of
/// their own.
pub(super) fn changed(call: &Call<'_>, live: &Value, new: &Value) -> Vec<Cause> {
    if !call.part.is_empty() {
        return Vec::new();
    }
    let (old, spec) = (&live["spec"], &new["spec"]);
    match call.target.kind.fill {
        Fill::Pod | Fill::Job | Fill::Claim if same(old, spec) => Vec::new(),
        // What is no object is refused by the schema.
        Fill::Pod if spec.is_object() => pod::faults(&completed(call, live)["spec"], spec),
        Fill::Job => job::faults(&completed(call, live), spec),
        Fill::Claim => claim::faults(&completed(call, live), new),
        Fill::Node => node(old, spec),
        Fill::Service => service(old, spec).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns a stored object as Go reads it: with the defaults that it did not have when it was
/// written.
pub(super) fn completed(call: &Call<'_>, live: &Value) -> Value {
    let mut live = live.clone();
    steps::drop_zeros(call.target, &mut live);
    call.target.complete(&mut live);
    if let Some(schema) = call.target.schema() {
        schema.apply_defaults(&mut live);
        // All of its quantities were read when it was written.
        let _ = schema.normalize(&mut live);
    }
    steps::default(call.target, &mut live);
    live
}

/// Checks a node, whose networks and provider are given once.
fn node(old: &Value, spec: &Value) -> Vec<Cause> {
    let id = |of: &Value| of["providerID"].as_str().unwrap_or_default().to_owned();
    let networks = networks(old);
    let mut causes = Vec::new();
    if !networks.is_empty() && networks != self::networks(spec) {
        let why = "Forbidden: node updates may not change podCIDR except from \"\" to valid";
        causes.push(cause(FORBIDDEN, "spec.podCIDRs", why));
    }
    if !id(old).is_empty() && id(old) != id(spec) {
        let why = "Forbidden: node updates may not change providerID except from \"\" to valid";
        causes.push(cause(FORBIDDEN, "spec.providerID", why));
    }
    causes
}

/// Returns the networks of a node's pods. Where its two fields differ, the older one counts.
fn networks(spec: &Value) -> Vec<&str> {
    let first = spec["podCIDR"].as_str().filter(|first| !first.is_empty());
    let all = spec["podCIDRs"].as_array().into_iter().flatten();
    let all: Vec<&str> = all.filter_map(Value::as_str).collect();
    match first {
        Some(first) if all.first() != Some(&first) => vec![first],
        _ => all,
    }
}

/// Checks a service that stays one for a load balancer: its class does.
fn service(old: &Value, spec: &Value) -> Option<Cause> {
    let is_balanced = |spec: &Value| spec["type"] == "LoadBalancer";
    let (before, after) = (&old["loadBalancerClass"], &spec["loadBalancerClass"]);
    let changes = is_balanced(old) && is_balanced(spec) && before != after;
    let why = format!("Invalid value: {after}: may not change once set");
    changes.then(|| cause(INVALID, "spec.loadBalancerClass", why))
}
