//! The rules of webhook configurations and of admission policies.
//!
//! Follows k8s.io/kubernetes `pkg/apis/admissionregistration/validation`. Must not know when a
//! webhook is called.

use serde_json::{Value, json};
use vmhost_rules::{Scope, Wanted};

use crate::meta::check::is_subdomain;
use crate::reach;
use crate::status::{Cause, INVALID, NOT_SUPPORTED, REQUIRED, cause};

fn invalid(field: String, value: &Value, why: &str) -> Cause {
    cause(INVALID, field, format!("Invalid value: {value}: {why}"))
}

fn list<'v>(of: &'v Value, field: &str) -> impl Iterator<Item = (usize, &'v Value)> + use<'v> {
    let list = of.get(field).and_then(Value::as_array);
    list.into_iter().flatten().enumerate()
}

fn text<'v>(of: &'v Value, field: &str) -> &'v str {
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
        let scope = Scope::new(&["object", "oldObject", "request"]);
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

fn rules(of: &Value, name: &str, here: &str, causes: &mut Vec<Cause>) {
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

fn conditions(of: &Value, scope: &Scope, here: &str, causes: &mut Vec<Cause>) {
    for (at, condition) in list(of, "matchConditions") {
        let here = match here {
            "" => format!("matchConditions[{at}]"),
            here => format!("{here}.matchConditions[{at}]"),
        };
        expression(condition, "expression", scope, Wanted::Bool, &here, causes);
    }
}

/// Checks the expression in a field, if it is there.
fn expression(
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

/// Returns what is wrong with a policy.
pub(super) fn policy(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let Some(spec) = object.get("spec").filter(|spec| spec.is_object()) else {
        return causes;
    };
    let constraints = spec.get("matchConstraints").filter(|c| !c.is_null());
    match constraints {
        Some(constraints) => {
            let here = "spec.matchConstraints";
            if list(constraints, "resourceRules").next().is_none() {
                let field = format!("{here}.resourceRules");
                causes.push(cause(REQUIRED, field, "Required value"));
            }
            rules(constraints, "resourceRules", here, &mut causes);
            rules(constraints, "excludeResourceRules", here, &mut causes);
        }
        None => causes.push(cause(REQUIRED, "spec.matchConstraints", "Required value")),
    }
    let mut names = vec!["object", "oldObject", "request", "namespaceObject"];
    if spec.get("paramKind").is_some_and(Value::is_object) {
        names.push("params");
    }
    let mut scope = Scope::new(&names);
    for (at, variable) in list(spec, "variables") {
        let source = text(variable, "expression");
        if let Err(error) = scope.define(text(variable, "name"), source) {
            let field = format!("spec.variables[{at}].expression");
            causes.push(invalid(field, &json!(source), &error));
        }
    }
    conditions(spec, &scope, "spec", &mut causes);
    for (at, validation) in list(spec, "validations") {
        let here = format!("spec.validations[{at}]");
        if text(validation, "expression").trim().is_empty() {
            let field = format!("{here}.expression");
            causes.push(cause(
                REQUIRED,
                field,
                "Required value: expression is not specified",
            ));
        }
        expression(
            validation,
            "expression",
            &scope,
            Wanted::Bool,
            &here,
            &mut causes,
        );
        let field = "messageExpression";
        expression(validation, field, &scope, Wanted::Text, &here, &mut causes);
    }
    for (at, annotation) in list(spec, "auditAnnotations") {
        let (here, field) = (format!("spec.auditAnnotations[{at}]"), "valueExpression");
        expression(
            annotation,
            field,
            &scope,
            Wanted::TextOrNull,
            &here,
            &mut causes,
        );
    }
    causes
}

/// Returns what is wrong with a binding.
pub(super) fn binding(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let Some(spec) = object.get("spec").filter(|spec| spec.is_object()) else {
        return causes;
    };
    if text(spec, "policyName").is_empty() {
        causes.push(cause(REQUIRED, "spec.policyName", "Required value"));
    }
    let actions: Vec<&str> = list(spec, "validationActions")
        .filter_map(|(_, action)| action.as_str())
        .collect();
    if actions.is_empty() {
        causes.push(cause(REQUIRED, "spec.validationActions", "Required value"));
    }
    if actions.contains(&"Deny") && actions.contains(&"Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        causes.push(invalid(
            "spec.validationActions".to_owned(),
            &json!(actions),
            why,
        ));
    }
    causes
}
