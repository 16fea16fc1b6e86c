//! The rules of webhook configurations, and those that admission policies share with them.
//!
//! Follows k8s.io/kubernetes `pkg/apis/admissionregistration/validation`. Must not know when a
//! webhook is called.

use serde_json::{Value, json};
use vmhost_rules::{Scope, Wanted};

use crate::meta::check::is_subdomain;
use crate::reach;
use crate::status::{Cause, INVALID, NOT_SUPPORTED, REQUIRED, cause};

pub(super) fn invalid(field: String, value: &Value, why: &str) -> Cause {
    cause(INVALID, field, format!("Invalid value: {value}: {why}"))
}

pub(super) fn list<'v>(
    of: &'v Value,
    field: &str,
) -> impl Iterator<Item = (usize, &'v Value)> + use<'v> {
    let list = of.get(field).and_then(Value::as_array);
    list.into_iter().flatten().enumerate()
}

pub(super) fn text<'v>(of: &'v Value, field: &str) -> &'v str {
    of.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns what is wrong with a webhook configuration.
pub(super) fn configuration(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut names = Vec::new();
    for (at, webhook) in list(object, "webhooks") {
        let here = format!("webhooks[{at}]");
        let name = text(webhook, "name");
        if !is_subdomain(name) || name.split('.').count() < 3 {
            let why = "should be a domain with at least three segments separated by dots";
            causes.push(invalid(format!("{here}.name"), &json!(name), why));
        }
        if names.contains(&name) {
            let why = format!("Duplicate value: {name:?}");
            causes.push(cause("FieldValueDuplicate", format!("{here}.name"), why));
        }
        names.push(name);
        rules(webhook, "rules", &here, &mut causes);
        side_effects(webhook, &here, &mut causes);
        if let Some(config) = webhook.get("clientConfig") {
            reach::check::check(config, &format!("{here}.clientConfig"), &mut causes);
        }
        let seconds = webhook.get("timeoutSeconds").and_then(Value::as_i64);
        if let Some(seconds) = seconds.filter(|seconds| !(1..=30).contains(seconds)) {
            let why = "the timeout value must be between 1 and 30 seconds";
            causes.push(invalid(
                format!("{here}.timeoutSeconds"),
                &json!(seconds),
                why,
            ));
        }
        versions(webhook, &here, &mut causes);
        let scope = Scope::new(&["object", "oldObject", "request"]).with_authorizer();
        conditions(webhook, &scope, &here, &mut causes);
    }
    causes
}

fn side_effects(webhook: &Value, here: &str, causes: &mut Vec<Cause>) {
    let field = format!("{here}.sideEffects");
    match text(webhook, "sideEffects") {
        "None" | "NoneOnDryRun" => {}
        "" => {
            let why = "Required value: must specify one of None, NoneOnDryRun";
            causes.push(cause(REQUIRED, field, why));
        }
        other => {
            let known = "\"None\", \"NoneOnDryRun\"";
            let why = format!("Unsupported value: {other:?}: supported values: {known}");
            causes.push(cause(NOT_SUPPORTED, field, why));
        }
    }
}

fn versions(webhook: &Value, here: &str, causes: &mut Vec<Cause>) {
    let field = format!("{here}.admissionReviewVersions");
    let all: Vec<&str> = list(webhook, "admissionReviewVersions")
        .filter_map(|(_, version)| version.as_str())
        .collect();
    if all.is_empty() {
        let why = "Required value: must specify one of v1, v1beta1";
        causes.push(cause(REQUIRED, field, why));
    } else if !all
        .iter()
        .any(|version| matches!(*version, "v1" | "v1beta1"))
    {
        let why = "must include at least one of v1, v1beta1";
        causes.push(invalid(field, &json!(all), why));
    }
}

pub(super) fn rules(of: &Value, name: &str, here: &str, causes: &mut Vec<Cause>) {
    for (at, rule) in list(of, name) {
        let here = format!("{here}.{name}[{at}]");
        for field in ["operations", "apiGroups", "apiVersions", "resources"] {
            let count = list(rule, field).count();
            let wild = list(rule, field).any(|(_, item)| item == "*");
            let field_at = format!("{here}.{field}");
            let what = match field {
                "apiGroups" => "API groups",
                "apiVersions" => "API versions",
                other => other,
            };
            if count == 0 {
                causes.push(cause(REQUIRED, field_at, "Required value"));
            } else if wild && count > 1 && field != "resources" {
                let why = format!("if '*' is present, must not specify other {what}");
                let value = rule.get(field).cloned().unwrap_or_default();
                causes.push(invalid(field_at, &value, &why));
            }
        }
        for (at, operation) in list(rule, "operations") {
            let operation = operation.as_str().unwrap_or_default();
            if !matches!(operation, "*" | "CREATE" | "UPDATE" | "DELETE" | "CONNECT") {
                let known = "\"*\", \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\"";
                let why = format!("Unsupported value: {operation:?}: supported values: {known}");
                causes.push(cause(
                    NOT_SUPPORTED,
                    format!("{here}.operations[{at}]"),
                    why,
                ));
            }
        }
    }
}

pub(super) fn conditions(of: &Value, scope: &Scope, here: &str, causes: &mut Vec<Cause>) {
    for (at, condition) in list(of, "matchConditions") {
        let here = match here {
            "" => format!("matchConditions[{at}]"),
            here => format!("{here}.matchConditions[{at}]"),
        };
        expression(condition, "expression", scope, Wanted::Bool, &here, causes);
    }
}

/// Checks the expression in a field, if it is there.
pub(super) fn expression(
    of: &Value,
    field: &str,
    scope: &Scope,
    wanted: Wanted,
    here: &str,
    causes: &mut Vec<Cause>,
) {
    let source = text(of, field);
    if source.is_empty() {
        return;
    }
    if let Err(error) = scope.compile(source, wanted) {
        causes.push(invalid(format!("{here}.{field}"), &json!(source), &error));
    }
}
