//! The calls of webhooks for one request: mutating ones one after the other, validating ones at
//! the same time.
//!
//! Owns their order, the second round after a change, and what a failed call means. Follows
//! k8s.io/apiserver `pkg/admission/plugin/webhook/{mutating,validating}`. Must not know the form
//! of a review.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::Value;

use super::exchange::{self, Objects, Trouble, Verdict};
use super::review::Review;
use super::rules::Found;
use super::webhook::Webhook;
use crate::conversion;
use crate::kinds::Target;
use crate::object::Object;
use crate::operations::operate;
use crate::questions::{Answer, Case};
use crate::refuse;
use crate::state::State;
use crate::status::ApiError;

/// An object in some version, between two webhooks.
struct Between<'c> {
    case: &'c Case,
    /// The version in which the object is.
    target: Target,
    review: Review,
    warnings: Vec<String>,
}

/// Asks the mutating webhooks. The answer has the object that they made, in the version of the
/// request.
pub(crate) async fn mutate(state: &State, case: &Case) -> Answer {
    let mut between = Between {
        case,
        target: case.target.clone(),
        review: Review::clone(&case.review),
        warnings: Vec::new(),
    };
    let passed = between.pass_all(state).await;
    Answer {
        outcome: passed.map(|()| between.review.object),
        warnings: between.warnings,
    }
}

impl Between<'_> {
    /// Calls all webhooks in their order, and some of them again after a later one changed the
    /// object.
    async fn pass_all(&mut self, state: &State) -> Result<(), ApiError> {
        let case = self.case;
        let (mut called, mut again) = (BTreeSet::new(), BTreeSet::new());
        for second in [false, true] {
            let mut changed_any = false;
            for webhook in &case.registered.mutating {
                if second && !again.contains(webhook.id.as_str()) {
                    continue;
                }
                let Some(changed) = self.pass(state, webhook).await? else {
                    continue;
                };
                if changed {
                    changed_any = true;
                    again.append(&mut called);
                }
                if webhook.again {
                    called.insert(webhook.id.as_str());
                }
            }
            if !changed_any || again.is_empty() {
                break;
            }
        }
        self.turn_to(state, &case.target).await
    }

    /// Calls a webhook if it is for the request, and returns whether it changed the object.
    async fn pass(&mut self, state: &State, webhook: &Webhook) -> Result<Option<bool>, ApiError> {
        let case = self.case;
        let namespace = case.namespace.as_deref();
        let found = webhook
            .criteria
            .find(&self.review, &case.target, &case.registry, namespace);
        let Some(found) = found else {
            return Ok(None);
        };
        let wanted = found.target.clone().unwrap_or_else(|| case.target.clone());
        self.turn_to(state, &wanted).await?;
        let (new, old) = (value(&self.review.object), value(&self.review.old));
        if !holds(webhook, case, &self.review, &found, &new, &old)? {
            return Ok(None);
        }
        let objects = Objects {
            new: &new,
            old: &old,
        };
        let asked = (&self.review, &found);
        let called = exchange::call(state, webhook, true, asked, objects).await;
        let Some(verdict) = decided(webhook, called)? else {
            return Ok(Some(false));
        };
        self.warnings.extend(verdict.warnings);
        if let Some(refusal) = verdict.refusal {
            return Err(refusal);
        }
        let Some(patch) = verdict.patch else {
            return Ok(Some(false));
        };
        if self.review.object.is_none() {
            let name = &webhook.name;
            return Err(ApiError::undecided(format!(
                "admission webhook {name:?} attempted to modify the object, which is not supported for this operation"
            )));
        }
        let mut patched = Value::clone(&new);
        operate(&mut patched, &patch).map_err(ApiError::undecided)?;
        if !patched.is_object() {
            return Err(ApiError::undecided("the patch leaves no object"));
        }
        if self.is_whole() {
            self.target.complete(&mut patched);
            if let Some(schema) = self.target.schema() {
                schema.apply_defaults(&mut patched);
            }
        }
        let changed = patched != *new;
        self.review.object = Some(Arc::new(patched));
        Ok(Some(changed))
    }

    /// Returns whether the object is one of the kind, and not one of a subresource.
    fn is_whole(&self) -> bool {
        self.case.review.kind.name == self.case.target.kind.kind
    }

    /// Converts the objects to another version of the kind.
    async fn turn_to(&mut self, state: &State, wanted: &Target) -> Result<(), ApiError> {
        if same(&self.target, wanted) {
            return Ok(());
        }
        if self.is_whole() {
            let objects = [&mut self.review.object, &mut self.review.old];
            for object in objects.into_iter().flatten() {
                *object = turned(state, &self.target, wanted, object).await?;
            }
        }
        self.target = wanted.clone();
        Ok(())
    }
}

/// Asks the validating webhooks. The first refusal, in their order, is the answer.
pub(crate) async fn validate(state: &State, case: &Case) -> Answer {
    let relevant = match relevant(state, case).await {
        Ok(relevant) => relevant,
        Err(error) => return Answer::from(Err(error)),
    };
    let mut calls = Vec::new();
    for (webhook, found, new, old) in &relevant {
        let objects = Objects { new, old };
        let asked = (&*case.review, found);
        calls.push(exchange::call(state, webhook, false, asked, objects));
    }
    let called = join_all(calls).await;
    let mut warnings = Vec::new();
    let mut refusal = None;
    for ((webhook, ..), called) in relevant.iter().zip(called) {
        let refused = match decided(webhook, called) {
            Ok(None) => None,
            Ok(Some(verdict)) => {
                warnings.extend(verdict.warnings);
                verdict.refusal
            }
            Err(error) => Some(error),
        };
        refusal = refusal.or(refused);
    }
    Answer {
        outcome: refusal.map_or(Ok(None), Err),
        warnings,
    }
}

/// A webhook that a request is for, and the objects in its version.
type Relevant<'c> = (&'c Webhook, Found, Object, Object);

async fn relevant<'c>(state: &State, case: &'c Case) -> Result<Vec<Relevant<'c>>, ApiError> {
    let review = &*case.review;
    let namespace = case.namespace.as_deref();
    let mut relevant = Vec::new();
    for webhook in &case.registered.validating {
        let found = webhook
            .criteria
            .find(review, &case.target, &case.registry, namespace);
        let Some(found) = found else {
            continue;
        };
        let wanted = found.target.as_ref().unwrap_or(&case.target);
        let new = in_version(state, case, wanted, &review.object).await?;
        let old = in_version(state, case, wanted, &review.old).await?;
        if holds(webhook, case, review, &found, &new, &old)? {
            relevant.push((webhook, found, new, old));
        }
    }
    Ok(relevant)
}

/// Returns whether the conditions of a webhook hold.
fn holds(
    webhook: &Webhook,
    case: &Case,
    review: &Review,
    found: &Found,
    new: &Value,
    old: &Value,
) -> Result<bool, ApiError> {
    let held = webhook.holds(review, found, new, old);
    held.map_err(|why| refuse::forbidden(&case.target, review.shown_name(), why))
}

/// Returns the verdict of a call; `None` if it failed and the webhook lets requests pass then.
fn decided(
    webhook: &Webhook,
    called: Result<Verdict, Trouble>,
) -> Result<Option<Verdict>, ApiError> {
    match called {
        Ok(verdict) => Ok(Some(verdict)),
        Err(Trouble::Refused(error)) => Err(error),
        Err(Trouble::Calling(why)) => {
            let text = format!("failed calling webhook {:?}: {why}", webhook.name);
            if webhook.fail_open {
                tracing::warn!("{text}; its failure policy lets the request pass");
                return Ok(None);
            }
            Err(ApiError::undecided(text))
        }
    }
}

async fn in_version(
    state: &State,
    case: &Case,
    wanted: &Target,
    object: &Option<Object>,
) -> Result<Object, ApiError> {
    let is_whole = case.review.kind.name == case.target.kind.kind;
    match object {
        Some(object) if is_whole && !same(&case.target, wanted) => {
            turned(state, &case.target, wanted, object).await
        }
        object => Ok(value(object)),
    }
}

async fn turned(
    state: &State,
    from: &Target,
    to: &Target,
    object: &Object,
) -> Result<Object, ApiError> {
    if to.kind.conversion.is_none() {
        return Ok(conversion::plainly(from, to, object));
    }
    let made = conversion::convert(state, to, vec![object.clone()], false).await;
    let mut made = made.map_err(|error| ApiError::undecided(error.message))?;
    made.pop()
        .ok_or_else(|| ApiError::internal("a conversion gave no object"))
}

fn same(a: &Target, b: &Target) -> bool {
    Arc::ptr_eq(&a.kind, &b.kind) && a.version == b.version
}

/// Returns an object, or null.
fn value(object: &Option<Object>) -> Object {
    object.clone().unwrap_or_else(|| Arc::new(Value::Null))
}
