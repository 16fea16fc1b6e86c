//! Random changes of values, texts and bytes.
//!
//! Must not know what they are used for.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Returns one of the values.
pub(super) fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.usize(..from.len())]
}

/// Returns some of the words, one behind the other.
pub(super) fn words(rng: &mut Rng, from: &[&str], most: usize) -> String {
    let count = rng.usize(..=most);
    (0..count).map(|_| *pick(rng, from)).collect()
}

/// Returns a value that a careless client could send.
pub(super) fn odd(rng: &mut Rng) -> Value {
    match rng.u8(..22) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(0),
        3 => json!(-1),
        4 => json!(i64::MIN),
        5 => json!(u64::MAX),
        6 => json!(1e308),
        7 => json!(0.1),
        8 => json!(""),
        9 => json!("\u{0}"),
        10 => json!("\u{1f980}é"),
        11 => json!("x".repeat(rng.usize(1..5000))),
        12 => json!([]),
        13 => json!([null]),
        14 => json!({}),
        15 => json!({ "": null }),
        16 => json!([{ "name": "a" }, { "name": "a" }, 7]),
        17 => deep(rng.usize(1..110)),
        18 => json!("9999999999999999999999Ei"),
        19 => json!("2026-13-45T99:99:99Z"),
        20 => json!("-1%"),
        _ => json!(rng.i32(..)),
    }
}

/// Returns a value that nests so deep.
fn deep(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, level| match level % 2 {
        0 => json!([inner]),
        _ => json!({ "a": inner }),
    })
}

/// Returns the JSON pointers of all parts of a value.
pub(super) fn pointers(value: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut below = |name: &str, inner: &Value| {
        let name = name.replace('~', "~0").replace('/', "~1");
        let inner = pointers(inner);
        found.extend(inner.iter().map(|rest| format!("/{name}{rest}")));
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| below(name, value)),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(at, item)| below(&at.to_string(), item));
        }
        _ => {}
    }
    found
}

/// Changes some parts of a value. Another value of the same sort gives some of its own parts.
pub(super) fn value(rng: &mut Rng, value: &mut Value, other: &Value) {
    for _ in 0..rng.usize(1..5) {
        let all = pointers(value);
        let Some(spot) = value.pointer_mut(pick(rng, &all).as_str()) else {
            continue;
        };
        match (rng.u8(..8), spot) {
            (0..=2, spot) => *spot = odd(rng),
            (3, Value::Object(map)) => {
                let name = some_name(rng, map);
                map.remove(&name);
            }
            (4, Value::Object(map)) => {
                let name = some_name(rng, map);
                let inner = map.remove(&name).unwrap_or_default();
                map.insert(words(rng, NAMES, 2), inner);
            }
            (5, Value::Array(items)) => {
                let same = items.clone();
                items.extend(same);
            }
            (_, Value::Array(items)) if !items.is_empty() => {
                items.remove(rng.usize(..items.len()));
            }
            (_, spot) => {
                let all = pointers(other);
                *spot = other
                    .pointer(pick(rng, &all).as_str())
                    .cloned()
                    .unwrap_or_default();
            }
        }
    }
}

const NAMES: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "name",
    "$patch",
    "/",
    "~",
    ".",
    " ",
    "\u{0}",
    "a",
    "items",
    "$retainKeys",
    "$setElementOrder/",
    "$deleteFromPrimitiveList/",
    "containers",
    "finalizers",
];

fn some_name(rng: &mut Rng, map: &Map<String, Value>) -> String {
    let names: Vec<&String> = map.keys().collect();
    match names.as_slice() {
        [] => String::new(),
        names => (*pick(rng, names)).clone(),
    }
}

/// Bytes that mean something in JSON, YAML or protobuf.
const PIECES: [&[u8]; 7] = [
    b"\xff\xff\xff\xff\x0f",
    b"{",
    b"[",
    b"\"",
    b"*a",
    b"&a ",
    b"\0",
];

/// Changes some bytes.
pub(super) fn bytes(rng: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..rng.usize(1..6) {
        let at = rng.usize(..=bytes.len());
        let until = (at + rng.usize(..20)).min(bytes.len());
        match rng.u8(..6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..until)),
            2 => {
                let same = bytes[at..until].to_vec();
                drop(bytes.splice(at..at, same));
            }
            3 => {
                let new: Vec<u8> = (0..rng.usize(1..6)).map(|_| rng.u8(..)).collect();
                drop(bytes.splice(at..at, new));
            }
            4 => {
                let new = pick(rng, &PIECES);
                drop(bytes.splice(at..at, new.iter().copied()));
            }
            _ => {
                for byte in &mut bytes[at..until] {
                    *byte ^= 1 << rng.u8(..8);
                }
            }
        }
    }
}
