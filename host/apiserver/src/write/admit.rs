//! Admission in the steps of a write.
//!
//! Owns what webhooks see of an object that is not stored yet, and which fields stay the server's
//! own whatever they make of it. Must not know which webhook is asked.

use std::sync::Arc;

use serde_json::Value;

use super::status;
use super::steps::{self, check_depth, check_type};
use crate::access::signing;
use crate::admission;
use crate::admission::review::{Operation, Review};
use crate::call::{Call, Door};
use crate::meta;
use crate::object::Object;
use crate::state::Inner;
use crate::status::ApiError;

/// What the server gives to a new object after mutating webhooks have seen it, or takes from it.
const LATER: [&str; 6] = [
    "uid",
    "creationTimestamp",
    "generation",
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// What stays as it is in an object that is replaced, whatever webhooks make of it.
const FIXED: [&str; 4] = ["uid", "creationTimestamp", "generation", "resourceVersion"];

/// A write that admission is asked about.
pub(super) struct Proposal<'a> {
    /// The object that is replaced.
    pub live: Option<&'a Object>,
    /// Whether the server made the name.
    pub named: bool,
}

/// Completes an object as the admission plugins of every cluster do, and lets mutating policies and
/// webhooks change it. The ownership of its fields is recorded already: no manager owns what
/// changes here.
pub(super) fn mutate(
    inner: &Inner,
    call: &Call<'_>,
    proposal: &Proposal<'_>,
    new: &mut Value,
) -> Result<(), ApiError> {
    let live = proposal.live.map(|live| &**live);
    steps::admit(inner, call, live, new)?;
    // The scale of an object is asked about as such.
    if !inner.registered.mutates() || call.door == Door::Scale {
        return Ok(());
    }
    let Some(review) = review(call, proposal, new) else {
        return Ok(());
    };
    if !admission::may_mutate(inner, call, &review) {
        return Ok(());
    }
    let mut draft = new.clone();
    let fields: &[&str] = match live {
        Some(_) => &FIXED,
        None => &LATER,
    };
    let kept: Vec<(&str, Option<Value>)> = fields
        .iter()
        .copied()
        .chain(proposal.named.then_some("name"))
        .map(|field| (field, meta::get(&draft, field).cloned()))
        .collect();
    if live.is_none() {
        for (field, _) in &kept {
            meta::set(&mut draft, field, None);
        }
    }
    let review = Review {
        object: Some(Arc::new(draft)),
        old: proposal.live.cloned(),
        ..review
    };
    let Some(made) = admission::mutate(inner, call, review)? else {
        return Ok(());
    };
    *new = Value::clone(&made);
    check_type(call.target, new)?;
    check_depth(new)?;
    meta::check::decode(new)?;
    for (field, value) in kept {
        // A webhook may give a name.
        if field != "name" || meta::text(new, "name").is_empty() {
            meta::set(new, field, value);
        }
    }
    status::keep(call, live, new);
    reshape(call, new);
    // A webhook may have changed what the plugins look at.
    steps::admit(inner, call, live, new)
}

/// Prunes what webhooks added and fills in defaults again.
fn reshape(call: &Call<'_>, new: &mut Value) {
    let target = call.target;
    steps::drop_zeros(target, new);
    target.complete(new);
    if let Some(schema) = target.schema() {
        schema.prune(new);
        schema.apply_defaults(new);
        if !target.kind.custom {
            // What is no quantity is refused by the check of the schema.
            schema.normalize(new);
        }
    }
    steps::default(target, new);
}

/// Asks the admission plugins of every cluster, policies and validating webhooks about an object
/// that is about to be stored.
pub(super) fn validate(
    inner: &Inner,
    call: &Call<'_>,
    live: Option<&Object>,
    new: &Value,
) -> Result<(), ApiError> {
    signing::check(inner, call, live.map(|live| &**live), new)?;
    if inner.registered.is_empty() || call.door == Door::Scale {
        return Ok(());
    }
    let proposal = Proposal { live, named: false };
    let review = review(call, &proposal, new);
    let Some(review) = review.filter(|review| admission::may_refuse(inner, call, review)) else {
        return Ok(());
    };
    let review = Review {
        object: Some(Arc::new(new.clone())),
        old: live.cloned(),
        ..review
    };
    admission::validate(inner, call, review)
}

fn review(call: &Call<'_>, proposal: &Proposal<'_>, new: &Value) -> Option<Review> {
    let operation = match proposal.live {
        Some(_) => Operation::Update,
        None => Operation::Create,
    };
    let name = match proposal.named {
        true => "",
        false => meta::text(new, "name"),
    };
    admission::review(call, operation, name)
}
