//! Merges the applied object into the live one.
//!
//! Follows structured-merge-diff `typed/merge.go`: the applied value wins, and items keep the live
//! order as far as the applied order allows. Removes nothing. Must not know managers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::set::Step;
use crate::shape::{List, Map, Place, Shape};

pub(crate) fn merge(place: Place<'_>, live: &Value, applied: &Value) -> Result<Value, String> {
    Ok(visit(place, Some(live), Some(applied))?
        .unwrap_or_else(|| Value::Object(serde_json::Map::new())))
}

fn visit(
    place: Place<'_>,
    live: Option<&Value>,
    applied: Option<&Value>,
) -> Result<Option<Value>, String> {
    let shape = place.shape(applied.or(live));
    match shape {
        Shape::Scalar => Ok(leaf(live, applied)),
        Shape::List(list) => {
            let (old, new) = (items(live), items(applied));
            if list.is_atomic() || (old.is_empty() && new.is_empty()) {
                return Ok(leaf(live, applied));
            }
            let out = merge_list(list, old, new)?;
            Ok((!out.is_empty()).then_some(Value::Array(out)))
        }
        Shape::Map(map) => {
            let (old, new) = (
                live.and_then(Value::as_object),
                applied.and_then(Value::as_object),
            );
            let empty = |map: Option<&serde_json::Map<String, Value>>| {
                map.is_none_or(serde_json::Map::is_empty)
            };
            if map.atomic || (empty(old) && empty(new)) {
                return Ok(leaf(live, applied));
            }
            merge_map(map, old, new).map(Some)
        }
    }
}

fn leaf(live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    applied.or(live).cloned()
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn merge_map(
    shape: Map<'_>,
    live: Option<&serde_json::Map<String, Value>>,
    applied: Option<&serde_json::Map<String, Value>>,
) -> Result<Value, String> {
    let mut out = serde_json::Map::new();
    let names: BTreeSet<&String> = live
        .into_iter()
        .flatten()
        .chain(applied.into_iter().flatten())
        .map(|(name, _)| name)
        .collect();
    for name in names {
        let place = shape.field(name).unwrap_or(Place::Open);
        let (live, applied) = (
            live.and_then(|map| map.get(name)),
            applied.and_then(|map| map.get(name)),
        );
        if let Some(value) = visit(place, live, applied)? {
            out.insert(name.clone(), value);
        }
    }
    Ok(Value::Object(out))
}

/// The items of one side by their steps. A step that occurs twice has no single item.
struct Side<'a> {
    steps: Vec<Step>,
    by_step: BTreeMap<Step, Option<&'a Value>>,
}

impl<'a> Side<'a> {
    fn of(shape: List<'_>, items: &'a [Value], duplicates: bool) -> Result<Side<'a>, String> {
        let mut side = Side {
            steps: Vec::with_capacity(items.len()),
            by_step: BTreeMap::new(),
        };
        for (index, item) in items.iter().enumerate() {
            let step = shape
                .step(item)
                .map_err(|error| format!("element {index}: {error}"))?;
            if side.by_step.contains_key(&step) {
                if !duplicates {
                    return Err(format!("duplicate entries for key {step}"));
                }
                side.by_step.insert(step.clone(), None);
            } else {
                side.by_step.insert(step.clone(), Some(item));
            }
            side.steps.push(step);
        }
        Ok(side)
    }

    fn has(&self, step: &Step) -> bool {
        self.by_step.contains_key(step)
    }

    fn get(&self, step: &Step) -> Option<&'a Value> {
        self.by_step.get(step).copied().flatten()
    }
}

fn merge_list(shape: List<'_>, live: &[Value], applied: &[Value]) -> Result<Vec<Value>, String> {
    let right = Side::of(shape, applied, false)?;
    let left = Side::of(shape, live, true)?;
    let mut shared = right.steps.iter().filter(|step| left.has(step));
    let mut next_shared = shared.next();
    let mut merged: BTreeSet<&Step> = BTreeSet::new();
    let mut out = Vec::new();
    let (mut l, mut r) = (0, 0);
    while l < left.steps.len() || r < right.steps.len() {
        if let (Some(a), Some(b)) = (left.steps.get(l), right.steps.get(r)) {
            if a == b {
                merged.insert(a);
                out.extend(visit(shape.item, left.get(a), right.get(a))?);
                l += 1;
                r += 1;
                next_shared = shared.next();
                continue;
            }
            if right.has(a) && next_shared.is_some_and(|next| next != a) {
                // A shared item out of turn: the applied order decides its place.
                l += 1;
                continue;
            }
        }
        if let Some(a) = left.steps.get(l) {
            if !right.has(a) {
                out.extend(visit(shape.item, live.get(l), None)?);
                l += 1;
                continue;
            }
            if merged.contains(a) {
                l += 1;
            }
        }
        if let Some(b) = right.steps.get(r) {
            merged.insert(b);
            out.extend(visit(shape.item, left.get(b), right.get(b))?);
            r += 1;
            if next_shared == Some(b) {
                next_shared = shared.next();
            }
        }
    }
    Ok(out)
}
