//! Conversion of custom resources between their versions. It must not know the kinds.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};

/// Objects of one kind that are to be of another version.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Batch {
    /// The name of the conversion in the description that this call is for.
    #[serde(skip)]
    pub conversion: String,
    /// The `apiVersion` that all objects are to have: `cloud.waibizi.com/v2`.
    #[serde(rename = "desiredAPIVersion")]
    pub desired: String,
    /// The objects, as they are stored or as a client sent them.
    pub objects: Vec<Value>,
}

/// The answer to a batch, as the contract writes it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Answer {
    ConvertedObjects(Vec<Value>),
    Failed(String),
}

impl Batch {
    /// Reads the contract's JSON of a batch. Also for native tests.
    pub fn of(conversion: &str, request: &str) -> Result<Self> {
        let batch: Self = serde_json::from_str(request)
            .map_err(|error| Error::new(format!("the objects cannot be read: {error}")))?;
        Ok(Self {
            conversion: conversion.into(),
            ..batch
        })
    }

    /// Returns the version that all objects are to have: `v2`.
    pub fn version(&self) -> &str {
        version(&self.desired)
    }

    /// Converts each object in place: `convert` gets the object and the version that it has, and
    /// the object's `apiVersion` is set afterwards. Objects that have the desired version stay as
    /// they are. An error names the object.
    pub fn each(
        self,
        mut convert: impl FnMut(&mut Value, &str) -> Result<()>,
    ) -> Result<Vec<Value>> {
        let Self {
            desired,
            mut objects,
            ..
        } = self;
        for object in &mut objects {
            let from = text(object, "/apiVersion").to_owned();
            if from == desired {
                continue;
            }
            convert(object, version(&from))
                .map_err(|error| named(object, &from, &desired, &error))?;
            if let Value::Object(members) = object {
                members.insert("apiVersion".into(), Value::String(desired.clone()));
            }
        }
        Ok(objects)
    }
}

/// Returns the JSON of the contract for what a policy returned.
pub(crate) fn answer(converted: Result<Vec<Value>>) -> String {
    let answer = match converted {
        Ok(objects) => Answer::ConvertedObjects(objects),
        Err(error) => Answer::Failed(error.to_string()),
    };
    // Only a map with keys other than strings could fail, and there is none.
    serde_json::to_string(&answer).unwrap_or_default()
}

fn version(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    let found = object.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

fn named(object: &Value, from: &str, to: &str, error: &Error) -> Error {
    let kind = text(object, "/kind");
    let name = text(object, "/metadata/name");
    let name = match text(object, "/metadata/namespace") {
        "" => name.to_owned(),
        namespace => format!("{namespace}/{name}"),
    };
    Error::new(format!(
        "{kind} {name} cannot be converted from {from} to {to}: {error}"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn batch(objects: &Value) -> Batch {
        let text = json!({"desiredAPIVersion": "g.io/v2", "objects": objects}).to_string();
        Batch::of("vm", &text).unwrap()
    }

    #[test]
    fn each_object_of_another_version_is_converted_in_order() {
        let objects = json!([
            {"apiVersion": "g.io/v1", "kind": "K", "size": 9_007_199_254_740_993_i64},
            {"apiVersion": "g.io/v2", "kind": "K", "size": 2},
        ]);
        let batch = batch(&objects);
        assert_eq!((batch.version(), batch.conversion.as_str()), ("v2", "vm"));
        let converted = batch.each(|object, from| {
            object["from"] = json!(from);
            Ok(())
        });
        assert_eq!(
            Value::Array(converted.unwrap()),
            json!([
                {"apiVersion": "g.io/v2", "kind": "K", "size": 9_007_199_254_740_993_i64, "from": "v1"},
                {"apiVersion": "g.io/v2", "kind": "K", "size": 2},
            ])
        );
    }

    #[test]
    fn a_failure_names_the_object() {
        let objects = json!([{"apiVersion": "g.io/v1", "kind": "K", "metadata": {"namespace": "a", "name": "b"}}]);
        let failed = batch(&objects).each(|_, _| Err(Error::new("too old")));
        assert_eq!(
            answer(failed),
            r#"{"failed":"K a/b cannot be converted from g.io/v1 to g.io/v2: too old"}"#
        );
        assert_eq!(
            answer(Ok(vec![json!({"a": 1})])),
            r#"{"convertedObjects":[{"a":1}]}"#
        );
    }
}
