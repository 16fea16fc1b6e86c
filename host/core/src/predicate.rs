//! Predicates: whether a change of an object wakes a controller.
//!
//! This module owns the conditions that a description may set, and evaluates them on the two texts
//! that the store holds, so that no guest is called only to ignore a change. It parses only what
//! the conditions need. It must not know which keys wake, nor how errors are counted.

mod expression;
mod field_selector;
mod guards;
mod limits;
mod value;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::metadata::{Metadata, Pairs};
use crate::selector::LabelSelector;

use expression::Expression;
pub use field_selector::FieldSelector;

/// The conditions of one watched kind, as a description writes them. All conditions that are set
/// must hold; without conditions every change wakes.
///
/// Some changes always wake, whatever the conditions: an object is gone, its deletion is requested,
/// or another object of the same name replaces it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PredicateDescription {
    /// An update wakes only if one of these differs. For a new object, all of them differ. Empty
    /// for any update.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Changed>,
    /// The old or the new object must match this label selector: a change that takes an object out
    /// of the selection wakes too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
    /// The old or the new object must match this field selector:
    /// `spec.nodeName=a,status.phase!=Failed`, with any path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<String>,
    /// A CEL expression over `object` and `oldObject` (null for a new object), as in a
    /// ValidatingAdmissionPolicy. At most 4096 bytes; the result must be a boolean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel: Option<String>,
}

/// A part of an object that an update may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Changed {
    /// `metadata.generation`: counts changes of the spec in most kinds. In a kind without
    /// generations it never differs.
    Generation,
    /// `metadata.labels`.
    Labels,
    /// `metadata.annotations`.
    Annotations,
    /// `metadata.resourceVersion`: differs in every change, but not in a resync.
    ResourceVersion,
}

/// An invalid condition. The author of the plugin must fix it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct PredicateError {
    /// The condition's field: `changed`, `labelSelector`, `fieldSelector` or `cel`.
    pub field: &'static str,
    /// Why the condition is invalid.
    pub reason: String,
}

/// Whether a change wakes keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wakes {
    /// The change wakes keys.
    Yes,
    /// The change wakes no keys.
    No,
    /// A condition could not be evaluated, so the change wakes: a needless call is better than a
    /// lost change. The text contains no value of the object, which may be a secret.
    Error(String),
}

impl Wakes {
    /// Returns whether the change wakes keys.
    pub fn wakes(&self) -> bool {
        !matches!(self, Self::No)
    }
}

/// Compiled conditions: built once for each generation of a plugin, and shared.
#[derive(Debug, Default)]
pub struct Predicate {
    changed: Vec<Changed>,
    labels: Option<LabelSelector>,
    fields: Option<FieldSelector>,
    cel: Option<Expression>,
}

impl Predicate {
    /// Compiles the conditions.
    pub fn compile(description: &PredicateDescription) -> Result<Self, PredicateError> {
        let at = |field| move |reason| PredicateError { field, reason };
        // A part that is named a million times is looked at once.
        let changed: BTreeSet<Changed> = description.changed.iter().copied().collect();
        let labels = description.label_selector.as_deref();
        let fields = description.field_selector.as_deref();
        let cel = description.cel.as_deref();
        Ok(Self {
            changed: changed.into_iter().collect(),
            labels: labels
                .map(LabelSelector::parse)
                .transpose()
                .map_err(at("labelSelector"))?,
            fields: fields
                .map(FieldSelector::parse)
                .transpose()
                .map_err(at("fieldSelector"))?,
            cel: cel
                .map(Expression::compile)
                .transpose()
                .map_err(at("cel"))?,
        })
    }

    /// Returns whether the change from the old object to the new one wakes keys. The texts are the
    /// store's; `None` if there is no object.
    pub fn wakes(&self, old: Option<&str>, new: Option<&str>) -> Wakes {
        let Some(new) = new else {
            return Wakes::Yes;
        };
        match self.decide(old, new) {
            Ok(true) => Wakes::Yes,
            Ok(false) => Wakes::No,
            Err(reason) => Wakes::Error(reason),
        }
    }

    /// The dotted paths that the conditions read, so that a pruned store keeps them; `None` for the
    /// whole object. `apiVersion`, `kind` and `metadata` are always kept, and not listed.
    pub fn fields(&self) -> Option<BTreeSet<String>> {
        let mut fields = BTreeSet::new();
        if let Some(selector) = &self.fields {
            fields.extend(selector.fields());
        }
        if let Some(cel) = &self.cel {
            fields.extend(cel.fields()?.iter().cloned());
        }
        fields.retain(|path| {
            let root = path.split('.').next();
            !matches!(root, Some("apiVersion" | "kind" | "metadata"))
        });
        Some(fields)
    }

    /// Evaluates the conditions, cheap ones first. The error says what could not be evaluated.
    fn decide(&self, old: Option<&str>, new: &str) -> Result<bool, String> {
        if self.changed.is_empty()
            && self.labels.is_none()
            && self.fields.is_none()
            && self.cel.is_none()
        {
            return Ok(true);
        }
        let new_metadata = metadata(new)?;
        let old_metadata = old.map(metadata).transpose()?;
        if is_end(old_metadata.as_ref(), &new_metadata) {
            return Ok(true);
        }
        if let Some(old) = &old_metadata
            && !self.has_changed(old, &new_metadata)?
        {
            return Ok(false);
        }
        if let Some(selector) = &self.labels {
            let matches = |of: &Metadata<'_>| selector.matches_by(|key| of.labels.get(key));
            if !matches(&new_metadata) && !old_metadata.as_ref().is_some_and(matches) {
                return Ok(false);
            }
        }
        if let Some(selector) = &self.fields
            && !selector.matches(new)
            && !old.is_some_and(|old| selector.matches(old))
        {
            return Ok(false);
        }
        self.cel
            .as_ref()
            .map_or(Ok(true), |cel| cel.holds(old, new))
    }

    fn has_changed(&self, old: &Metadata<'_>, new: &Metadata<'_>) -> Result<bool, String> {
        if self.changed.is_empty() {
            return Ok(true);
        }
        for what in &self.changed {
            let differs = match what {
                Changed::Generation => old.generation != new.generation,
                Changed::ResourceVersion => old.resource_version != new.resource_version,
                Changed::Labels => !same(&old.labels, &new.labels),
                Changed::Annotations => {
                    old.annotations_text() != new.annotations_text()
                        && !same(&annotations(old)?, &annotations(new)?)
                }
            };
            if differs {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns whether the change requests the object's deletion, or replaces the object by another of
/// the same name. No condition suppresses such a change.
fn is_end(old: Option<&Metadata<'_>>, new: &Metadata<'_>) -> bool {
    match old {
        Some(old) => old.uid != new.uid || (new.is_deleting() && !old.is_deleting()),
        None => new.is_deleting(),
    }
}

fn metadata(text: &str) -> Result<Metadata<'_>, String> {
    Metadata::parse(text).map_err(|_| "the object's metadata cannot be read".into())
}

fn annotations<'a>(of: &Metadata<'a>) -> Result<Pairs<'a>, String> {
    of.annotations()
        .map_err(|_| "the object's annotations cannot be read".into())
}

/// Compares pairs as maps, regardless of order.
fn same(one: &Pairs<'_>, other: &Pairs<'_>) -> bool {
    let sorted = |pairs: &Pairs<'_>| -> BTreeSet<(String, String)> {
        pairs.iter().map(|(k, v)| (k.into(), v.into())).collect()
    };
    one == other || sorted(one) == sorted(other)
}

#[cfg(test)]
mod tests;
