//! The rules of quotas, leases, classes and events.

use serde_json::Value;
use vmhost_schema::billionths;

use super::told::{NOT_NEGATIVE, Rule, Told, has, int, list, text};

/// The largest value of a class that is not the system's.
const HIGHEST: i64 = 1_000_000_000;

#[cfg(test)]
pub(super) const COUNT: usize = 6;

pub(super) fn rule(name: &str) -> Option<Rule> {
    let rule: Rule = match name {
        "core.v1.ResourceQuotaSpec" => quota,
        "core.v1.LimitRangeSpec" => limits,
        "core.v1.Event" => event,
        "coordination.v1.LeaseSpec" => lease,
        "scheduling.v1.PriorityClass" => priority,
        "node.v1.RuntimeClass" => runtime,
        _ => return None,
    };
    Some(rule)
}

fn quota(of: &Value, told: &mut Told<'_>) {
    let hard = of["hard"].as_object();
    for (name, amount) in hard.into_iter().flatten() {
        if amount
            .as_str()
            .and_then(billionths)
            .is_some_and(|amount| amount < 0)
        {
            told.invalid(&format!("hard[{name}]"), amount, NOT_NEGATIVE);
        }
    }
}

fn limits(of: &Value, told: &mut Told<'_>) {
    let mut kinds = std::collections::HashSet::new();
    for (at, limit) in list(of, "limits") {
        let kind = text(limit, "type");
        if !kind.is_empty() && !kinds.insert(kind) {
            told.duplicate(&format!("limits[{at}].type"), &limit["type"]);
        }
    }
}

fn event(of: &Value, told: &mut Told<'_>) {
    let about = text(&of["involvedObject"], "namespace");
    let own = text(&of["metadata"], "namespace");
    let matches = match (about.is_empty(), has(of, "eventTime")) {
        (true, false) => own == "default",
        (true, true) => matches!(own, "default" | "kube-system"),
        (false, false) => about == own,
        (false, true) => true,
    };
    if !matches {
        let why = "does not match event.namespace";
        told.invalid("involvedObject.namespace", &about.into(), why);
    }
}

fn lease(of: &Value, told: &mut Told<'_>) {
    if int(of, "leaseDurationSeconds").is_some_and(|seconds| seconds <= 0) {
        let seconds = &of["leaseDurationSeconds"];
        told.invalid("leaseDurationSeconds", seconds, "must be greater than 0");
    }
    told.not_negative(of, &["leaseTransitions"]);
}

fn priority(of: &Value, told: &mut Told<'_>) {
    let name = text(&of["metadata"], "name");
    // The system's own classes are created like any other.
    if matches!(name, "system-cluster-critical" | "system-node-critical") {
        return;
    }
    if name.starts_with("system-") {
        let why = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system priority class"
        );
        told.forbidden("metadata.name", &why);
    } else if int(of, "value").is_some_and(|value| value > HIGHEST) {
        let why = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        told.forbidden("value", &why);
    }
}

fn runtime(of: &Value, told: &mut Told<'_>) {
    if text(of, "handler").is_empty() {
        told.required("handler", "");
    }
    told.label(of, "handler");
}
