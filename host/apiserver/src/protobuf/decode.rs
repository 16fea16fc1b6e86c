//! Messages as JSON.
//!
//! Owns what becomes of the fields that Go writes without being set: they are left out. A field
//! that the table lacks is refused: no part of a body is ever dropped silently. Must not know
//! envelopes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::table::{self, Field, Kind, Message, SCHEMA, Shape};
use super::wire::{Fields, Wire, bad};
use crate::status::ApiError;

/// The maximum nesting of messages: as deep as schemas may be, and too little to exhaust the stack.
const DEPTH: usize = 64;

pub(super) fn utf8(bytes: &[u8]) -> Result<&str, ApiError> {
    std::str::from_utf8(bytes).map_err(bad)
}

/// Decodes a message as a JSON object.
pub(super) fn message(
    of: &Message,
    bytes: &[u8],
    depth: usize,
) -> Result<Map<String, Value>, ApiError> {
    if depth > DEPTH {
        return Err(bad("too deep"));
    }
    let mut object = Map::new();
    for field in Fields::of(bytes) {
        let (number, wire) = field?;
        let field = of
            .field(number)
            .ok_or_else(|| bad(format!("{} has an unknown field {number}", of.name)))?;
        match field.shape {
            Shape::Inline => {
                if let Some(Value::Object(fields)) = value(field.kind, &wire, depth)? {
                    object.extend(fields);
                }
            }
            Shape::List => {
                let item = value(field.kind, &wire, depth)?.unwrap_or_default();
                let list = object.entry(field.name.as_str());
                if let Some(list) = list.or_insert_with(|| json!([])).as_array_mut() {
                    list.push(item);
                }
            }
            Shape::Map => {
                let (key, item) = entry(field.kind, &wire, depth)?;
                let map = object.entry(field.name.as_str());
                if let Some(map) = map.or_insert_with(|| json!({})).as_object_mut() {
                    map.insert(key, item);
                }
            }
            Shape::One => {
                let value = value(field.kind, &wire, depth)?;
                if let Some(value) = value.filter(|value| !is_unset(field, value)) {
                    object.insert(field.name.clone(), value);
                }
            }
        }
    }
    Ok(object)
}

/// Returns whether a value is the zero that Go writes for a field that is not set.
fn is_unset(field: &Field, value: &Value) -> bool {
    match value {
        _ if field.kind == Kind::Json => false,
        Value::String(text) => text.is_empty() && (field.always || field.kind != Kind::Text),
        Value::Bool(false) => field.always,
        Value::Number(number) => field.always && number.as_i64() == Some(0),
        Value::Object(map) => field.always && map.is_empty(),
        _ => false,
    }
}

fn entry(kind: Kind, wire: &Wire<'_>, depth: usize) -> Result<(String, Value), ApiError> {
    let Wire::Bytes(bytes) = wire else {
        return Err(bad("a map is no message"));
    };
    let (mut key, mut found) = (String::new(), Wire::Bytes(&[]));
    for field in Fields::of(bytes) {
        match field? {
            (1, Wire::Bytes(text)) => key = utf8(text)?.to_owned(),
            (2, wire) => found = wire,
            _ => return Err(bad("a map entry has an unknown field")),
        }
    }
    Ok((key, value(kind, &found, depth)?.unwrap_or_default()))
}

/// Decodes a value; `None` for one that says nothing.
fn value(kind: Kind, wire: &Wire<'_>, depth: usize) -> Result<Option<Value>, ApiError> {
    Ok(match (kind, wire) {
        (Kind::Text, Wire::Bytes(text)) => Some(json!(utf8(text)?)),
        (Kind::Bytes, Wire::Bytes(bytes)) => Some(json!(STANDARD.encode(bytes))),
        (Kind::Bool, Wire::Number(n)) => Some(json!(*n != 0)),
        (Kind::Int, Wire::Number(n)) => Some(json!(n.cast_signed())),
        (Kind::Double, Wire::Double(n)) => Some(double(*n)),
        (Kind::Time | Kind::MicroTime, Wire::Bytes(bytes)) => {
            time(bytes, kind == Kind::MicroTime)?.map(Value::String)
        }
        (Kind::Quantity, Wire::Bytes(bytes)) => match only(bytes)? {
            Some(text) => Some(json!(utf8(text)?)),
            None => None,
        },
        (Kind::IntOrString, Wire::Bytes(bytes)) => Some(int_or_string(bytes)?),
        (Kind::Json, Wire::Bytes(bytes)) => match only(bytes)? {
            Some(raw) if !raw.is_empty() => Some(serde_json::from_slice(raw).map_err(bad)?),
            _ => None,
        },
        (Kind::Texts, Wire::Bytes(bytes)) => Some(texts(bytes)?),
        (Kind::SchemaOrBool, Wire::Bytes(bytes)) => Some(schema_or_bool(bytes, depth)?),
        (Kind::SchemaOrList | Kind::SchemaOrTexts, Wire::Bytes(bytes)) => {
            Some(schema_or_list(kind, bytes, depth)?)
        }
        (Kind::Message(position), Wire::Bytes(bytes)) => {
            let of = table::at(position).ok_or_else(|| bad("a message is not known"))?;
            Some(Value::Object(message(of, bytes, depth + 1)?))
        }
        (kind, _) => return Err(bad(format!("a value has another form than {kind:?}"))),
    })
}

/// Returns the only field of a message, which is a text or bytes; `None` for an empty message.
fn only(bytes: &[u8]) -> Result<Option<&[u8]>, ApiError> {
    let mut found = None;
    for field in Fields::of(bytes) {
        match field? {
            (1, Wire::Bytes(content)) => found = Some(content),
            _ => return Err(bad("a quantity or a JSON value has an unknown field")),
        }
    }
    Ok(found)
}

/// Returns a number as Go prints it: without a fraction that is zero.
fn double(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        json!(value as i64)
    } else {
        json!(value)
    }
}

fn texts(bytes: &[u8]) -> Result<Value, ApiError> {
    let items = Fields::of(bytes).map(|field| match field? {
        (1, Wire::Bytes(text)) => Ok(json!(utf8(text)?)),
        _ => Err(bad("a list of texts has an unknown field")),
    });
    items.collect()
}

fn schema(bytes: &[u8], depth: usize) -> Result<Value, ApiError> {
    let of = table::named(SCHEMA).ok_or_else(|| bad("schemas are not known"))?;
    Ok(Value::Object(message(of, bytes, depth + 1)?))
}

/// Decodes `JSONSchemaPropsOrBool`.
fn schema_or_bool(bytes: &[u8], depth: usize) -> Result<Value, ApiError> {
    let mut found = json!(false);
    for field in Fields::of(bytes) {
        match field? {
            (1, Wire::Number(allows)) if !found.is_object() => found = json!(allows != 0),
            (1, Wire::Number(_)) => {}
            (2, Wire::Bytes(bytes)) => found = schema(bytes, depth)?,
            _ => return Err(bad("a schema or boolean has an unknown field")),
        }
    }
    Ok(found)
}

/// Decodes `JSONSchemaPropsOrArray` and `JSONSchemaPropsOrStringArray`.
fn schema_or_list(kind: Kind, bytes: &[u8], depth: usize) -> Result<Value, ApiError> {
    let (mut one, mut list) = (Value::Null, Vec::new());
    for field in Fields::of(bytes) {
        match (kind, field?) {
            (_, (1, Wire::Bytes(bytes))) => one = schema(bytes, depth)?,
            (Kind::SchemaOrTexts, (2, Wire::Bytes(text))) => list.push(json!(utf8(text)?)),
            (_, (2, Wire::Bytes(bytes))) => list.push(schema(bytes, depth)?),
            _ => return Err(bad("a schema or list has an unknown field")),
        }
    }
    Ok(if list.is_empty() { one } else { json!(list) })
}

/// Decodes `intstr.IntOrString`: the type, the number, the text.
fn int_or_string(bytes: &[u8]) -> Result<Value, ApiError> {
    let (mut is_text, mut number, mut text) = (false, 0, "");
    for field in Fields::of(bytes) {
        match field? {
            (1, Wire::Number(n)) => is_text = n == 1,
            (2, Wire::Number(n)) => number = n.cast_signed(),
            (3, Wire::Bytes(bytes)) => text = utf8(bytes)?,
            _ => return Err(bad("an int-or-string has an unknown field")),
        }
    }
    Ok(if is_text { json!(text) } else { json!(number) })
}

/// Formats seconds and nanoseconds since 1970; `None` for an empty message.
fn time(bytes: &[u8], micro: bool) -> Result<Option<String>, ApiError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (mut seconds, mut nanos) = (0, 0);
    for field in Fields::of(bytes) {
        match field? {
            (1, Wire::Number(n)) => seconds = n.cast_signed(),
            (2, Wire::Number(n)) => nanos = i32::try_from(n.cast_signed()).map_err(bad)?,
            _ => return Err(bad("a time has an unknown field")),
        }
    }
    let time = Timestamp::new(seconds, nanos).map_err(bad)?;
    let form = if micro {
        "%Y-%m-%dT%H:%M:%S.%6fZ"
    } else {
        "%Y-%m-%dT%H:%M:%SZ"
    };
    Ok(Some(time.strftime(form).to_string()))
}
