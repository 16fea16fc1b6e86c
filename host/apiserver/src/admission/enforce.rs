//! ValidatingAdmissionPolicies, evaluated for a request.
//!
//! Owns which binding decides, the budget of its expressions, and the words of refusals. Follows
//! k8s.io/apiserver `pkg/admission/plugin/policy/validating`. Must not know where parameters come
//! from.

use std::sync::Arc;

use serde_json::{Value, json};
use vmhost_rules::{Given, Seen};

use super::asker::Roles;
use super::conditions::{self, SPENT};
use super::params::{self, Missing};
use super::policy::{Binding, Policy, Validation};
use super::rules::{Criteria, Found};
use super::sight::Sight;
use crate::call::Call;
use crate::conversion;
use crate::object::Object;
use crate::questions::Case;
use crate::refuse;
use crate::state::Inner;
use crate::status::ApiError;

/// What the expressions of one binding may cost.
const BUDGET: u64 = 10_000_000;

/// The longest message that an expression may make, in bytes.
const LONGEST_MESSAGE: usize = 5 << 10;

/// What a policy has against a request.
struct Denial {
    message: String,
    reason: String,
    /// Whether the request is refused whatever the binding says.
    always: bool,
}

impl Denial {
    fn error(message: impl Into<String>) -> Denial {
        Denial {
            message: message.into(),
            reason: String::new(),
            always: false,
        }
    }
}

/// Evaluates all policies. The first denial is the refusal; warnings are noted.
pub(super) fn check(inner: &Inner, call: &Call<'_>, case: &Case) -> Result<(), ApiError> {
    let namespace = case.namespace.as_deref();
    let mut first: Option<(&Policy, Option<&Binding>, Denial)> = None;
    for policy in &case.registered.policies {
        let find = |criteria: &Criteria| {
            criteria.find(&case.review, &case.target, &case.registry, namespace)
        };
        let Some(found) = find(&policy.criteria) else {
            continue;
        };
        if let Some(why) = params::fault(inner, policy) {
            if !policy.fail_open {
                let denial = Denial::error(format!("failed to configure policy: {why}"));
                first.get_or_insert((policy, None, denial));
            }
            continue;
        }
        let mut sight = None;
        for binding in &policy.bindings {
            if find(&binding.criteria).is_none() {
                continue;
            }
            let of = &case.review.namespace;
            let params = match params::collect(inner, call, policy, binding, of) {
                Ok(params) => params,
                Err(Missing::Undecided(error)) => return Err(error),
                Err(Missing::Configuration(why)) => {
                    if !policy.fail_open {
                        first.get_or_insert((policy, Some(binding), misconfigured(&why)));
                    }
                    continue;
                }
            };
            // Without parameters, nothing is evaluated.
            if params.is_empty() {
                continue;
            }
            let seen = match sight.take() {
                Some(seen) => Ok(seen),
                None => look(inner, call, case, &found),
            };
            let seen = match seen {
                Ok(seen) => seen,
                Err(error) if call.questions.has_open() => return Err(error),
                Err(error) => {
                    if !policy.fail_open {
                        let why = format!("failed to convert object version: {}", error.message);
                        first.get_or_insert((policy, Some(binding), misconfigured(&why)));
                    }
                    continue;
                }
            };
            for param in params {
                for denial in denials(policy, &seen, param.as_deref()) {
                    if binding.warns && !denial.always {
                        let (policy, binding) = (&policy.name, &binding.name);
                        call.questions.warn(format!(
                            "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {}",
                            denial.message
                        ));
                    }
                    if binding.denies || denial.always {
                        first.get_or_insert((policy, Some(binding), denial));
                    }
                }
            }
            sight = Some(seen);
        }
    }
    match first {
        Some((policy, binding, denial)) => Err(refusal(case, policy, binding, &denial)),
        None => Ok(()),
    }
}

fn misconfigured(why: &str) -> Denial {
    Denial::error(format!("failed to configure binding: {why}"))
}

/// Returns what expressions see of a request, in the version that a rule matched.
fn look<'c>(
    inner: &'c Inner,
    call: &Call<'_>,
    case: &'c Case,
    found: &Found,
) -> Result<Sight<'c>, ApiError> {
    let review = &*case.review;
    let is_whole = review.kind.name == case.target.kind.kind;
    let turn = |object: &Option<Object>| match (object, &found.target) {
        (None, _) => Ok(Arc::new(Value::Null)),
        (Some(object), Some(to)) if is_whole && to.kind.conversion.is_some() => {
            call.questions.convert(to, object, false)
        }
        (Some(object), Some(to)) if is_whole => Ok(conversion::plainly(&case.target, to, object)),
        (Some(object), _) => Ok(object.clone()),
    };
    let objects = (turn(&review.object)?, turn(&review.old)?);
    let roles = Roles::Locked(inner);
    Ok(Sight::of(roles, case, (review, found), objects))
}

/// Returns what a policy has against a request, with one of its parameters.
fn denials(policy: &Policy, sight: &Sight<'_>, param: Option<&Value>) -> Vec<Denial> {
    let failed = |message: String| match policy.fail_open {
        true => Vec::new(),
        false => vec![Denial::error(message)],
    };
    if let Some(broken) = &policy.broken {
        return failed(format!("compilation error: {broken}"));
    }
    let seen = sight.of_conditions(policy, param);
    match conditions::hold(&policy.conditions, &policy.scope, &seen) {
        Ok(true) => {}
        Ok(false) => return Vec::new(),
        Err(why) => return failed(why),
    }
    let values = sight.values(policy, param);
    let mut left = BUDGET;
    let mut results = Vec::new();
    for validation in &policy.validations {
        match validation
            .expression
            .evaluate(&policy.scope, &values, &mut left)
        {
            None => return failed(SPENT.to_owned()),
            Some(result) => results.push((validation, result)),
        }
    }
    let mut found = Vec::new();
    for (validation, result) in results {
        match result {
            Ok(Given::Bool(true)) => {}
            Ok(_) => found.push(Denial {
                message: message(policy, validation, &values, &mut left),
                reason: validation.reason.clone(),
                always: false,
            }),
            Err(why) => found.extend(failed(why)),
        }
    }
    let mut left = BUDGET;
    for annotation in &policy.annotations {
        match annotation.evaluate(&policy.scope, &values, &mut left) {
            None => return failed(SPENT.to_owned()),
            Some(Err(why)) => found.extend(failed(why).into_iter().map(|denial| Denial {
                always: true,
                ..denial
            })),
            Some(Ok(_)) => {}
        }
    }
    found
}

/// Returns the message of a broken validation.
fn message(policy: &Policy, broken: &Validation, values: &Seen<'_>, left: &mut u64) -> String {
    let expression = broken.message_expression.as_ref();
    let made = expression.and_then(|made| made.evaluate(&policy.scope, values, left));
    if let Some(Ok(Given::Text(text))) = made {
        let text = text.trim();
        if !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n') {
            return text.to_owned();
        }
    }
    match broken.message.as_str() {
        "" => format!("failed expression: {}", broken.expression.source()),
        message => message.to_owned(),
    }
}

fn refusal(case: &Case, policy: &Policy, binding: Option<&Binding>, denial: &Denial) -> ApiError {
    let by = binding.map(|binding| format!(" with binding '{}'", binding.name));
    let (name, by, why) = (&policy.name, by.unwrap_or_default(), &denial.message);
    let message = format!("ValidatingAdmissionPolicy '{name}'{by} denied request: {why}");
    let mut error = refuse::forbidden(&case.target, case.review.shown_name(), &message);
    let reason = match denial.reason.as_str() {
        "" => "Invalid",
        reason => reason,
    };
    error.code = match reason {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    error.reason = reason.to_owned().into();
    error.with_causes(vec![json!({ "message": message })])
}
