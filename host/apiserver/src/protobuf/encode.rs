//! JSON as messages, byte for byte as Kubernetes' own encoder writes them.
//!
//! Owns the order (by number; maps by key) and what is written of a field that is not set: the zero
//! of its type, unless it is a pointer in Go. Objects have been checked by their schema; a value
//! that has another type nevertheless is written as that zero. Must not know envelopes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use super::table::{self, Kind, Message, SCHEMA, Shape};
use super::wire::{put_bytes, put_double, put_message, put_number};

/// A field that is not set.
static UNSET: Value = Value::Null;

const NANOS: i128 = 1_000_000_000;
/// The second in which Go's zero time is, which is written as an empty message.
const ZERO_TIME: i128 = -62_135_596_800;

/// Appends the fields of an object.
pub(super) fn message(of: &Message, object: &Value, out: &mut Vec<u8>) {
    for field in &of.fields {
        let found = object.get(&field.name).filter(|found| !found.is_null());
        match (field.shape, found) {
            (Shape::Inline, _) => value(field.kind, field.number, object, out),
            (Shape::One, None) if field.always => value(field.kind, field.number, &UNSET, out),
            (Shape::One, Some(found)) => value(field.kind, field.number, found, out),
            (Shape::List, Some(Value::Array(items))) => {
                for item in items {
                    value(field.kind, field.number, item, out);
                }
            }
            // The keys of a JSON object are sorted.
            (Shape::Map, Some(Value::Object(map))) => {
                for (key, item) in map {
                    put_message(out, field.number, |out| {
                        put_bytes(out, 1, key.as_bytes());
                        if field.kind != Kind::Bytes || !item.is_null() {
                            value(field.kind, 2, item, out);
                        }
                    });
                }
            }
            _ => {}
        }
    }
}

/// Appends one value, with its tag.
fn value(kind: Kind, number: u64, value: &Value, out: &mut Vec<u8>) {
    match kind {
        Kind::Text => put_bytes(out, number, value.as_str().unwrap_or_default().as_bytes()),
        Kind::Bytes => {
            let bytes = STANDARD.decode(value.as_str().unwrap_or_default());
            put_bytes(out, number, &bytes.unwrap_or_default());
        }
        Kind::Bool => put_number(out, number, u64::from(value.as_bool().unwrap_or_default())),
        Kind::Int => put_number(out, number, int(value)),
        Kind::Double => put_double(out, number, value.as_f64().unwrap_or_default()),
        other => put_message(out, number, |out| content(other, value, out)),
    }
}

/// Appends the content of a value that is a message.
fn content(kind: Kind, value: &Value, out: &mut Vec<u8>) {
    match kind {
        Kind::Time | Kind::MicroTime => time(value, kind == Kind::MicroTime, out),
        Kind::Quantity => match value {
            Value::String(text) => put_bytes(out, 1, text.as_bytes()),
            Value::Number(number) => put_bytes(out, 1, number.to_string().as_bytes()),
            _ => put_bytes(out, 1, b"0"),
        },
        Kind::IntOrString => {
            let text = value.as_str();
            put_number(out, 1, u64::from(text.is_some()));
            put_number(out, 2, int(value));
            put_bytes(out, 3, text.unwrap_or_default().as_bytes());
        }
        Kind::Json if !value.is_null() => {
            // A Value can always be serialised: its keys are strings and its numbers finite.
            put_bytes(out, 1, &serde_json::to_vec(value).unwrap_or_default());
        }
        Kind::Texts => {
            for text in value.as_array().into_iter().flatten() {
                put_bytes(out, 1, text.as_str().unwrap_or_default().as_bytes());
            }
        }
        Kind::SchemaOrBool => {
            let allows = value.is_object() || value.as_bool() == Some(true);
            put_number(out, 1, u64::from(allows));
            schema(2, value, out);
        }
        Kind::SchemaOrList => match value {
            Value::Array(items) => items.iter().for_each(|item| schema(2, item, out)),
            one => schema(1, one, out),
        },
        Kind::SchemaOrTexts => match value {
            Value::Array(texts) => {
                for text in texts {
                    put_bytes(out, 2, text.as_str().unwrap_or_default().as_bytes());
                }
            }
            one => schema(1, one, out),
        },
        Kind::Message(position) => {
            if let Some(of) = table::at(position) {
                message(of, value, out);
            }
        }
        // A null, and what `value` has written already.
        Kind::Json | Kind::Text | Kind::Bytes | Kind::Bool | Kind::Int | Kind::Double => {}
    }
}

/// Appends a schema, if the value is one.
fn schema(number: u64, value: &Value, out: &mut Vec<u8>) {
    if let (true, Some(of)) = (value.is_object(), table::named(SCHEMA)) {
        put_message(out, number, |out| message(of, value, out));
    }
}

/// Returns a number as it is on the wire: negative ones in 64 bits.
fn int(value: &Value) -> u64 {
    let whole = value.as_i64();
    let number = whole.or_else(|| value.as_f64().map(|number| number as i64));
    number.unwrap_or_default().cast_unsigned()
}

/// Appends seconds and nanoseconds since 1970. Of a `Time`, Kubernetes drops fractions.
fn time(value: &Value, micro: bool, out: &mut Vec<u8>) {
    let text = value.as_str().unwrap_or_default();
    let Ok(time) = text.parse::<Timestamp>() else {
        return;
    };
    let nanos = time.as_nanosecond();
    let (seconds, rest) = (nanos.div_euclid(NANOS), nanos.rem_euclid(NANOS));
    if seconds == ZERO_TIME && rest == 0 {
        return;
    }
    let micros = if micro { rest / 1000 * 1000 } else { 0 };
    put_number(
        out,
        1,
        i64::try_from(seconds).unwrap_or_default().cast_unsigned(),
    );
    put_number(out, 2, u64::try_from(micros).unwrap_or_default());
}
