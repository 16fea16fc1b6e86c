//! How a value that an expression makes becomes JSON: an object, or the operations of a patch.
//!
//! Follows k8s.io/apiserver `pkg/cel/mutation`. Must not know what is done with the JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use super::{Made, Val};
use crate::clock;
use crate::types::PATCH;

/// The most bytes that are made: what an expression refers to is copied each time, and costs it
/// nothing.
const MOST: usize = 10 << 20;

/// Returns what an expression made: an object, or a list of operations. An error says what is wrong
/// with it.
pub(crate) fn made(value: &Val<'_>) -> Result<Value, String> {
    let mut writer = Writer { left: MOST };
    match value {
        Val::Made(made) => {
            check_names(value, &made.name)?;
            writer.fields(made)
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
/// one of the field `spec`. Lists and maps are no part of the path.
fn check_names(value: &Val<'_>, root: &str) -> Result<(), String> {
    let mut wrong = Vec::new();
    mismatches(value, root, &mut wrong);
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("type mismatch: {}", wrong.join("\n"))),
    }
}

fn mismatches(value: &Val<'_>, path: &str, wrong: &mut Vec<String>) {
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
                if let Some(value @ Val::Made(inner)) = made.fields.get("value") {
                    check_names(value, &inner.name)?;
                }
                self.fields(made)
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
        self.take(1)?;
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
                Value::Object((*map).clone())
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
            Val::Optional(None) | Val::Kind(_) | Val::Opaque(_) => {
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
        Value::String(text) => text.len() + 1,
        Value::Array(items) => items.iter().map(size).sum::<usize>() + 1,
        Value::Object(map) => entries(map) + 1,
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

fn entries(map: &Map<String, Value>) -> usize {
    map.iter().map(|(key, value)| key.len() + size(value)).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{Scope, Unevaluated, Wanted};

    use super::*;

    fn made(source: &str, wanted: Wanted) -> Result<Value, String> {
        let scope = Scope::new(&["object", "params"]);
        let object = json!({
            "metadata": { "name": "a", "labels": { "x/y~z": "1" } },
            "spec": { "containers": [{ "name": "c", "args": ["1", "2"] }], "replicas": 3 },
        });
        let expression = scope.compile(source, wanted)?;
        let values = [&object, &Value::Null];
        let made = scope.make(&expression, &values, &mut 10_000_000);
        made.map_err(|why| match why {
            Unevaluated::OverBudget => "over budget".to_owned(),
            Unevaluated::Failed(why) | Unevaluated::Unfit(why) => why,
        })
    }

    #[test]
    fn objects_become_json() {
        for (source, expected) in [
            ("Object{}", json!({})),
            (
                "Object{spec: Object.spec{replicas: object.spec.replicas + 1, share: 0.5, on: true}}",
                json!({ "spec": { "replicas": 4, "share": 0.5, "on": true } }),
            ),
            (
                "Object{metadata: Object.metadata{annotations: {'k': 'b', object.metadata.name: 'c'}}}",
                json!({ "metadata": { "annotations": { "k": "b", "a": "c" } } }),
            ),
            (
                "Object{?kind: object.?kind, ?spec: optional.of(object.spec.containers)}",
                json!({ "spec": [{ "name": "c", "args": ["1", "2"] }] }),
            ),
            (
                "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, image: 'i'})}}",
                json!({ "spec": { "containers": [{ "name": "c", "image": "i" }] } }),
            ),
            (
                "has(object.spec.none) ? Object{} : Object{at: timestamp('2024-01-01T00:00:00Z'), bytes: b'a'}",
                json!({ "at": "2024-01-01T00:00:00Z", "bytes": "YQ==" }),
            ),
        ] {
            assert_eq!(made(source, Wanted::Object), Ok(expected), "{source}");
        }
    }

    #[test]
    fn patches_become_operations() {
        let source = "[
            JSONPatch{op: 'test', path: '/spec/replicas', value: 3},
            JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('x/y~z'), value: '2'},
            JSONPatch{op: 'move', from: '/a', path: '/b'},
        ] + (params == null ? [] : [JSONPatch{op: 'remove', path: '/c'}])
          + [JSONPatch{op: 'add', path: '/spec/x', value: Object.spec.x{a: Object.spec.x.a{b: 1}}}]";
        let expected = json!([
            { "op": "test", "path": "/spec/replicas", "value": 3 },
            { "op": "add", "path": "/metadata/labels/x~1y~0z", "value": "2" },
            { "op": "move", "from": "/a", "path": "/b" },
            { "op": "add", "path": "/spec/x", "value": { "a": { "b": 1 } } },
        ]);
        assert_eq!(made(source, Wanted::Patch), Ok(expected));
    }

    #[test]
    fn wrong_names_and_types_are_told() {
        let name = |name: &str, expected: &str| {
            format!(
                "type mismatch: unexpected type name {name:?}, expected {expected:?}, which matches field name path from root Object type"
            )
        };
        for (source, wanted, error) in [
            (
                "Object{spec: Object.wrong{}}",
                Wanted::Object,
                name("Object.wrong", "Object.spec"),
            ),
            (
                "Object{spec: Object.spec{list: [Object.spec{}]}}",
                Wanted::Object,
                name("Object.spec", "Object.spec.list"),
            ),
            (
                "[JSONPatch{op: 'add', path: '/a', value: Object.a{b: Object.b{}}}]",
                Wanted::Patch,
                name("Object.b", "Object.a.b"),
            ),
            (
                "{'spec': 1}",
                Wanted::Object,
                "must evaluate to Object but got map(string, int)".to_owned(),
            ),
            (
                "Object.spec{}",
                Wanted::Object,
                "must evaluate to Object but got Object.spec".to_owned(),
            ),
            (
                "[]",
                Wanted::Patch,
                "must evaluate to list(JSONPatch) but got list(dyn)".to_owned(),
            ),
            (
                "[JSONPatch{op: object.spec.replicas, path: '/a'}]",
                Wanted::Patch,
                "unexpected type int for JSONPatchType 'op' field".to_owned(),
            ),
        ] {
            assert_eq!(made(source, wanted), Err(error), "{source}");
        }
        for (source, error) in [
            (
                "[JSONPatch{op: 1, path: '/a'}]",
                "expected type of field 'op' is 'string' but provided type is 'int'",
            ),
            ("[JSONPatch{op: 'add', to: '/a'}]", "undefined field 'to'"),
            ("[Patch{}]", "undeclared reference to 'Patch'"),
            ("[Objects{}]", "undeclared reference to 'Objects'"),
        ] {
            let why = made(source, Wanted::Patch).unwrap_err();
            assert!(why.contains(error), "{source}: {why}");
        }
    }

    #[test]
    fn only_mutations_make_objects() {
        let scope = Scope::new(&["object"]);
        for (source, name) in [
            ("Object{} == Object{}", "Object"),
            ("jsonpatch.escapeKey('a') == 'a'", "jsonpatch"),
        ] {
            let why = scope.compile(source, Wanted::Bool).unwrap_err();
            let undeclared = format!("undeclared reference to '{name}'");
            assert!(why.contains(&undeclared), "{why}");
        }
    }

    #[test]
    fn copies_stay_within_a_limit() {
        let text = "a".repeat(50_000);
        let object = json!({ "text": text });
        let scope = Scope::new(&["object"]);
        let source = "Object{list: lists.range(1000).map(i, object)}";
        let expression = scope.compile(source, Wanted::Object).unwrap();
        let made = scope.make(&expression, &[&object], &mut 10_000_000);
        let Err(Unevaluated::Unfit(why)) = made else {
            panic!("the copies are made");
        };
        assert!(why.contains("the result has more than"), "{why}");
    }
}
