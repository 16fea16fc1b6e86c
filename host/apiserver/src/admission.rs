//! Admission: webhooks and policies that decide over a request.
//!
//! Owns which requests webhooks and policies are asked about, and in which order: mutating
//! policies, mutating webhooks, validating policies, validating webhooks. Validating policies are
//! evaluated here, under the lock; what the others make of a request is a question of it, because
//! mutating policies and webhooks take turns. Must not know how an object is stored.
//!
//! ```text
//! review (what is asked) <- rules, conditions (for whom) <- webhook, policy <- registered (all)
//!     <- asker (what roles allow) <- sight, dispatch
//!     <- exchange (one call) <--------- dispatch (all that change, and all calls)
//!     <- between (two of them), params, sight <- mutation <- dispatch   params, sight <- enforce
//! ```

mod asker;
mod between;
pub(crate) mod conditions;
pub(crate) mod dispatch;
mod enforce;
mod exchange;
mod mutation;
mod params;
mod policy;
pub(crate) mod registered;
pub(crate) mod review;
mod rules;
mod sight;
mod webhook;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::builtin::NAMESPACES;
use crate::call::Call;
use crate::kinds::{Kind, join_version};
use crate::object::{Key, Object};
use crate::questions::{Case, Question};
use crate::state::Inner;
use crate::status::ApiError;
use registered::Registered;
use review::{GROUP, Named, Operation, Review};
use rules::Criteria;

/// Follows a write: of a webhook or a policy.
pub(crate) fn after_write(inner: &mut Inner, kind: &Kind) {
    // A part of a cluster asks nobody: its writes are only tried.
    if kind.group == GROUP && !inner.partial {
        inner.registered = Registered::of(&inner.store);
    }
}

/// Returns what admission is asked about a request, without its objects. `name` is that of the
/// object, unless the server makes it.
pub(crate) fn review(call: &Call<'_>, operation: Operation, name: &str) -> Option<Review> {
    let target = call.target;
    let resource = rules::resource_of(target);
    let is_namespace = &*target.kind.storage == NAMESPACES;
    let author = call.options.author.as_deref();
    Some(Review {
        operation,
        resource,
        subresource: call.part.to_owned(),
        kind: rules::kind_of(target, call.part)?,
        name: name.to_owned(),
        namespace: match is_namespace {
            true => name.to_owned(),
            false => call.namespace.to_owned(),
        },
        user: author.map_or_else(|| json!({}), |author| author.user.info()),
        dry_run: call.options.dry_run,
        options: options(call, operation),
        object: None,
        old: None,
    })
}

/// Returns the options of a request as webhooks see them. A DELETE has its own.
fn options(call: &Call<'_>, operation: Operation) -> Value {
    let kind = match operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete | Operation::Connect => return Value::Null,
    };
    let mut options = json!({ "kind": kind, "apiVersion": "meta.k8s.io/v1" });
    if call.options.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    if let Some(manager) = &call.options.manager {
        options["fieldManager"] = json!(manager);
    }
    if let Some(validation) = call.options.validation_as_sent {
        options["fieldValidation"] = json!(validation);
    }
    options
}

/// Returns whether a mutating policy or webhook may be for a request.
pub(crate) fn may_mutate(inner: &Inner, call: &Call<'_>, review: &Review) -> bool {
    let namespace = namespace_of(inner, review);
    let registered = call.questions.registered(&inner.registered);
    let concerns = |criteria: &Criteria| {
        criteria.concern(review, call.target, &inner.registry, namespace.as_deref())
    };
    mutating(registered, review).any(concerns)
}

/// Returns the criteria of all that may change the object of a request.
fn mutating<'r>(
    registered: &'r Registered,
    review: &Review,
) -> impl Iterator<Item = &'r Criteria> + use<'r> {
    let policies = mutation::policies(registered, review).iter();
    let webhooks = webhook::called(&registered.mutating, review).iter();
    let policies = policies.map(|policy| &policy.criteria);
    policies.chain(webhooks.map(|webhook| &webhook.criteria))
}

/// Returns the object that mutating policies and webhooks make of that of a request; `None` if
/// there is none.
pub(crate) fn mutate(
    inner: &Inner,
    call: &Call<'_>,
    review: Review,
) -> Result<Option<Object>, ApiError> {
    let case = case(inner, call, review);
    let namespace = case.namespace.as_deref();
    let is_for = mutating(&case.registered, &case.review).any(|criteria| {
        let found = criteria.find(&case.review, call.target, &case.registry, namespace);
        found.is_some()
    });
    match is_for {
        true => call.questions.ask(Question::Mutate(case)),
        false => Ok(case.review.object.clone()),
    }
}

/// Returns whether a validating policy or webhook may be for a request.
pub(crate) fn may_refuse(inner: &Inner, call: &Call<'_>, review: &Review) -> bool {
    let namespace = namespace_of(inner, review);
    let registered = call.questions.registered(&inner.registered);
    let concerns = |criteria: &Criteria| {
        criteria.concern(review, call.target, &inner.registry, namespace.as_deref())
    };
    let webhooks = webhook::called(&registered.validating, review);
    let mut policies = registered.policies.iter();
    (policy::are_for(review) && policies.any(|policy| concerns(&policy.criteria)))
        || webhooks.iter().any(|webhook| concerns(&webhook.criteria))
}

/// Asks validating policies and webhooks.
pub(crate) fn validate(inner: &Inner, call: &Call<'_>, review: Review) -> Result<(), ApiError> {
    let case = case(inner, call, review);
    if policy::are_for(&case.review) {
        enforce::check(inner, call, &case)?;
    }
    let namespace = case.namespace.as_deref();
    let mut all = webhook::called(&case.registered.validating, &case.review).iter();
    let is_for = all.any(|webhook| {
        let found = webhook
            .criteria
            .find(&case.review, call.target, &case.registry, namespace);
        found.is_some()
    });
    if is_for {
        call.questions.ask(Question::Validate(case))?;
    }
    Ok(())
}

/// Asks everybody about a request whose object is not one of its kind: a deletion, a connection or
/// a part such as a binding. Returns the object, as mutating policies and webhooks leave it.
pub(crate) fn ask(
    inner: &Inner,
    call: &Call<'_>,
    operation: Operation,
    objects: (Option<Object>, Option<Object>),
    options: Option<Value>,
) -> Result<Option<Object>, ApiError> {
    let (object, old) = objects;
    if inner.registered.is_empty() {
        return Ok(object);
    }
    if object.as_ref().is_some_and(|object| !object.is_object()) {
        return Err(ApiError::bad_request(
            "the object provided is unrecognized: json: cannot unmarshal into an object",
        ));
    }
    let Some(review) = review(call, operation, call.name) else {
        return Ok(object);
    };
    let object = object.map(|object| typed(object, &review.kind));
    let mut review = Review {
        object,
        old,
        options: options.unwrap_or_else(|| review.options.clone()),
        ..review
    };
    if may_mutate(inner, call, &review) {
        review.object = mutate(inner, call, review.clone())?;
    }
    let object = review.object.clone();
    if may_refuse(inner, call, &review) {
        validate(inner, call, review)?;
    }
    Ok(object)
}

/// Returns an object that says its kind.
fn typed(mut object: Object, kind: &Named) -> Object {
    if object.get("kind").is_none() {
        let object = Arc::make_mut(&mut object);
        object["apiVersion"] = json!(join_version(&kind.group, &kind.version));
        object["kind"] = json!(kind.name);
    }
    object
}

fn case(inner: &Inner, call: &Call<'_>, review: Review) -> Case {
    Case {
        namespace: namespace_of(inner, &review),
        review: Arc::new(review),
        target: call.target.clone(),
        registered: call.questions.registered(&inner.registered).clone(),
        registry: inner.registry.clone(),
        author: call.options.author.clone(),
    }
}

fn namespace_of(inner: &Inner, review: &Review) -> Option<Object> {
    let key = Key::new("", &review.namespace);
    let found = inner.store.get(NAMESPACES, &key);
    found.filter(|_| !review.namespace.is_empty())
}
