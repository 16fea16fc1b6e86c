//! The rules of admission policies and of their bindings.
//!
//! Follows k8s.io/kubernetes `pkg/apis/admissionregistration/validation`. Must not know when a
//! policy is evaluated.

use serde_json::{Value, json};
use vmhost_rules::{Scope, Wanted};

use super::webhooks::{conditions, expression, invalid, list, rules, text};
use crate::status::{Cause, FORBIDDEN, NOT_SUPPORTED, REQUIRED, cause};

/// Returns what is wrong with a ValidatingAdmissionPolicy.
pub(super) fn validating(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let Some(spec) = spec_of(object) else {
        return causes;
    };
    let scope = shared(spec, &mut causes);
    for (at, validation) in list(spec, "validations") {
        let here = format!("spec.validations[{at}]");
        required(
            validation,
            &here,
            "Required value: expression is not specified",
            &mut causes,
        );
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

/// Returns what is wrong with a MutatingAdmissionPolicy.
pub(super) fn mutating(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let Some(spec) = spec_of(object) else {
        return causes;
    };
    if let Some(constraints) = spec.get("matchConstraints") {
        let here = "spec.matchConstraints";
        operations(constraints, here, &mut causes);
    }
    let scope = shared(spec, &mut causes);
    if list(spec, "mutations").next().is_none() {
        let why = "Required value: mutations must contain at least one item";
        causes.push(cause(REQUIRED, "spec.mutations", why));
    }
    for (at, one) in list(spec, "mutations") {
        mutation(one, &scope, &format!("spec.mutations[{at}]"), &mut causes);
    }
    if text(spec, "reinvocationPolicy").is_empty() {
        causes.push(cause(REQUIRED, "spec.reinvocationPolicy", "Required value"));
    }
    causes
}

/// Checks one mutation. The schema has the types of patches.
fn mutation(of: &Value, scope: &Scope, here: &str, causes: &mut Vec<Cause>) {
    let kind = text(of, "patchType");
    let (field, other, wanted) = match kind {
        "JSONPatch" => ("jsonPatch", "applyConfiguration", Wanted::Patch),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Wanted::Object),
        _ => return,
    };
    let given = |field: &str| of.get(field).filter(|value| value.is_object());
    match given(field) {
        Some(patch) => {
            let here = format!("{here}.{field}");
            required(patch, &here, "Required value", causes);
            let source = text(patch, "expression").trim();
            let trimmed = json!({ "expression": source });
            expression(&trimmed, "expression", scope, wanted, &here, causes);
        }
        None => {
            let why = format!("Required value: must be specified when patchType is {kind}");
            causes.push(cause(REQUIRED, format!("{here}.{field}"), why));
        }
    }
    if given(other).is_some() {
        let value = json!(format!("{{{other}}}"));
        let why = format!("must not be specified when patchType is {kind}");
        causes.push(invalid(format!("{here}.{other}"), &value, &why));
    }
}

/// Checks that rules name no deletions: there is no object to mutate.
fn operations(of: &Value, here: &str, causes: &mut Vec<Cause>) {
    for (_, rule) in list(of, "resourceRules") {
        for (_, operation) in list(rule, "operations") {
            if operation == "DELETE" {
                let known = "\"*\", \"CONNECT\", \"CREATE\", \"UPDATE\"";
                let why = format!("Unsupported value: {operation}: supported values: {known}");
                let field = format!("{here}.resourceRules.operations");
                causes.push(cause(NOT_SUPPORTED, field, why));
            }
        }
    }
}

fn spec_of(object: &Value) -> Option<&Value> {
    object.get("spec").filter(|spec| spec.is_object())
}

/// Says that a field `expression` is missing.
fn required(of: &Value, here: &str, why: &str, causes: &mut Vec<Cause>) {
    if text(of, "expression").trim().is_empty() {
        causes.push(cause(REQUIRED, format!("{here}.expression"), why));
    }
}

/// Checks what all policies have, and returns the scope of their expressions.
fn shared(spec: &Value, causes: &mut Vec<Cause>) -> Scope {
    let constraints = spec.get("matchConstraints").filter(|c| !c.is_null());
    match constraints {
        Some(constraints) => {
            let here = "spec.matchConstraints";
            if list(constraints, "resourceRules").next().is_none() {
                let field = format!("{here}.resourceRules");
                causes.push(cause(REQUIRED, field, "Required value"));
            }
            rules(constraints, "resourceRules", here, causes);
            rules(constraints, "excludeResourceRules", here, causes);
        }
        None => causes.push(cause(REQUIRED, "spec.matchConstraints", "Required value")),
    }
    let mut names = vec!["object", "oldObject", "request", "namespaceObject"];
    if spec.get("paramKind").is_some_and(Value::is_object) {
        names.push("params");
    }
    let mut scope = Scope::new(&names).with_authorizer();
    for (at, variable) in list(spec, "variables") {
        let source = text(variable, "expression");
        if let Err(error) = scope.define(text(variable, "name"), source) {
            let field = format!("spec.variables[{at}].expression");
            causes.push(invalid(field, &json!(source), &error));
        }
    }
    conditions(spec, &scope, "spec", causes);
    scope
}

/// Returns what is wrong with the binding of a ValidatingAdmissionPolicy.
pub(super) fn validating_binding(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let Some(spec) = spec_of(object) else {
        return causes;
    };
    bound(spec, &mut causes);
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

/// Returns what is wrong with the binding of a MutatingAdmissionPolicy.
pub(super) fn mutating_binding(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let Some(spec) = spec_of(object) else {
        return causes;
    };
    bound(spec, &mut causes);
    if let Some(resources) = spec.get("matchResources") {
        operations(resources, "spec.matchResources", &mut causes);
    }
    causes
}

/// Checks what all bindings have.
fn bound(spec: &Value, causes: &mut Vec<Cause>) {
    if text(spec, "policyName").is_empty() {
        causes.push(cause(REQUIRED, "spec.policyName", "Required value"));
    }
    parameters(spec, causes);
    if let Some(resources) = spec.get("matchResources") {
        let here = "spec.matchResources";
        rules(resources, "resourceRules", here, causes);
        rules(resources, "excludeResourceRules", here, causes);
    }
}

/// Checks which objects are the parameters.
fn parameters(spec: &Value, causes: &mut Vec<Cause>) {
    let Some(of) = spec.get("paramRef").filter(|of| of.is_object()) else {
        return;
    };
    let is_named = !text(of, "name").is_empty();
    match (is_named, of.get("selector").is_some_and(Value::is_object)) {
        (true, true) => {
            for field in ["name", "selector"] {
                let why = "Forbidden: name and selector are mutually exclusive";
                causes.push(cause(FORBIDDEN, format!("spec.paramRef.{field}"), why));
            }
        }
        (false, false) => {
            let why = "Required value: one of name or selector must be specified";
            causes.push(cause(REQUIRED, "spec.paramRef", why));
        }
        _ => {}
    }
    if text(of, "parameterNotFoundAction").is_empty() {
        let field = "spec.paramRef.parameterNotFoundAction";
        causes.push(cause(REQUIRED, field, "Required value"));
    }
}
