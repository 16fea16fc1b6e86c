//! The changes between two objects, as sets of paths.
//!
//! Follows structured-merge-diff `typed/compare.go`. Must not know managers.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::set::{Set, Step};
use crate::shape::{List, Map, Place, Shape};

/// The changed paths. The sets are disjoint.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) added: Set,
    pub(crate) modified: Set,
    pub(crate) removed: Set,
}

impl Comparison {
    /// Returns the comparison without `fields` and everything below them.
    pub(crate) fn without(self, fields: &Set) -> Comparison {
        Comparison {
            added: self.added.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            removed: self.removed.recursive_difference(fields),
        }
    }
}

/// Returns whether two values are equal; 1 and 1.0 are equal.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

pub(crate) fn compare(place: Place<'_>, old: &Value, new: &Value) -> Result<Comparison, String> {
    let mut walk = Walk {
        path: Vec::new(),
        out: Comparison::default(),
    };
    walk.visit(place, Some(old), Some(new))?;
    Ok(walk.out)
}

struct Walk {
    path: Vec<Step>,
    out: Comparison,
}

impl Walk {
    fn visit(
        &mut self,
        place: Place<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Result<(), String> {
        let (before, after) = (place.shape(old), place.shape(new));
        let same_kind = std::mem::discriminant(&before) == std::mem::discriminant(&after);
        let leaf = if new.is_none() {
            self.shaped(before, old, new)?
        } else {
            if old.is_some() && !same_kind {
                self.shaped(before, old, new)?;
            }
            self.shaped(after, old, new)?
        };
        if !leaf {
            match (old, new) {
                (None, _) => self.out.added.insert(&self.path),
                (_, None) => self.out.removed.insert(&self.path),
                _ => {}
            }
        }
        Ok(())
    }

    /// Compares a place, and returns whether it is a single leaf.
    fn shaped(
        &mut self,
        shape: Shape<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Result<bool, String> {
        match shape {
            Shape::Scalar => self.leaf(old, new),
            Shape::List(list) => {
                let (old_items, new_items) = (items(old), items(new));
                if list.is_atomic() || (old_items.is_empty() && new_items.is_empty()) {
                    self.leaf(old, new);
                    return Ok(true);
                }
                self.list(list, old_items, new_items)?;
                return Ok(false);
            }
            Shape::Map(map) => {
                let (old_map, new_map) = (entries(old), entries(new));
                let empty = |map: Option<&serde_json::Map<String, Value>>| {
                    map.is_none_or(serde_json::Map::is_empty)
                };
                if map.atomic || (empty(old_map) && empty(new_map)) {
                    self.leaf(old, new);
                    return Ok(true);
                }
                self.map(map, old_map, new_map)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, _) => self.out.added.insert(&self.path),
            (_, None) => self.out.removed.insert(&self.path),
            (Some(old), Some(new)) if !equal(old, new) => self.out.modified.insert(&self.path),
            _ => {}
        }
    }

    fn below(
        &mut self,
        step: Step,
        place: Place<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Result<(), String> {
        self.path.push(step);
        let result = self.visit(place, old, new);
        self.path.pop();
        result
    }

    fn map(
        &mut self,
        shape: Map<'_>,
        old: Option<&serde_json::Map<String, Value>>,
        new: Option<&serde_json::Map<String, Value>>,
    ) -> Result<(), String> {
        let place = |name: &str| shape.field(name).unwrap_or(Place::Open);
        for (name, value) in old.into_iter().flatten() {
            self.below(
                Step::field(name),
                place(name),
                Some(value),
                new.and_then(|new| new.get(name)),
            )?;
        }
        for (name, value) in new.into_iter().flatten() {
            if old.is_none_or(|old| !old.contains_key(name)) {
                self.below(Step::field(name), place(name), None, Some(value))?;
            }
        }
        Ok(())
    }

    fn list(&mut self, shape: List<'_>, old: &[Value], new: &[Value]) -> Result<(), String> {
        let mut pairs: BTreeMap<Step, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in old {
            pairs.entry(shape.step(item)?).or_default().0.push(item);
        }
        for item in new {
            pairs.entry(shape.step(item)?).or_default().1.push(item);
        }
        for (step, (old, new)) in pairs {
            let mut marked = self.path.clone();
            marked.push(step.clone());
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => {
                    self.below(step, shape.item, old.first().copied(), new.first().copied())?
                }
                // Duplicates are owned as one, so they differ if any of them differs.
                ([_, _, ..], [_, _, ..]) => {
                    if old.len() != new.len()
                        || !old.iter().zip(&new).all(|(old, new)| equal(old, new))
                    {
                        self.out.modified.insert(&marked);
                    }
                }
                ([_, _, ..], rest) => {
                    if let [one] = rest {
                        self.below(step, shape.item, None, Some(one))?;
                    }
                    self.out.removed.insert(&marked);
                }
                (rest, _) => {
                    if let [one] = rest {
                        self.below(step, shape.item, Some(one), None)?;
                    }
                    self.out.added.insert(&marked);
                }
            }
        }
        Ok(())
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn entries(value: Option<&Value>) -> Option<&serde_json::Map<String, Value>> {
    value.and_then(Value::as_object)
}
