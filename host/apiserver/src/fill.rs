//! Defaults and checks of built-in kinds that their data cannot express: addresses, policies,
//! classes.
//!
//! Owns which of them belong to the decoding of an object, to admission and to the strategy of its
//! kind: who owns a field depends on it.
//!
//! `builtin/behaviour.json` selects them by name. Follows k8s.io/kubernetes
//! `pkg/apis/*/v1/defaults.go`, `pkg/registry` and the admission plugins of every cluster. Must not
//! know requests, or store anything.

mod absent;
mod autoscaler;
mod claim;
mod classes;
mod containers;
mod data;
mod limits;
mod node_ports;
mod pod;
mod policies;
mod priority;
mod quality;
mod service;
mod signing;
mod small;
mod webhooks;
mod workload;

use serde_json::Value;

use crate::kinds::Fill;
use crate::state::Inner;
use crate::status::Cause;

/// Fills in the defaults that Go sets when it decodes an object, after those of its schema. The
/// author of a write owns them.
pub(crate) fn default(kind: Fill, new: &mut Value) {
    match kind {
        Fill::Pod => pod::default(new),
        Fill::PodTemplate => workload::pod_template(new),
        Fill::CronJob => workload::cron_job(new),
        Fill::Job => workload::job(new),
        Fill::Template => workload::template(new),
        Fill::Deployment => workload::deployment(new),
        Fill::DaemonSet => workload::daemon_set(new),
        Fill::StatefulSet => workload::stateful_set(new),
        Fill::ReplicationController => workload::replication_controller(new),
        Fill::Service => service::default(new),
        Fill::Autoscaler => autoscaler::fill(new),
        Fill::Binding => small::binding_groups(new),
        Fill::LimitRange => limits::fill(new),
        Fill::NetworkPolicy => small::network_policy(new),
        Fill::Node => small::node(new),
        Fill::ResourceClaim => small::resource_claim(new.pointer_mut("/spec/devices/requests")),
        Fill::ResourceClaimTemplate => {
            small::resource_claim(new.pointer_mut("/spec/spec/devices/requests"));
        }
        Fill::Nothing
        | Fill::Claim
        | Fill::ConfigMap
        | Fill::Ingress
        | Fill::MutatingBinding
        | Fill::MutatingPolicy
        | Fill::Policy
        | Fill::PolicyBinding
        | Fill::PriorityClass
        | Fill::Role
        | Fill::Secret
        | Fill::SigningRequest
        | Fill::Volume
        | Fill::WebhookConfiguration => {}
    }
}

/// Completes an object as the admission plugins of every cluster do, or returns why it is
/// forbidden. No manager owns what they set.
pub(crate) fn admit(
    kind: Fill,
    inner: &Inner,
    live: Option<&Value>,
    new: &mut Value,
) -> Option<String> {
    match kind {
        Fill::Pod => return pod::admit(inner, live, new),
        // A part of a cluster may lack classes.
        Fill::PriorityClass if !inner.partial => return priority::admit(inner, live, new),
        Fill::Claim if live.is_none() => classes::claim(inner, new),
        Fill::Ingress if live.is_none() => classes::ingress(inner, new),
        Fill::Node if live.is_none() => small::taint(new),
        _ => {}
    }
    None
}

/// Returns what is wrong with an object. In a part of a cluster, what its server has accepted is
/// left out.
fn unknown(
    inner: &Inner,
    live: Option<&Value>,
    faults: fn(&Value) -> Vec<Cause>,
    new: &Value,
) -> Vec<Cause> {
    let mut causes = faults(new);
    if let Some(live) = live.filter(|_| inner.partial && !causes.is_empty()) {
        let known = faults(live);
        causes.retain(|cause| !known.contains(cause));
    }
    causes
}

/// Completes an object as the strategy of its kind does before it is stored; returns what is wrong
/// with it. No manager owns what is set here. `now` is the time of the request.
pub(crate) fn fill(
    kind: Fill,
    inner: &Inner,
    live: Option<&Value>,
    new: &mut Value,
    now: &str,
) -> Vec<Cause> {
    match kind {
        Fill::Pod if live.is_none() => quality::classify(new),
        Fill::Claim => claim::sources(live, new),
        Fill::Job => workload::select_pods(live, new),
        Fill::DaemonSet => workload::count_templates(live, new),
        Fill::ConfigMap => return unknown(inner, live, data::config_map, new),
        Fill::Secret => return unknown(inner, live, data::secret, new),
        Fill::Service => return service::allocate(inner, live, new),
        Fill::Binding => return small::binding(new),
        Fill::Role => return small::role(new),
        Fill::SigningRequest => {
            small::signing_request(live, new);
            if live.is_none() {
                return signing::faults(new);
            }
        }
        Fill::Volume => small::volume(live, new, now),
        Fill::WebhookConfiguration => return webhooks::configuration(new),
        Fill::Policy => return policies::validating(new),
        Fill::PolicyBinding => return policies::validating_binding(new),
        Fill::MutatingPolicy => return policies::mutating(new),
        Fill::MutatingBinding => return policies::mutating_binding(new),
        Fill::Nothing
        | Fill::Autoscaler
        | Fill::CronJob
        | Fill::Deployment
        | Fill::Ingress
        | Fill::LimitRange
        | Fill::NetworkPolicy
        | Fill::Node
        | Fill::Pod
        | Fill::PodTemplate
        | Fill::PriorityClass
        | Fill::ReplicationController
        | Fill::ResourceClaim
        | Fill::ResourceClaimTemplate
        | Fill::StatefulSet
        | Fill::Template => {}
    }
    match inner.partial {
        true => workload::mismatch(kind, new),
        false => workload::faults(kind, live, new),
    }
}
