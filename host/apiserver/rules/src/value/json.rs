//! How a value that an expression makes becomes JSON: an object, or the operations of a patch.
//!
//! Follows k8s.io/apiserver `pkg/cel/mutation`. Must not know what is done with the JSON.

#[cfg(test)]
mod tests;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use super::{Made, Val};
use crate::clock;
use crate::types::PATCH;

/// The most bytes that are made: what an expression refers to is copied each time, and costs it
/// nothing.
const MOST: usize = 10 << 20;
/// How many bytes each value counts for, beside its text. It takes more in memory; but an object
/// that is small enough for a request, 3 MiB, must not be too large here.
const VALUE: usize = 6;
/// The most wrong names that are told.
const MOST_WRONG: usize = 100;

/// Returns what an expression made: an object, or a list of operations. An error says what is wrong
/// with it.
pub(crate) fn made(value: &Val<'_>) -> Result<Value, String> {
    let mut writer = Writer { left: MOST };
    match value {
        Val::Made(made) => {
            let written = writer.fields(made)?;
            check_names(value, &made.name)?;
            Ok(written)
        }
        Val::List(items, _) => {
            let operations = items.iter().map(|item| writer.operation(item));
            let operations: Result<Vec<Value>, String> = operations.collect();
            operations.map(Value::Array)
        }
        other => Err(format!("unsupported return type: {}", other.kind())),
    }
}

/// Checks that the types of an object's parts are named by the paths to them: `Object.spec` is the
/// one of the field `spec`. Lists and maps are no part of the path. Comes after the writing, which
/// ends at a limit: parts that are shared again and again are too many to visit.
fn check_names(value: &Val<'_>, root: &str) -> Result<(), String> {
    let mut wrong = Vec::new();
    mismatches(value, root, &mut wrong);
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("type mismatch: {}", wrong.join("\n"))),
    }
}

fn mismatches(value: &Val<'_>, path: &str, wrong: &mut Vec<String>) {
    if wrong.len() >= MOST_WRONG {
        return;
    }
    match value {
        Val::Made(made) => {
            if *made.name != *path {
                wrong.push(format!(
                    "unexpected type name {:?}, expected {path:?}, which matches field name path from root Object type",
                    &*made.name
                ));
            }
            for (field, value) in &made.fields {
                mismatches(value, &format!("{path}.{field}"), wrong);
            }
        }
        Val::List(items, _) => items.iter().for_each(|item| mismatches(item, path, wrong)),
        Val::Map(entries) => {
            let values = entries.iter().map(|(_, value)| value);
            values.for_each(|value| mismatches(value, path, wrong));
        }
        _ => {}
    }
}

struct Writer {
    /// How many bytes may still be made.
    left: usize,
}

impl Writer {
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| format!("the result has more than {MOST} bytes"))?;
        Ok(())
    }

    fn operation(&mut self, value: &Val<'_>) -> Result<Value, String> {
        match value {
            Val::Made(made) if *made.name == *PATCH => {
                let written = self.fields(made)?;
                if let Some(value @ Val::Made(inner)) = made.fields.get("value") {
                    check_names(value, &inner.name)?;
                }
                Ok(written)
            }
            other => Err(format!(
                "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got element of {}",
                other.kind()
            )),
        }
    }

    fn fields(&mut self, made: &Made<'_>) -> Result<Value, String> {
        let mut map = Map::new();
        for (field, value) in &made.fields {
            self.take(field.len())?;
            let value = self.value(value);
            let value = value.map_err(|why| format!("fail to convert field {field:?}: {why}"))?;
            map.insert((*field).to_owned(), value);
        }
        Ok(Value::Object(map))
    }

    fn value(&mut self, value: &Val<'_>) -> Result<Value, String> {
        self.take(VALUE)?;
        Ok(match value {
            Val::Null => Value::Null,
            Val::Bool(value) => Value::Bool(*value),
            Val::Int(number) => Value::from(*number),
            Val::Uint(number) => Value::from(*number),
            Val::Double(number) => {
                let number = Number::from_f64(*number);
                Value::Number(number.ok_or_else(|| "it is no number of JSON".to_owned())?)
            }
            Val::String(text) => self.text(text.clone().into_owned())?,
            Val::Bytes(bytes) => self.text(STANDARD.encode(bytes))?,
            Val::Duration(nanos) => self.text(clock::duration_text(*nanos))?,
            Val::Timestamp(time) => self.text(time.to_string())?,
            Val::Items(items, ..) => {
                self.take(items.iter().map(size).sum())?;
                Value::Array(items.to_vec())
            }
            Val::Data(map, _) => {
                self.take(entries(map))?;
                Value::Object(Map::clone(map))
            }
            Val::List(items, _) => {
                let items = items.iter().map(|item| self.value(item));
                Value::Array(items.collect::<Result<_, String>>()?)
            }
            Val::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries.iter() {
                    let Val::String(key) = key else {
                        return Err(format!("map key is of type {}, not string", key.kind()));
                    };
                    self.take(key.len())?;
                    map.insert(key.clone().into_owned(), self.value(value)?);
                }
                Value::Object(map)
            }
            Val::Made(made) => self.fields(made)?,
            Val::Optional(Some(value)) => self.value(value)?,
            Val::Optional(None) | Val::Kind(_) | Val::Opaque(_) | Val::Asking(_) => {
                return Err(format!("a value of type {} has no JSON form", value.kind()));
            }
        })
    }

    fn text(&mut self, text: String) -> Result<Value, String> {
        self.take(text.len())?;
        Ok(Value::String(text))
    }
}

/// Returns about how many bytes a value has.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + VALUE,
        Value::Array(items) => items.iter().map(size).sum::<usize>() + VALUE,
        Value::Object(map) => entries(map) + VALUE,
        Value::Null | Value::Bool(_) | Value::Number(_) => VALUE,
    }
}

fn entries(map: &Map<String, Value>) -> usize {
    map.iter().map(|(key, value)| key.len() + size(value)).sum()
}
