//! How the data of an object becomes a value.
//!
//! Must not know what is done with it.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Failure, Val};
use crate::clock;
use crate::decl::{Decl, Listing, Shape};

impl<'a> Val<'a> {
    /// Returns the value of an object's data.
    pub fn read(value: &'a Value, decl: &'a Decl) -> Result<Val<'a>, Failure> {
        if value.is_null() {
            return match decl.nullable {
                true => Ok(Val::Null),
                false => Err(Failure::text(
                    "invalid data, got null for schema with nullable=false",
                )),
            };
        }
        let bad = |wanted: &str| Failure::text(format!("invalid data, expected {wanted}"));
        let text = || value.as_str().ok_or_else(|| bad("string"));
        match &decl.shape {
            Shape::Open => Ok(Val::open(value, decl)),
            Shape::IntOrString => match value {
                Value::String(text) => Ok(Val::String(Cow::Borrowed(text))),
                other => other
                    .as_i64()
                    .map(Val::Int)
                    .ok_or_else(|| bad("XIntOrString value to be either a string or integer")),
            },
            Shape::Bool => value.as_bool().map(Val::Bool).ok_or_else(|| bad("bool")),
            Shape::Int => value.as_i64().map(Val::Int).ok_or_else(|| bad("int")),
            Shape::Double => value.as_f64().map(Val::Double).ok_or_else(|| bad("float")),
            Shape::String => Ok(Val::String(Cow::Borrowed(text()?))),
            Shape::Bytes => {
                let bytes = STANDARD.decode(text()?);
                let bytes = bytes.map_err(|_| bad("byte formatted string"))?;
                Ok(Val::Bytes(Cow::Owned(bytes)))
            }
            Shape::Duration => clock::long_duration(text()?)
                .map(Val::Duration)
                .ok_or_else(|| bad("duration formatted string")),
            Shape::Date => clock::date(text()?)
                .map(Val::Timestamp)
                .ok_or_else(|| bad("date formatted string")),
            Shape::DateTime => clock::timestamp(text()?)
                .map(Val::Timestamp)
                .ok_or_else(|| bad("date-time formatted string")),
            Shape::List { item, listing } => value
                .as_array()
                .map(|items| Val::Items(items, item, listing))
                .ok_or_else(|| bad("an array for the provided schema with type=array")),
            Shape::Map(_) | Shape::Object(_) => value
                .as_object()
                .map(|map| Val::Data(map, decl))
                .ok_or_else(|| bad("a map for the provided schema with type=object")),
        }
    }

    /// Returns a value without a schema: a number is whole if it is written so.
    fn open(value: &'a Value, decl: &'a Decl) -> Val<'a> {
        static POSITION: Listing = Listing::Position;
        match value {
            Value::Null => Val::Null,
            Value::Bool(value) => Val::Bool(*value),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => Val::Int(whole),
                None => number.as_f64().map_or(Val::Null, Val::Double),
            },
            Value::String(text) => Val::String(Cow::Borrowed(text)),
            Value::Array(items) => Val::Items(items, decl, &POSITION),
            Value::Object(map) => Val::Data(map, decl),
        }
    }
}
