//! Which older value belongs to a value.
//!
//! Must not know rules.

use serde_json::Value;

use crate::compile::Place;

/// A value with what it is compared to.
#[derive(Clone, Copy)]
pub(super) struct Pair<'o> {
    pub(super) value: &'o Value,
    /// The older value that rules see as `oldSelf`.
    pub(super) old: Option<&'o Value>,
    /// The older value of the same place, if it is known.
    pub(super) current: Option<&'o Value>,
    /// The nearest value around this one whose older value is known, and that.
    pub(super) nearest: Option<(&'o Value, &'o Value)>,
}

impl<'o> Pair<'o> {
    /// Returns whether the value, or the nearest one around it that can be compared, is as before.
    pub(super) fn unchanged(&self) -> bool {
        match (self.current, self.nearest) {
            (Some(old), _) => old == self.value,
            (None, Some((value, old))) => value == old,
            (None, None) => false,
        }
    }

    /// Returns the pair of a field or of a value of a map.
    pub(super) fn field(self, name: &str, value: &'o Value) -> Pair<'o> {
        let old = self.old.and_then(|old| old.get(name));
        match self.current {
            None => Pair { value, old, ..self },
            // Both are in the same version, whatever they were written in.
            Some(_) if self.nearest.is_none() && matches!(name, "apiVersion" | "kind") => Pair {
                value,
                old,
                current: None,
                nearest: None,
            },
            Some(current) => Pair {
                value,
                old,
                current: current.get(name),
                nearest: Some((self.value, current)),
            },
        }
    }

    /// Returns the pair of an item of a list.
    pub(super) fn item(self, place: &Place, value: &'o Value) -> Pair<'o> {
        let same = |list: &'o Value| place.listing.old_item(value, list.as_array()?);
        let old = self.old.and_then(same);
        match self.current {
            None => Pair { value, old, ..self },
            Some(current) => Pair {
                value,
                old,
                current: same(current),
                nearest: Some((self.value, current)),
            },
        }
    }
}
