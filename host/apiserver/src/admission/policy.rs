//! A ValidatingAdmissionPolicy or MutatingAdmissionPolicy and its bindings, as they describe
//! themselves.
//!
//! Owns their form, the check of their expressions, and over which resources they never decide.
//! Must not know when they are evaluated.

use serde_json::Value;
use vmhost_rules::{Scope, Wanted};

use super::conditions::{self, Checked};
use super::review::{GROUP, Review};
use super::rules::Criteria;

/// Reviews of the server itself, over which policies do not decide.
const EXEMPT: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// The resources of policies and their bindings, over which policies do not decide either: a policy
/// could keep itself from being removed.
const POLICIES: [&str; 4] = [
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
];

/// The variables of a policy's expressions. The last one is there for policies with parameters.
const VARIABLES: [&str; 5] = [
    "object",
    "oldObject",
    "request",
    "namespaceObject",
    "params",
];

/// A policy.
#[derive(Debug)]
pub(crate) struct Policy {
    pub name: String,
    pub criteria: Criteria,
    /// The apiVersion and kind of its parameters.
    pub parameters: Option<(String, String)>,
    pub fail_open: bool,
    pub scope: Scope,
    /// What is wrong with its variables.
    pub broken: Option<String>,
    pub conditions: Vec<Checked>,
    pub validations: Vec<Validation>,
    /// The expressions of audit annotations. Nobody reads an annotation here, but an expression
    /// that fails refuses a request.
    pub annotations: Vec<Checked>,
    /// What a MutatingAdmissionPolicy changes, in its order.
    pub mutations: Vec<Mutation>,
    /// Whether a MutatingAdmissionPolicy is evaluated again after a later change.
    pub again: bool,
    pub bindings: Vec<Binding>,
}

/// A change of the object.
#[derive(Debug)]
pub(crate) struct Mutation {
    pub expression: Checked,
    pub form: Form,
}

/// What the expression of a mutation makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// An object that is merged by the schema.
    Object,
    /// The operations of a JSON patch.
    Operations,
}

/// A condition that requests must fulfil.
#[derive(Debug)]
pub(crate) struct Validation {
    pub expression: Checked,
    pub message: String,
    pub message_expression: Option<Checked>,
    pub reason: String,
}

/// Where a policy applies, with which parameters, and what follows.
#[derive(Debug)]
pub(crate) struct Binding {
    pub name: String,
    pub policy: String,
    pub criteria: Criteria,
    pub parameters: Option<Parameters>,
    pub denies: bool,
    pub warns: bool,
}

/// Which objects are the parameters.
#[derive(Debug)]
pub(crate) struct Parameters {
    pub name: String,
    pub namespace: String,
    pub selector: Value,
    pub missing_denies: bool,
}

impl Policy {
    /// Reads a policy, without its bindings.
    pub fn read(policy: &Value) -> Policy {
        let spec = &policy["spec"];
        let list = |field: &str| spec[field].as_array().into_iter().flatten();
        let kind = spec.get("paramKind").filter(|kind| kind.is_object());
        let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
        let mut names = VARIABLES.to_vec();
        if kind.is_none() {
            names.pop();
        }
        let mut scope = Scope::new(&names).with_authorizer();
        let mut broken = None;
        for variable in list("variables") {
            let (name, source) = (text(variable, "name"), text(variable, "expression"));
            if let Err(error) = scope.define(&name, &source) {
                broken.get_or_insert(error);
            }
        }
        let checked = |of: &Value, field: &str, wanted| {
            let source = of[field].as_str().filter(|source| !source.is_empty())?;
            Some(Checked::of(&scope, source, wanted))
        };
        let validations = list("validations").filter_map(|one| {
            Some(Validation {
                expression: checked(one, "expression", Wanted::Bool)?,
                message: text(one, "message").trim().to_owned(),
                message_expression: checked(one, "messageExpression", Wanted::Text),
                reason: text(one, "reason"),
            })
        });
        let validations = validations.collect();
        let annotations = list("auditAnnotations")
            .filter_map(|one| checked(one, "valueExpression", Wanted::TextOrNull))
            .collect();
        let mutations = list("mutations").filter_map(|one| {
            let (field, wanted, form) = match one["patchType"].as_str()? {
                "ApplyConfiguration" => ("applyConfiguration", Wanted::Object, Form::Object),
                "JSONPatch" => ("jsonPatch", Wanted::Patch, Form::Operations),
                _ => return None,
            };
            let expression = checked(&one[field], "expression", wanted)?;
            Some(Mutation { expression, form })
        });
        let mutations = mutations.collect();
        Policy {
            name: name_of(policy),
            criteria: Criteria::of_policy(&spec["matchConstraints"]),
            parameters: kind.map(|kind| (text(kind, "apiVersion"), text(kind, "kind"))),
            fail_open: spec["failurePolicy"] == "Ignore",
            conditions: conditions::read(&spec["matchConditions"], &scope),
            validations,
            annotations,
            mutations,
            again: spec["reinvocationPolicy"] == "IfNeeded",
            scope,
            broken,
            bindings: Vec::new(),
        }
    }
}

impl Binding {
    pub fn read(binding: &Value) -> Binding {
        let spec = &binding["spec"];
        let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
        let actions = spec["validationActions"].as_array();
        let does = |action: &str| actions.is_some_and(|all| all.iter().any(|one| one == action));
        let reference = spec.get("paramRef").filter(|of| of.is_object());
        Binding {
            name: name_of(binding),
            policy: text(spec, "policyName"),
            criteria: Criteria::of_policy(&spec["matchResources"]),
            parameters: reference.map(|of| Parameters {
                name: text(of, "name"),
                namespace: text(of, "namespace"),
                selector: of["selector"].clone(),
                missing_denies: of["parameterNotFoundAction"] == "Deny",
            }),
            denies: does("Deny"),
            warns: does("Warn"),
        }
    }
}

/// Returns whether policies may decide over a request: also over one for a webhook.
pub(super) fn are_for(review: &Review) -> bool {
    let resource = &review.resource;
    let is_policy = resource.group == GROUP && POLICIES.contains(&resource.name.as_str());
    !(is_policy || EXEMPT.contains(&resource.group.as_str()))
}

fn name_of(object: &Value) -> String {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default().to_owned()
}
