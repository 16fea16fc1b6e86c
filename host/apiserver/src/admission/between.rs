//! An object on its way through policies and webhooks, in the version that each of them gets.
//!
//! Owns the conversion between two of them, and which are asked again in the second round. Must
//! not know what any of them does.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::review::Review;
use crate::conversion;
use crate::kinds::Target;
use crate::object::Object;
use crate::questions::Case;
use crate::state::State;
use crate::status::ApiError;

/// An object in some version, between two policies or webhooks.
pub(super) struct Between<'c> {
    pub case: &'c Case,
    /// The version in which the object is.
    pub target: Target,
    pub review: Review,
    pub warnings: Vec<String>,
}

/// Which policies or webhooks are asked again in the second round.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Those that are asked again if the object changes after them.
    called: BTreeSet<String>,
    again: BTreeSet<String>,
}

impl Calls {
    /// Takes one down that is asked again if the object changes after it.
    pub fn note(&mut self, id: String) {
        self.called.insert(id);
    }

    /// Takes down that the object changed.
    pub fn repeat(&mut self) {
        self.again.append(&mut self.called);
    }

    /// Returns whether one is asked in a round.
    pub fn has(&self, id: &str, second: bool) -> bool {
        !second || self.again.contains(id)
    }

    /// Returns whether the second round asks none.
    pub fn is_done(&self) -> bool {
        self.again.is_empty()
    }
}

impl<'c> Between<'c> {
    pub fn of(case: &'c Case) -> Between<'c> {
        Between {
            case,
            target: case.target.clone(),
            review: Review::clone(&case.review),
            warnings: Vec::new(),
        }
    }

    /// Returns whether the object is one of the kind, and not one of a subresource.
    pub fn is_whole(&self) -> bool {
        self.case.review.kind.name == self.case.target.kind.kind
    }

    /// Replaces the object by what was made of it, with the defaults of new fields. Returns whether
    /// it is another one.
    pub fn replace(&mut self, mut new: Value) -> bool {
        if self.is_whole() {
            self.target.complete(&mut new);
            if let Some(schema) = self.target.schema() {
                schema.apply_defaults(&mut new);
            }
        }
        let changed = self.review.object.as_deref() != Some(&new);
        self.review.object = Some(Arc::new(new));
        changed
    }

    /// Converts the objects to another version of the kind.
    pub async fn turn_to(&mut self, state: &State, wanted: &Target) -> Result<(), ApiError> {
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

/// Returns an object in another version of its kind.
pub(super) async fn turned(
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

/// Returns whether two targets are one.
pub(super) fn same(a: &Target, b: &Target) -> bool {
    Arc::ptr_eq(&a.kind, &b.kind) && a.version == b.version
}

/// Returns an object, or null.
pub(super) fn value(object: &Option<Object>) -> Object {
    object.clone().unwrap_or_else(|| Arc::new(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_came_before_a_change_is_asked_again() {
        let mut calls = Calls::default();
        calls.note("a".to_owned());
        assert!(calls.is_done() && calls.has("a", false) && !calls.has("a", true));
        calls.repeat();
        calls.note("b".to_owned());
        assert!(!calls.is_done() && calls.has("a", true) && !calls.has("b", true));
    }
}
