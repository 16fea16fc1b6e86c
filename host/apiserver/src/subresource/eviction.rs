//! Eviction: a deletion of a pod that its disruption budget must allow.
//!
//! Follows k8s.io/kubernetes `pkg/registry/core/pod/storage/eviction.go`. Must not know how
//! a budget is computed: without its controller, it allows nothing.

use serde_json::{Value, json};

use super::act::{check_name, success};
use crate::call::{Call, Done};
use crate::delete::{self, DeleteOptions};
use crate::meta;
use crate::object::{Key, Object};
use crate::selector;
use crate::state::Inner;
use crate::status::ApiError;

const BUDGETS: &str = "policy/poddisruptionbudgets";
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Deletes a pod if its budget allows that.
pub(super) fn evict(
    inner: &mut Inner,
    call: &Call<'_>,
    pod: &Object,
    eviction: &Value,
) -> Result<Done, ApiError> {
    check_name(call, eviction, "Eviction")?;
    let options = eviction.get("deleteOptions").filter(|it| !it.is_null());
    let options = match options {
        Some(options) => DeleteOptions::of(options.clone())?,
        None => DeleteOptions::default(),
    };
    let spent = match budget(inner, call, pod)? {
        Some((key, budget)) => Some((key, spend(&budget, call)?)),
        None => None,
    };
    // An eviction whose deletion is refused disrupts nothing.
    delete::carry_out(inner, call, &options)?;
    if let Some((key, spent)) = spent.filter(|_| !options.dry(call)) {
        inner.store.put(&BUDGETS.into(), key, spent);
    }
    Ok(success())
}

/// Returns the budget that a pod counts for; `None` if its eviction disrupts nothing.
fn budget(inner: &Inner, call: &Call<'_>, pod: &Object) -> Result<Option<(Key, Object)>, ApiError> {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str);
    let idle = matches!(phase, Some("Succeeded" | "Failed" | "Pending"));
    if idle || meta::is_deleting(pod) {
        return Ok(None);
    }
    let labels = meta::get(pod, "labels");
    let all = inner.store.list(BUDGETS, Some(call.namespace));
    let mut matching = all.filter(|(_, budget)| {
        let selector = budget.pointer("/spec/selector");
        selector.is_some_and(|selector| selector::covers(selector, labels))
    });
    let first = matching.next();
    if matching.next().is_some() {
        return Err(ApiError::new(
            500,
            "InternalError",
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        ));
    }
    let covered = first.filter(|(_, budget)| {
        let policy = budget.pointer("/spec/unhealthyPodEvictionPolicy");
        is_ready(pod) || policy != Some(&json!("AlwaysAllow"))
    });
    Ok(covered.map(|(key, budget)| (key.clone(), budget)))
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|c| c["type"] == "Ready" && c["status"] == "True")
}

/// Returns the budget after one more disruption.
fn spend(budget: &Object, call: &Call<'_>) -> Result<Value, ApiError> {
    let name = meta::text(budget, "name");
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let generation = meta::get(budget, "generation").and_then(Value::as_i64);
    if number("observedGeneration") < generation.unwrap_or(0) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refused(why, Some(10)));
    }
    let allowed = number("disruptionsAllowed");
    if allowed < 1 {
        let (needs, has) = (number("desiredHealthy"), number("currentHealthy"));
        let why = format!(
            "The disruption budget {name} needs {needs} healthy pods and has {has} currently"
        );
        return Err(refused(why, None));
    }
    let mut spent = Value::clone(budget);
    spent["status"]["disruptionsAllowed"] = json!(allowed - 1);
    spent["status"]["disruptedPods"][call.name] = json!(call.now);
    Ok(spent)
}

fn refused(why: String, retry: Option<u32>) -> ApiError {
    let mut error = ApiError::new(429, "TooManyRequests", REFUSED);
    if let Some(seconds) = retry {
        error.details = Some(json!({ "retryAfterSeconds": seconds }));
    }
    error.with_causes(vec![
        json!({ "reason": "DisruptionBudget", "message": why }),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ready_pod_has_a_true_condition() {
        let pod = |status: &str| json!({ "status": { "conditions": [{ "type": "Ready", "status": status }] } });
        assert!(is_ready(&pod("True")));
        assert!(!is_ready(&pod("False")) && !is_ready(&json!({})));
    }
}
