//! What policies and webhooks make of one request: mutating ones one after the other, validating
//! webhooks at the same time.
//!
//! Owns their order, the second round after a change, and what a failed call means. Follows
//! k8s.io/apiserver `pkg/admission/plugin/webhook/{mutating,validating}`. Must not know the form
//! of a review.

use futures_util::future::join_all;
use serde_json::Value;

use super::asker::{Asker, Roles};
use super::between::{Between, Calls, same, turned, value};
use super::exchange::{self, Objects, Trouble, Verdict};
use super::mutation;
use super::review::Review;
use super::rules::Found;
use super::webhook::{self, Webhook};
use crate::kinds::Target;
use crate::object::Object;
use crate::operations::operate;
use crate::questions::{Answer, Case};
use crate::refuse;
use crate::state::State;
use crate::status::ApiError;

/// Lets the mutating policies and webhooks change the object of a request. The answer has what they
/// made of it, in the version of the request.
pub(crate) async fn mutate(state: &State, case: &Case) -> Answer {
    let mut between = Between::of(case);
    let passed = between.pass_all(state).await;
    Answer {
        outcome: passed.map(|()| between.review.object),
        warnings: between.warnings,
    }
}

impl Between<'_> {
    /// Asks all policies and then all webhooks in their order, and some of them again after a later
    /// one changed the object.
    async fn pass_all(&mut self, state: &State) -> Result<(), ApiError> {
        let case = self.case;
        let (mut policies, mut webhooks) = (Calls::default(), Calls::default());
        for second in [false, true] {
            let changed = mutation::pass(self, state, &mut policies, second).await?;
            if changed && second {
                webhooks.repeat();
            }
            let changed = self.call_all(state, &mut webhooks, second).await?;
            if changed && !second {
                policies.repeat();
            }
            if policies.is_done() && webhooks.is_done() {
                break;
            }
        }
        self.turn_to(state, &case.target).await
    }

    /// Calls the webhooks of a round, and returns whether they changed the object.
    async fn call_all(
        &mut self,
        state: &State,
        calls: &mut Calls,
        second: bool,
    ) -> Result<bool, ApiError> {
        let case = self.case;
        let mut changed_any = false;
        for webhook in webhook::called(&case.registered.mutating, &self.review) {
            if !calls.has(&webhook.id, second) {
                continue;
            }
            let Some(changed) = self.call(state, webhook).await? else {
                continue;
            };
            if changed {
                changed_any = true;
                calls.repeat();
            }
            if webhook.again {
                calls.note(webhook.id.clone());
            }
        }
        Ok(changed_any)
    }

    /// Calls a webhook if it is for the request, and returns whether it changed the object.
    async fn call(&mut self, state: &State, webhook: &Webhook) -> Result<Option<bool>, ApiError> {
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
        let asked = (&self.review, &found);
        let objects = Objects {
            new: &new,
            old: &old,
        };
        if !holds(state, webhook, case, asked, objects)? {
            return Ok(None);
        }
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
        Ok(Some(self.replace(patched)))
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
    for webhook in webhook::called(&case.registered.validating, review) {
        let found = webhook
            .criteria
            .find(review, &case.target, &case.registry, namespace);
        let Some(found) = found else {
            continue;
        };
        let wanted = found.target.as_ref().unwrap_or(&case.target);
        let new = in_version(state, case, wanted, &review.object).await?;
        let old = in_version(state, case, wanted, &review.old).await?;
        let objects = Objects {
            new: &new,
            old: &old,
        };
        if holds(state, webhook, case, (review, &found), objects)? {
            relevant.push((webhook, found, new, old));
        }
    }
    Ok(relevant)
}

/// Returns whether the conditions of a webhook hold.
fn holds(
    state: &State,
    webhook: &Webhook,
    case: &Case,
    asked: (&Review, &Found),
    objects: Objects<'_>,
) -> Result<bool, ApiError> {
    let (review, _) = asked;
    let by = Asker::of(Roles::Free(state), case.author.as_deref(), review);
    let held = webhook.holds(asked, &by, objects.new, objects.old);
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
