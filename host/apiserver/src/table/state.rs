//! Cells that sum up the state of an object.
//!
//! Follows k8s.io/kubernetes `pkg/printers/internalversion/printers.go`. Must not know kinds beyond
//! their columns.

mod autoscaler;
mod list;

use serde_json::{Value, json};

use super::age::{age, duration};
use crate::kinds::{Column, Show};
use crate::meta;
use autoscaler::targets;
use list::list;

/// Label keys that begin with this name a role of a node.
const ROLE: &str = "node-role.kubernetes.io/";
/// The older label, whose value names the role.
const OLD_ROLE: &str = "kubernetes.io/role";

/// Returns the cell of a column that shows a state; `None` if it does not.
pub(super) fn cell(column: &Column, object: &Value) -> Option<Value> {
    let mut paths = column.paths.iter().map(|path| path.find(object));
    let found = paths.find(|found| !found.is_empty()).unwrap_or_default();
    let first = found.first().copied();
    let text = match column.show {
        Show::Phase if meta::is_deleting(object) => "Terminating".to_owned(),
        Show::Phase => first.and_then(Value::as_str).unwrap_or_default().to_owned(),
        Show::AccessModes => access_modes(&found),
        Show::Available => available(first),
        Show::ClaimState => claim_state(object),
        Show::Completions => completions(object),
        Show::Duration => run_time(object),
        Show::Gates => gates(object, &found),
        Show::Hosts => hosts(&found),
        Show::IngressPorts if found.is_empty() => "80".to_owned(),
        Show::IngressPorts => "80, 443".to_owned(),
        Show::JobStatus => job_status(object, &found),
        Show::Requests => quota(object, false),
        Show::Limits => quota(object, true),
        Show::NodeRoles => node_roles(first),
        Show::NodeStatus => node_status(object, &found),
        Show::Signing => signing(object),
        Show::Targets => targets(object),
        _ => return None,
    };
    Some(json!(text))
}

fn is_true(conditions: &[&Value], kind: &str) -> bool {
    let mut found = conditions.iter().filter(|c| c["type"] == kind);
    found.next().is_some_and(|c| c["status"] == "True")
}

fn access_modes(modes: &[&Value]) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let known = short
        .into_iter()
        .filter(|(long, _)| modes.iter().any(|mode| *mode == long));
    let known: Vec<&str> = known.map(|(_, short)| short).collect();
    known.join(",")
}

fn available(condition: Option<&Value>) -> String {
    let Some(condition) = condition else {
        return "Unknown".to_owned();
    };
    let part = |name: &str| condition[name].as_str().unwrap_or_default();
    match (part("status"), part("reason")) {
        ("True", _) => "True".to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}

fn claim_state(claim: &Value) -> String {
    let deleted = meta::is_deleting(claim);
    let allocated = claim.pointer("/status/allocation").is_some();
    let mut states = Vec::new();
    if deleted {
        states.push("deleted");
    }
    match (allocated, deleted) {
        (false, false) => states.push("pending"),
        (false, true) => {}
        (true, _) => states.push("allocated"),
    }
    if allocated && !list(claim, "/status/reservedFor").is_empty() {
        states.push("reserved");
    }
    states.join(",")
}

fn completions(job: &Value) -> String {
    let number = |pointer: &str| job.pointer(pointer).and_then(Value::as_i64);
    let succeeded = number("/status/succeeded").unwrap_or(0);
    match (number("/spec/completions"), number("/spec/parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, Some(parallelism)) if parallelism > 1 => {
            format!("{succeeded}/1 of {parallelism}")
        }
        (None, _) => format!("{succeeded}/1"),
    }
}

fn run_time(job: &Value) -> String {
    let time = |name: &str| job.pointer(name)?.as_str();
    let Some(start) = time("/status/startTime") else {
        return String::new();
    };
    let parsed = |text: &str| text.parse::<jiff::Timestamp>().ok();
    match time("/status/completionTime").and_then(parsed) {
        None => age(start),
        Some(end) => {
            let start = parsed(start).unwrap_or(end);
            duration(end.as_second() - start.as_second())
        }
    }
}

fn gates(pod: &Value, gates: &[&Value]) -> String {
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let conditions = list(pod, "/status/conditions");
    let passed = gates.iter().filter(|gate| {
        let kind = gate["conditionType"].as_str().unwrap_or_default();
        is_true(&conditions, kind)
    });
    format!("{}/{}", passed.count(), gates.len())
}

fn hosts(rules: &[&Value]) -> String {
    let hosts = rules.iter().filter_map(|rule| rule["host"].as_str());
    let hosts: Vec<&str> = hosts.filter(|host| !host.is_empty()).take(3).collect();
    match (hosts.len(), rules.len()) {
        (0, _) => "*".to_owned(),
        (3, rules) if rules > 3 => format!("{} + {} more...", hosts.join(","), rules - 3),
        _ => hosts.join(","),
    }
}

fn job_status(job: &Value, conditions: &[&Value]) -> String {
    let states = [
        ("Complete", is_true(conditions, "Complete")),
        ("Failed", is_true(conditions, "Failed")),
        ("Terminating", meta::is_deleting(job)),
        ("Suspended", is_true(conditions, "Suspended")),
        ("FailureTarget", is_true(conditions, "FailureTarget")),
        (
            "SuccessCriteriaMet",
            is_true(conditions, "SuccessCriteriaMet"),
        ),
    ];
    let state = states.into_iter().find(|(_, holds)| *holds);
    state.map_or("Running", |(state, _)| state).to_owned()
}

/// Returns the used and allowed amounts of a quota's limits, or of all others.
fn quota(quota: &Value, limits: bool) -> String {
    let hard = quota.pointer("/status/hard").and_then(Value::as_object);
    let shown = hard.into_iter().flatten();
    let shown = shown.filter(|(resource, _)| resource.starts_with("limits.") == limits);
    let texts = shown.map(|(resource, hard)| {
        let used = quota
            .pointer("/status/used")
            .and_then(|used| used.get(resource))
            .and_then(Value::as_str)
            .unwrap_or("0");
        format!("{resource}: {used}/{}", hard.as_str().unwrap_or("0"))
    });
    texts.collect::<Vec<_>>().join(", ")
}

fn node_roles(labels: Option<&Value>) -> String {
    let labels = labels.and_then(Value::as_object).into_iter();
    let roles = labels
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix(ROLE) {
            Some(role) => Some(role),
            None if key == OLD_ROLE => value.as_str(),
            None => None,
        });
    let mut roles: Vec<&str> = roles.filter(|role| !role.is_empty()).collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() {
        return "<none>".to_owned();
    }
    roles.join(",")
}

fn node_status(node: &Value, conditions: &[&Value]) -> String {
    let ready = conditions.iter().any(|c| c["type"] == "Ready");
    let mut states = vec![match ready {
        false => "Unknown",
        true if is_true(conditions, "Ready") => "Ready",
        true => "NotReady",
    }];
    if node.pointer("/spec/unschedulable") == Some(&json!(true)) {
        states.push("SchedulingDisabled");
    }
    states.join(",")
}

fn signing(request: &Value) -> String {
    let conditions = list(request, "/status/conditions");
    let has = |kind: &str| conditions.iter().any(|c| c["type"] == kind);
    let mut states = Vec::new();
    match (has("Denied"), has("Approved")) {
        (true, _) => states.push("Denied"),
        (false, true) => states.push("Approved"),
        (false, false) => states.push("Pending"),
    }
    if has("Failed") {
        states.push("Failed");
    }
    let certificate = request.pointer("/status/certificate");
    if certificate
        .and_then(Value::as_str)
        .is_some_and(|c| !c.is_empty())
    {
        states.push("Issued");
    }
    states.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_show_their_state_and_roles() {
        let node = json!({
            "metadata": { "labels": { "node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge" } },
            "spec": { "unschedulable": true },
            "status": { "conditions": [{ "type": "Ready", "status": "False" }] },
        });
        assert_eq!(
            node_status(&node, &list(&node, "/status/conditions")),
            "NotReady,SchedulingDisabled"
        );
        assert_eq!(node_status(&json!({}), &[]), "Unknown");
        assert_eq!(node_roles(node.pointer("/metadata/labels")), "edge,worker");
        assert_eq!(node_roles(None), "<none>");
    }

    #[test]
    fn jobs_show_their_progress() {
        let job = json!({ "spec": { "completions": 3 }, "status": { "succeeded": 1,
            "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:30Z" } });
        assert_eq!(completions(&job), "1/3");
        assert_eq!(run_time(&job), "90s");
        assert_eq!(job_status(&job, &[]), "Running");
        let failed = json!({ "type": "Failed", "status": "True" });
        assert_eq!(job_status(&job, &[&failed]), "Failed");
    }

    #[test]
    fn autoscalers_show_their_metrics() {
        let autoscaler = json!({ "spec": { "metrics": [
            { "type": "Resource", "resource": { "name": "cpu", "target": { "averageUtilization": 80 } } },
            { "type": "Pods", "pods": { "target": { "averageValue": "5" } } },
            { "type": "Pods", "pods": { "target": { "averageValue": "6" } } },
        ] } });
        assert_eq!(
            targets(&autoscaler),
            "cpu: <unknown>/80%, <unknown>/5 + 1 more..."
        );
        let old = json!({ "spec": { "targetCPUUtilizationPercentage": 50 } });
        assert_eq!(targets(&old), "cpu: <unknown>/50%");
    }

    #[test]
    fn quotas_show_what_is_used() {
        let used = json!({ "status": { "hard": { "pods": "2", "limits.cpu": "4" }, "used": { "pods": "1" } } });
        assert_eq!(quota(&used, false), "pods: 1/2");
        assert_eq!(quota(&used, true), "limits.cpu: 0/4");
    }
}
