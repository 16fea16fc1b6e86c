//! Shapes of objects: what a part of an object may be, from which random ones are made.
//!
//! Everything that a shape allows is valid, whichever managers own which part of it. Must not know
//! kinds.

use fastrand::Rng;
use serde_json::{Map, Value};

/// A part of an object.
pub enum Shape {
    /// One of these values.
    One(Vec<Value>),
    /// Some of these fields, and always those whose names end with `!`. A list or map without
    /// content is left out: kube-apiserver does that with some of its own kinds.
    Fields(Vec<(&'static str, Shape)>),
    /// Some of these items, in any order. Each has the fields that identify it, and is always there
    /// if the flag says so.
    Items(Vec<(bool, Value, Shape)>),
    /// Some of these values, in any order, and at least one.
    Some(Vec<Value>),
}

/// Returns one of these texts.
pub fn one(texts: &[&str]) -> Shape {
    Shape::One(texts.iter().map(|text| Value::from(*text)).collect())
}

/// Returns one of these numbers.
pub fn number(numbers: &[u32]) -> Shape {
    Shape::One(numbers.iter().map(|number| Value::from(*number)).collect())
}

/// Returns some of these texts.
pub fn some(texts: &[&str]) -> Shape {
    Shape::Some(texts.iter().map(|text| Value::from(*text)).collect())
}

/// Returns a map of some of the keys `a`, `b` and `c`.
pub fn texts() -> Shape {
    let values = ["1", "2"];
    Shape::Fields(["a", "b", "c"].map(|name| (name, one(&values))).into())
}

impl Shape {
    /// Returns a random part of this shape. `share` is how much of it, in quarters.
    pub fn make(&self, rng: &mut Rng, share: u8) -> Value {
        let kept = |rng: &mut Rng| rng.u8(..4) < share;
        match self {
            Shape::One(values) => rng.choice(values).cloned().unwrap_or_default(),
            Shape::Fields(fields) => {
                let mut map = Map::new();
                for (name, shape) in fields {
                    let always = name.strip_suffix('!');
                    if always.is_none() && !kept(rng) {
                        continue;
                    }
                    let value = shape.make(rng, share);
                    if always.is_some() || !is_empty(&value) {
                        map.insert(always.unwrap_or(name).to_owned(), value);
                    }
                }
                Value::Object(map)
            }
            Shape::Items(items) => {
                let mut list = Vec::new();
                for (always, identity, shape) in items {
                    if *always || kept(rng) {
                        let mut item = shape.make(rng, share);
                        if let (Value::Object(item), Value::Object(identity)) =
                            (&mut item, identity)
                        {
                            item.extend(identity.clone());
                        }
                        list.push(item);
                    }
                }
                rng.shuffle(&mut list);
                Value::Array(list)
            }
            Shape::Some(values) => {
                let mut list = values.clone();
                rng.shuffle(&mut list);
                list.truncate(rng.usize(1..=values.len().max(1)));
                Value::Array(list)
            }
        }
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}
