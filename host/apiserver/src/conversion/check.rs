//! The answer to a ConversionReview.
//!
//! Owns what a webhook must leave as it is, and the texts about an answer that does not. Must not
//! know where an answer comes from.

use serde_json::{Map, Value};

use crate::meta;
use crate::operations::nests;

/// Returns the kind of an object as errors show it: `cloud.waibizi.com/v1, Kind=VirtualMachine`.
pub(super) fn kind_of(object: &Value) -> String {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    format!("{}, Kind={}", text("apiVersion"), text("kind"))
}

/// Returns the objects of an answer; an error says what is wrong with it.
pub(super) fn objects(answer: &[u8], version: &str, uid: &str) -> Result<Vec<Value>, String> {
    let mut review: Value = serde_json::from_slice(answer)
        .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))?;
    let group_version = format!("apiextensions.k8s.io/{version}");
    let is_review = review["apiVersion"] == group_version && review["kind"] == "ConversionReview";
    if !is_review && version == "v1" {
        let got = kind_of(&review);
        return Err(format!(
            "expected webhook response of {group_version}, Kind=ConversionReview, got {got}"
        ));
    }
    let Some(response) = review.get_mut("response").filter(|of| !of.is_null()) else {
        return Err("no response provided".to_owned());
    };
    let got = response["uid"].as_str().unwrap_or_default();
    if got != uid && version == "v1" {
        return Err(format!("expected response.uid={uid:?}, got {got:?}"));
    }
    let result = &response["result"];
    let status = result["status"].as_str().unwrap_or_default();
    if status != "Success" {
        return Err(match result["message"].as_str() {
            Some(message) if !message.is_empty() => message.to_owned(),
            _ => format!("response.result.status was '{status}', not 'Success'"),
        });
    }
    match response["convertedObjects"].take() {
        Value::Array(objects) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// Returns a converted object with the metadata of the original, except for labels and
/// annotations.
pub(super) fn restored(mut made: Value, original: &Value, desired: &str) -> Result<Value, String> {
    let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
    let version = text(&made, "apiVersion");
    if version != desired {
        return Err(format!(
            "invalid groupVersion (expected {desired}, received {version})"
        ));
    }
    let (kind, was) = (text(&made, "kind"), text(original, "kind"));
    if kind != was {
        return Err(format!("invalid kind (expected {was}, received {kind})"));
    }
    for (field, shown) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (was, is) = (meta::text(original, field), meta::text(&made, field));
        if was != is {
            return Err(format!("must have the same {shown}: {was} != {is}"));
        }
    }
    if !nests(&made, 0) {
        return Err("exceeded max depth".to_owned());
    }
    let Some(metadata) = made.get("metadata") else {
        return Err("missing metadata in converted object".to_owned());
    };
    let mut kept = original["metadata"].clone();
    for field in ["labels", "annotations"] {
        let value = match metadata.get(field) {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) => Some(texts(field, map)?),
            Some(_) => return Err(format!("invalid metadata.{field} in converted object")),
        };
        if let Some(kept) = kept.as_object_mut() {
            match value {
                Some(value) => kept.insert(field.to_owned(), value),
                None => kept.remove(field),
            };
        }
    }
    made["metadata"] = kept;
    Ok(made)
}

fn texts(field: &str, map: &Map<String, Value>) -> Result<Value, String> {
    match map.iter().find(|(_, value)| !value.is_string()) {
        Some((key, _)) => Err(format!(
            "metadata.{field}[{key}] must be a string in converted object"
        )),
        None => Ok(Value::Object(map.clone())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_webhook_changes_labels_and_annotations_only() {
        let original = json!({
            "apiVersion": "g.io/v1", "kind": "K",
            "metadata": { "name": "a", "uid": "u", "resourceVersion": "7", "labels": { "a": "1" }, "annotations": { "b": "2" } },
        });
        let made = json!({
            "apiVersion": "g.io/v2", "kind": "K", "spec": { "x": 1 },
            "metadata": { "name": "a", "uid": "u", "labels": { "c": "3" }, "finalizers": ["no/no"] },
        });
        let restored = |made: &Value| restored(made.clone(), &original, "g.io/v2");
        assert_eq!(
            restored(&made).unwrap()["metadata"],
            json!({ "name": "a", "uid": "u", "resourceVersion": "7", "labels": { "c": "3" } })
        );
        for (change, part) in [
            (
                json!({ "metadata": { "name": "b" } }),
                "must have the same name: a != b",
            ),
            (
                json!({ "apiVersion": "g.io/v3" }),
                "expected g.io/v2, received g.io/v3",
            ),
            (
                json!({ "kind": "L" }),
                "invalid kind (expected K, received L)",
            ),
            (
                json!({ "metadata": { "labels": { "c": 3 } } }),
                "metadata.labels[c] must be a string",
            ),
        ] {
            let mut wrong = made.clone();
            json_patch::merge(&mut wrong, &change);
            let error = restored(&wrong).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn an_answer_must_be_a_review_with_the_same_uid() {
        let answer = |review: Value| objects(review.to_string().as_bytes(), "v1", "u");
        let good = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "response": { "uid": "u", "result": { "status": "Success" }, "convertedObjects": [{}] },
        });
        assert_eq!(answer(good.clone()), Ok(vec![json!({})]));
        for (change, error) in [
            (
                json!({ "response": { "uid": "v" } }),
                "expected response.uid=\"u\", got \"v\"",
            ),
            (
                json!({ "response": { "result": { "status": "Failed", "message": "why" } } }),
                "why",
            ),
            (json!({ "response": null }), "no response provided"),
        ] {
            let mut wrong = good.clone();
            json_patch::merge(&mut wrong, &change);
            assert_eq!(answer(wrong), Err(error.to_owned()));
        }
        assert!(objects(b"no", "v1", "u").is_err());
        // The older version says nothing of its own form.
        for text in ["[]", "1", "null", "{}"] {
            let none = objects(text.as_bytes(), "v1beta1", "u");
            assert_eq!(none, Err("no response provided".to_owned()));
        }
    }
}
