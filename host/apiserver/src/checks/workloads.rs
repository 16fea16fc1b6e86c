//! The rules of what runs pods, or decides how many.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::told::{Rule, Told, has, int, is_blank, list, text};

const INDEXED: &str = "requires indexed completion mode";
/// The types of metrics, with the field that says more.
const METRICS: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

#[cfg(test)]
pub(super) const COUNT: usize = 14;

pub(super) fn rule(name: &str) -> Option<Rule> {
    let rule: Rule = match name {
        "apps.v1.DeploymentSpec" => deployment,
        "apps.v1.ReplicaSetSpec" => |of, told| owner(of, told, "deployment", "ReplicaSet"),
        "apps.v1.StatefulSetSpec" => |of, told| owner(of, told, "statefulset", "StatefulSet"),
        "apps.v1.DaemonSetSpec" => |of, told| owner(of, told, "daemonset", "DaemonSet"),
        "apps.v1.DeploymentStrategy" => strategy,
        "core.v1.ReplicationControllerSpec" => {
            |of, told| deadline(of, told, "ReplicationController")
        }
        "batch.v1.JobSpec" => job,
        "batch.v1.CronJobSpec" => cron_job,
        "batch.v1.CronJob" => named_for_jobs,
        "autoscaling.v1.HorizontalPodAutoscalerSpec"
        | "autoscaling.v2.HorizontalPodAutoscalerSpec" => autoscaler,
        "autoscaling.v2.MetricSpec" => metric,
        "autoscaling.v2.MetricTarget" => target,
        "policy.v1.PodDisruptionBudgetSpec" => budget,
        _ => return None,
    };
    Some(rule)
}

/// Checks a kind that keeps pods running: `selects` names it where its selector is empty.
fn owner(of: &Value, told: &mut Told<'_>, selects: &str, kind: &str) {
    if of["selector"]
        .as_object()
        .is_some_and(serde_json::Map::is_empty)
    {
        let why = format!("empty selector is invalid for {selects}");
        told.invalid("selector", &json!({}), &why);
    }
    deadline(of, told, kind);
}

/// Returns the spec of a StatefulSet as Go checks it: its claims replace volumes of the pods, and
/// the names that the pods have are not looked at, since the set gives each another one.
pub(super) fn with_claims(spec: &Value) -> Cow<'_, Value> {
    let claims = list(spec, "volumeClaimTemplates");
    let claims: BTreeSet<&str> = claims
        .map(|(_, claim)| text(&claim["metadata"], "name"))
        .collect();
    let named = |name: &str| has(&spec["template"]["spec"], name);
    if claims.is_empty() && !named("hostname") && !named("subdomain") {
        return Cow::Borrowed(spec);
    }
    let mut made = spec.clone();
    let pods = made.pointer_mut("/template/spec");
    if let Some(pods) = pods.and_then(Value::as_object_mut) {
        pods.remove("hostname");
        pods.remove("subdomain");
        if let Some(Value::Array(volumes)) = pods.get_mut("volumes") {
            let own = std::mem::take(volumes).into_iter();
            let rest = own.filter(|volume| !claims.contains(text(volume, "name")));
            let claimed = |name: &&str| json!({ "name": name, "persistentVolumeClaim": { "claimName": name } });
            *volumes = claims.iter().map(claimed).chain(rest).collect();
        }
    }
    Cow::Owned(made)
}

fn deadline(of: &Value, told: &mut Told<'_>, kind: &str) {
    let pods = of.pointer("/template/spec");
    if pods.is_some_and(|pods| has(pods, "activeDeadlineSeconds")) {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        told.forbidden("template.spec.activeDeadlineSeconds", &why);
    }
}

fn deployment(of: &Value, told: &mut Told<'_>) {
    owner(of, told, "deployment", "ReplicaSet");
    let (most, least) = (
        int(of, "progressDeadlineSeconds"),
        int(of, "minReadySeconds"),
    );
    if most.is_some_and(|most| (0..=least.unwrap_or(0)).contains(&most)) {
        let most = &of["progressDeadlineSeconds"];
        told.invalid(
            "progressDeadlineSeconds",
            most,
            "must be greater than minReadySeconds",
        );
    }
}

fn strategy(of: &Value, told: &mut Told<'_>) {
    let rolling = &of["rollingUpdate"];
    match text(of, "type") {
        "Recreate" if has(of, "rollingUpdate") => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            told.forbidden("rollingUpdate", why);
        }
        "RollingUpdate" => {
            let path = format!("{}.rollingUpdate", told.path);
            let mut told = Told {
                path: &path,
                causes: told.causes,
            };
            told.portion(rolling, "maxUnavailable");
            told.portion(rolling, "maxSurge");
            let is_none = |name: &str| rolling[name] == 0 || rolling[name] == "0%";
            if is_none("maxUnavailable") && is_none("maxSurge") {
                let most = &rolling["maxUnavailable"];
                told.invalid("maxUnavailable", most, "may not be 0 when `maxSurge` is 0");
            }
            told.at_most_all(rolling, "maxUnavailable");
        }
        _ => {}
    }
}

fn job(of: &Value, told: &mut Told<'_>) {
    if text(of, "completionMode") == "Indexed" {
        if !has(of, "completions") {
            told.required("completions", "when completion mode is Indexed");
        }
        return;
    }
    for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
        if has(of, name) {
            told.invalid(name, &of[name], INDEXED);
        }
    }
}

fn cron_job(of: &Value, told: &mut Told<'_>) {
    let schedule = text(of, "schedule");
    if is_blank(of, "schedule") {
        told.required("schedule", "");
    } else if has(of, "schedule") {
        // A zone is no field, but may not be there either.
        let times = match schedule.split_once(' ') {
            Some((zone, rest)) if zone.contains("TZ=") => rest,
            _ => schedule,
        };
        let fields: Vec<&str> = times.split_whitespace().collect();
        if !times.starts_with('@') && fields.len() != 5 {
            let found = format!("found {}: [{}]", fields.len(), fields.join(" "));
            let why = format!("expected exactly 5 fields, {found}");
            told.invalid("schedule", &of["schedule"], &why);
        }
        if schedule.contains("TZ") {
            let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            told.invalid("schedule", &of["schedule"], why);
        }
    }
    told.not_negative(
        of,
        &[
            "startingDeadlineSeconds",
            "successfulJobsHistoryLimit",
            "failedJobsHistoryLimit",
        ],
    );
}

/// Checks that the names of jobs, which are longer, have room.
fn named_for_jobs(of: &Value, told: &mut Told<'_>) {
    let name = &of["metadata"]["name"];
    if name.as_str().is_some_and(|name| name.len() > 52) {
        told.invalid("metadata.name", name, "must be no more than 52 characters");
    }
}

fn autoscaler(of: &Value, told: &mut Told<'_>) {
    let (least, most) = (int(of, "minReplicas"), int(of, "maxReplicas"));
    if least.is_some_and(|least| least < 1) {
        let why = "must be greater than or equal to 1";
        told.invalid("minReplicas", &of["minReplicas"], why);
    }
    match most {
        Some(0) => told.required("maxReplicas", "must be set and greater than 0"),
        Some(..0) => {
            let why = "must be greater than or equal to 1";
            told.invalid("maxReplicas", &of["maxReplicas"], why);
        }
        _ => {}
    }
    if least.zip(most).is_some_and(|(least, most)| most < least) {
        let why = "must be greater than or equal to `minReplicas`";
        told.invalid("maxReplicas", &of["maxReplicas"], why);
    }
    for name in ["kind", "name"] {
        if is_blank(&of["scaleTargetRef"], name) {
            told.required(&format!("scaleTargetRef.{name}"), "");
        }
    }
    let outside = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    if least == Some(0) && !list(of, "metrics").any(|(_, metric)| outside(metric)) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        told.forbidden("metrics", why);
    }
}

fn metric(of: &Value, told: &mut Told<'_>) {
    let mut known = METRICS.into_iter();
    let more = known.find(|(kind, _)| *kind == text(of, "type"));
    if let Some((_, field)) = more.filter(|(_, field)| !has(of, field)) {
        told.required(
            field,
            "must populate information for the given metric source",
        );
    }
}

fn target(of: &Value, told: &mut Told<'_>) {
    if int(of, "averageUtilization").is_some_and(|percent| percent < 1) {
        told.invalid(
            "averageUtilization",
            &of["averageUtilization"],
            "must be greater than 0",
        );
    }
}

fn budget(of: &Value, told: &mut Told<'_>) {
    if has(of, "minAvailable") && has(of, "maxUnavailable") {
        // As Go prints its own form of the spec.
        let part = |name: &str| of.get(name).unwrap_or(&Value::Null).clone();
        let shown = format!(
            r#"{{"MinAvailable":{},"Selector":{},"MaxUnavailable":{},"UnhealthyPodEvictionPolicy":{}}}"#,
            part("minAvailable"),
            part("selector"),
            part("maxUnavailable"),
            part("unhealthyPodEvictionPolicy"),
        );
        let why = "minAvailable and maxUnavailable cannot be both set";
        told.shown("", &shown, why);
    }
    for name in ["minAvailable", "maxUnavailable"] {
        told.portion(of, name);
        told.at_most_all(of, name);
    }
}
