//! Defaults and checks of built-in kinds that their data cannot express: addresses, policies,
//! classes.
//!
//! `builtin/behaviour.json` selects them by name. Follows k8s.io/kubernetes
//! `pkg/apis/*/v1/defaults.go`, `pkg/registry` and the admission plugins of every cluster. Must not
//! know requests, or store anything.

mod absent;
mod autoscaler;
mod limits;
mod node_ports;
mod pod;
mod service;
mod small;
mod webhooks;
mod workload;

use serde_json::Value;

use crate::kinds::Fill;
use crate::state::Inner;
use crate::status::Cause;

/// Returns why an object may not be created as it is; in a part of a cluster, classes are missing.
pub(crate) fn forbidden(
    kind: Fill,
    inner: &Inner,
    live: Option<&Value>,
    new: &Value,
) -> Option<String> {
    match kind {
        Fill::Pod if live.is_none() && !inner.partial => pod::forbidden(inner, new),
        _ => None,
    }
}

/// Completes an object after its schema's defaults were filled in; returns what is wrong with it.
/// `now` is the time of the request.
pub(crate) fn fill(
    kind: Fill,
    inner: &Inner,
    live: Option<&Value>,
    new: &mut Value,
    now: &str,
) -> Vec<Cause> {
    match kind {
        Fill::Nothing => {}
        Fill::Pod => pod::fill(inner, live, new),
        Fill::PodTemplate => workload::pod_template(new),
        Fill::CronJob => workload::cron_job(new),
        Fill::Job => workload::job(live, new),
        Fill::Template => return workload::template(new),
        Fill::Deployment => return workload::deployment(new),
        Fill::DaemonSet => return workload::daemon_set(live, new),
        Fill::StatefulSet => return workload::stateful_set(new),
        Fill::ReplicationController => return workload::replication_controller(new),
        Fill::Service => return service::fill(inner, live, new),
        Fill::Autoscaler => autoscaler::fill(new),
        Fill::Binding => return small::binding(new),
        Fill::LimitRange => limits::fill(new),
        Fill::NetworkPolicy => small::network_policy(new),
        Fill::Node => small::node(live, new),
        Fill::ResourceClaim => small::resource_claim(new.pointer_mut("/spec/devices/requests")),
        Fill::ResourceClaimTemplate => {
            small::resource_claim(new.pointer_mut("/spec/spec/devices/requests"));
        }
        Fill::Role => return small::role(new),
        Fill::SigningRequest => small::signing_request(live, new),
        Fill::Volume => small::volume(live, new, now),
        Fill::WebhookConfiguration => return webhooks::configuration(new),
        Fill::Policy => return webhooks::policy(new),
        Fill::PolicyBinding => return webhooks::binding(new),
    }
    Vec::new()
}
