//! MutatingAdmissionPolicies, evaluated for a request.
//!
//! Owns which binding decides, what the mutations make of an object, and the words of refusals.
//! Follows k8s.io/apiserver `pkg/admission/plugin/policy/mutating`. Must not know webhooks.

use serde_json::{Value, json};

use super::asker::Roles;
use super::between::{Between, Calls, value};
use super::conditions;
use super::params;
use super::policy::{self, Binding, Form, Mutation, Policy};
use super::registered::Registered;
use super::review::{Operation, Review};
use super::rules::{Criteria, Found};
use super::sight::Sight;
use crate::conversion;
use crate::meta;
use crate::object::Object;
use crate::operations::{Stopped, operate};
use crate::refuse;
use crate::state::State;
use crate::status::ApiError;

/// What the expression of one mutation may cost.
const BUDGET: u64 = 10_000_000;

/// A policy that is for a request by one binding, with one of its parameters.
struct Invocation<'c> {
    policy: &'c Policy,
    binding: &'c Binding,
    found: Found,
    param: Option<Object>,
}

/// Why a policy did not do what it should.
struct Failure {
    message: String,
    reason: &'static str,
}

/// Why a mutation makes nothing.
enum Trouble {
    /// The policy's failure policy says what follows.
    Failed(String),
    /// The request is refused in any case.
    Refused(ApiError),
}

/// Returns the policies that may change the object of a request. A deletion has none to change.
pub(super) fn policies<'r>(registered: &'r Registered, review: &Review) -> &'r [Policy] {
    match review.operation != Operation::Delete && policy::are_for(review) {
        true => registered.mutating_policies.as_slice(),
        false => &[],
    }
}

/// Evaluates the policies of a round, and returns whether they changed the object. In the first
/// round, those that want it are taken down for the second: also if nothing changed, as in a real
/// server.
pub(super) async fn pass(
    between: &mut Between<'_>,
    state: &State,
    calls: &mut Calls,
    second: bool,
) -> Result<bool, ApiError> {
    if second && calls.is_done() {
        return Ok(false);
    }
    let case = between.case;
    between.turn_to(state, &case.target).await?;
    let before = between.review.object.clone();
    let mut failures = Vec::new();
    let mut has_run = false;
    for one in invocations(between, state, &mut failures).await {
        let wanted = one.found.target.as_ref().unwrap_or(&case.target);
        between.turn_to(state, wanted).await?;
        match one.holds(between, state) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(why) => {
                one.fail(why, "Invalid", &mut failures);
                continue;
            }
        }
        let id = one.id();
        if !calls.has(&id, second) {
            continue;
        }
        has_run |= one.change(between, state, &mut failures)?;
        if one.policy.again {
            calls.note(id);
        }
    }
    if let Some(refusal) = refusal(between, &failures) {
        return Err(refusal);
    }
    if has_run {
        calls.repeat();
    }
    between.turn_to(state, &case.target).await?;
    Ok(has_run && before != between.review.object)
}

/// Returns what the policies are evaluated with, in their order.
async fn invocations<'c>(
    between: &Between<'c>,
    state: &State,
    failures: &mut Vec<Failure>,
) -> Vec<Invocation<'c>> {
    let case = between.case;
    let review = &between.review;
    let namespace = case.namespace.as_deref();
    let find = |criteria: &Criteria| criteria.find(review, &case.target, &case.registry, namespace);
    let mut all = Vec::new();
    for policy in policies(&case.registered, review) {
        let Some(found) = find(&policy.criteria) else {
            continue;
        };
        if let Some(why) = state.read(|inner| params::fault(inner, policy)) {
            misconfigured(policy, &why, failures);
            continue;
        }
        for binding in &policy.bindings {
            if find(&binding.criteria).is_none() {
                continue;
            }
            let with = |param| Invocation {
                policy,
                binding,
                found: found.clone(),
                param,
            };
            match parameters(state, policy, binding, &review.namespace).await {
                Ok(params) => all.extend(params.into_iter().map(with)),
                Err(why) => {
                    let why = format!("failed to configure binding: {why}");
                    with(None).fail(why, "Forbidden", failures);
                }
            }
        }
    }
    all
}

/// Notes that a policy cannot be used by any binding.
fn misconfigured(policy: &Policy, why: &str, failures: &mut Vec<Failure>) {
    if policy.fail_open {
        return;
    }
    let name = &policy.name;
    failures.push(Failure {
        message: format!("policy {name:?} denied request: failed to configure policy: {why}"),
        reason: "Forbidden",
    });
}

/// Returns each object that a policy is evaluated with; `None` in it: without parameters.
async fn parameters(
    state: &State,
    policy: &Policy,
    binding: &Binding,
    namespace: &str,
) -> Result<Vec<Option<Object>>, String> {
    let found = state.read(|inner| params::find(inner, policy, binding, namespace))?;
    let Some((target, stored)) = found else {
        return Ok(vec![None]);
    };
    let shown = conversion::shown(state, &target, stored).await;
    let shown = shown.map_err(|error| error.message)?;
    Ok(shown.into_iter().map(Some).collect())
}

impl Invocation<'_> {
    /// Identifies it among all of a request.
    fn id(&self) -> String {
        let of = |field| self.param.as_ref().map_or("", |p| meta::text(p, field));
        let (namespace, name) = (of("namespace"), of("name"));
        let (policy, binding) = (&self.policy.name, &self.binding.name);
        format!("{policy}/{binding}/{namespace}/{name}")
    }

    fn look<'s>(&self, between: &Between<'s>, state: &'s State) -> Sight<'s> {
        let review = &between.review;
        let objects = (value(&review.object), value(&review.old));
        let roles = Roles::Free(state);
        Sight::of(roles, between.case, (review, &self.found), objects)
    }

    /// Returns whether the conditions hold. An error says which have no result.
    fn holds(&self, between: &Between<'_>, state: &State) -> Result<bool, String> {
        let sight = self.look(between, state);
        let seen = sight.of_conditions(self.policy, self.param.as_deref());
        conditions::hold(&self.policy.conditions, &self.policy.scope, &seen)
    }

    /// Notes a failure, unless the policy lets requests pass then.
    fn fail(&self, why: String, reason: &'static str, failures: &mut Vec<Failure>) {
        if self.policy.fail_open {
            return;
        }
        let (policy, binding) = (&self.policy.name, &self.binding.name);
        let message = format!("policy '{policy}' with binding '{binding}' denied request: {why}");
        failures.push(Failure { message, reason });
    }

    /// Carries out the mutations. Returns whether any had a result.
    fn change(
        &self,
        between: &mut Between<'_>,
        state: &State,
        failures: &mut Vec<Failure>,
    ) -> Result<bool, ApiError> {
        let mut has_run = false;
        for mutation in &self.policy.mutations {
            let Some(object) = between.review.object.clone() else {
                break;
            };
            match self.made(mutation, between, state, &object) {
                Ok(new) => {
                    has_run = true;
                    if let Some(new) = new {
                        between.replace(new);
                    }
                }
                Err(Trouble::Failed(why)) => self.fail(why, "Invalid", failures),
                Err(Trouble::Refused(error)) => return Err(error),
            }
        }
        Ok(has_run)
    }

    /// Returns what a mutation makes of an object; `None`: it stays as it is.
    fn made(
        &self,
        mutation: &Mutation,
        between: &Between<'_>,
        state: &State,
        object: &Value,
    ) -> Result<Option<Value>, Trouble> {
        if let Some(broken) = &self.policy.broken {
            return Err(Trouble::Failed(broken.clone()));
        }
        let sight = self.look(between, state);
        let values = sight.values(self.policy, self.param.as_deref());
        let expression = &mutation.expression;
        let made = expression.make(&self.policy.scope, &values, BUDGET);
        let made = made.map_err(Trouble::Failed)?;
        match mutation.form {
            Form::Object => merged(between, object, made).map(Some),
            Form::Operations => patched(between, object, made),
        }
    }
}

/// Returns an object with an apply configuration merged in by the schema.
fn merged(between: &Between<'_>, object: &Value, mut made: Value) -> Result<Value, Trouble> {
    for field in ["apiVersion", "kind"] {
        if let Some(of) = object.get(field) {
            made[field] = of.clone();
        }
    }
    let schema = between.target.schema().filter(|_| between.is_whole());
    let merged = vmhost_merge::overlay(schema, object, &made);
    merged.map_err(|why| Trouble::Failed(format!("error applying patch: {why}")))
}

/// Returns an object after the operations of a JSON patch; `None` if a test of it does not hold.
fn patched(
    between: &Between<'_>,
    object: &Value,
    mut made: Value,
) -> Result<Option<Value>, Trouble> {
    let failed = |why: &str| Trouble::Failed(format!("JSON Patch: {why}"));
    for operation in made.as_array_mut().into_iter().flatten() {
        let needs_value = matches!(operation["op"].as_str(), Some("add" | "replace" | "test"));
        if needs_value && operation.get("value").is_none() {
            operation["value"] = Value::Null;
        }
    }
    let patch: json_patch::Patch =
        serde_json::from_value(made).map_err(|error| failed(&error.to_string()))?;
    let mut new = object.clone();
    match operate(&mut new, &patch) {
        Ok(()) if new.is_object() => {}
        Ok(()) => return Err(failed("it leaves no object")),
        Err(Stopped::Test(_)) => return Ok(None),
        Err(Stopped::Unfit(why)) => return Err(failed(&why)),
    }
    let schema = between.target.schema();
    // What is unknown of a custom kind is dropped.
    let is_strict = between.is_whole() && !between.target.kind.custom;
    if let Some(schema) = schema.filter(|_| is_strict) {
        let unknown = schema.prune(&mut new.clone());
        let texts = unknown
            .iter()
            .map(|field| format!("unknown field {field:?}"));
        let texts: Vec<String> = texts.collect();
        if !texts.is_empty() {
            let why = format!("strict decoding error: {}", texts.join(", "));
            return Err(Trouble::Refused(ApiError::undecided(why)));
        }
    }
    Ok(Some(new))
}

/// Returns the refusal of a request; `None` if nothing failed.
fn refusal(between: &Between<'_>, failures: &[Failure]) -> Option<ApiError> {
    let first = failures.first()?;
    let name = between.review.shown_name();
    let mut error = refuse::forbidden(&between.case.target, name, "");
    error.message.clone_from(&first.message);
    error.reason = first.reason.into();
    let causes = failures.iter();
    let causes = causes.map(|failure| json!({ "message": failure.message }));
    Some(error.with_causes(causes.collect()))
}
