//! Asks a webhook, and asks it again about what it made of the object.

use anyhow::{Result, bail};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};
use vmhost_runtime::review::question::Question;
use vmhost_runtime::review::verdict;

use super::super::form::{Expectation, settle};
use super::super::run::Ran;
use super::ask::{Asking, failed};

/// The uid of a review whose file has none.
const UID: &str = "00000000-0000-0000-0000-000000000001";

/// A webhook's answer.
struct Answer {
    expectation: Expectation,
    /// The object after the patch. `None` if there is no patch. An error says why it does not fit.
    object: Result<Option<Value>, String>,
}

/// Returns a request as an API server sends it: what the file leaves out is told by its objects.
/// The file may hold a whole AdmissionReview.
pub(super) fn completed(file: Value) -> Result<Map<String, Value>> {
    let Value::Object(mut request) = file else {
        bail!("not an object");
    };
    if request
        .get("kind")
        .is_some_and(|kind| kind == "AdmissionReview")
    {
        return match request.remove("request") {
            Some(request) => completed(request),
            None => bail!("request is missing"),
        };
    }
    let there = |name: &str| request.get(name).is_some_and(|value| !value.is_null());
    let operation = match (there("object"), there("oldObject")) {
        (true, true) => "UPDATE",
        (false, true) => "DELETE",
        (_, false) => "CREATE",
    };
    let subject = if there("object") {
        "object"
    } else {
        "oldObject"
    };
    let subject = request.get(subject).cloned().unwrap_or_default();
    let api_version = subject["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = subject["kind"].as_str();
    let kind = kind.map(|kind| json!({ "group": group, "version": version, "kind": kind }));
    let kind = kind.unwrap_or_default();
    let metadata = &subject["metadata"];
    for (name, value) in [
        ("uid", json!(UID)),
        ("kind", kind),
        ("name", metadata["name"].clone()),
        ("namespace", metadata["namespace"].clone()),
        ("operation", json!(operation)),
        ("userInfo", json!({})),
        ("dryRun", json!(false)),
    ] {
        if !value.is_null() && !request.contains_key(name) {
            request.insert(name.to_owned(), value);
        }
    }
    Ok(request)
}

/// Asks the webhook, and again about its own result.
pub(super) async fn run(asking: &Asking<'_>, request: &Map<String, Value>) -> Ran {
    asking.lines.take();
    let answer = ask(asking, request).await;
    let logs = Some(asking.lines.take());
    let (mut actual, problem) = match answer {
        Err(error) => (failed(error), None),
        Ok(Answer {
            expectation,
            object,
        }) => {
            let problem = match object {
                Ok(Some(object)) => again(asking, request, object).await,
                Ok(None) => None,
                Err(problem) => Some(problem),
            };
            (expectation, problem)
        }
    };
    actual.logs = logs;
    asking.ran(actual, problem)
}

async fn ask(asking: &Asking<'_>, request: &Map<String, Value>) -> Result<Answer, String> {
    let text = |name: &str| request.get(name).and_then(Value::as_str);
    let raw = to_raw_value(request).map_err(|error| error.to_string())?;
    let uid = text("uid").unwrap_or(UID);
    let question = Question::admission(&asking.name, uid, text("namespace"), &raw);
    let outcome = asking.call(&question).await;
    let outcome = outcome.map_err(|error| error.to_string())?;
    let verdict = verdict::admission(asking.plugin.description(), &asking.name, outcome);
    let verdict = verdict.map_err(|error| error.to_string())?;
    let object = match (&verdict.patch, request.get("object")) {
        (Some(patch), Some(object)) if verdict.allowed => patched(object, patch).map(Some),
        (Some(_), None) if verdict.allowed => {
            Err("the verdict has a patch, and the request has no object".to_owned())
        }
        _ => Ok(None),
    };
    let annotations = Value::Object(verdict.audit_annotations);
    let expectation = Expectation {
        allowed: Some(verdict.allowed),
        status: verdict.status,
        patch: verdict.patch,
        warnings: Some(verdict.warnings),
        audit_annotations: Some(annotations),
        ..Expectation::default()
    };
    Ok(Answer {
        expectation: expectation.settle()?,
        object,
    })
}

/// Asks about an object that the webhook itself made. Returns what is wrong with the answer.
async fn again(
    asking: &Asking<'_>,
    request: &Map<String, Value>,
    mut made: Value,
) -> Option<String> {
    let mut request = request.clone();
    request.insert("object".to_owned(), made.clone());
    let answer = match ask(asking, &request).await {
        Ok(answer) => answer,
        Err(error) => return Some(format!("asked about its own result, it fails: {error}")),
    };
    if answer.expectation.allowed != Some(true) {
        return Some("asked about its own result, it refuses it".to_owned());
    }
    let mut object = match answer.object {
        Ok(Some(object)) => object,
        Ok(None) => return None,
        Err(problem) => return Some(problem),
    };
    settle(&mut made);
    settle(&mut object);
    let patch = Value::Array(answer.expectation.patch.unwrap_or_default());
    (object != made).then(|| format!("asked about its own result, it changes it again: {patch}"))
}

fn patched(object: &Value, patch: &[Value]) -> Result<Value, String> {
    let mut object = object.clone();
    let operations: json_patch::Patch = serde_json::from_value(Value::Array(patch.to_vec()))
        .map_err(|error| format!("the patch is no list of JSON patch operations: {error}"))?;
    json_patch::patch(&mut object, &operations)
        .map_err(|error| format!("the patch does not fit the object: {error}"))?;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(file: Value) -> Value {
        Value::Object(completed(file).unwrap())
    }

    #[test]
    fn what_a_file_leaves_out_is_told_by_its_objects() {
        let pod =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}});
        let created = request(json!({"object": pod}));
        assert_eq!(created["operation"], "CREATE");
        assert_eq!(
            created["kind"],
            json!({"group": "", "version": "v1", "kind": "Pod"})
        );
        assert_eq!(
            (&created["name"], &created["namespace"]),
            (&json!("a"), &json!("b"))
        );
        assert_eq!(created["uid"], UID);
        let deleted = request(json!({"oldObject": pod, "object": null, "uid": "u"}));
        assert_eq!(
            (&deleted["operation"], &deleted["uid"]),
            (&json!("DELETE"), &json!("u"))
        );
        let whole =
            json!({"kind": "AdmissionReview", "request": {"object": pod, "oldObject": pod}});
        assert_eq!(request(whole)["operation"], "UPDATE");
        let bare = request(json!({"operation": "CONNECT"}));
        assert_eq!(
            (&bare["operation"], &bare["kind"]),
            (&json!("CONNECT"), &Value::Null)
        );
    }

    #[test]
    fn a_file_that_is_no_review_is_refused() {
        for file in [json!([]), json!({"kind": "AdmissionReview"})] {
            assert!(completed(file).is_err());
        }
    }

    #[test]
    fn a_patch_that_does_not_fit_is_told() {
        let object = json!({"a": [1]});
        let add = [json!({"op": "add", "path": "/a/0", "value": 0})];
        assert_eq!(patched(&object, &add).unwrap(), json!({"a": [0, 1]}));
        let remove = [json!({"op": "remove", "path": "/b"})];
        let error = patched(&object, &remove).unwrap_err();
        assert!(error.starts_with("the patch does not fit"), "{error}");
        let error = patched(&object, &[json!({"op": "lift"})]).unwrap_err();
        assert!(error.starts_with("the patch is no list"), "{error}");
    }
}
