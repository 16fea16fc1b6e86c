//! One call of an admission webhook.
//!
//! Owns the AdmissionReview, and the check of the answer. Follows k8s.io/apiserver
//! `pkg/admission/plugin/webhook/request`. Must not know which webhooks are called, or in which
//! order.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::review::Review;
use super::rules::Found;
use super::webhook::Webhook;
use crate::meta;
use crate::state::State;
use crate::status::ApiError;

/// The largest answer: a patch that replaces the largest object, in base64, and much more.
const MOST: usize = 16 << 20;

/// The fields of an answer, and the types that Go decodes them to.
const FIELDS: [(&str, &str); 7] = [
    ("uid", "types.UID"),
    ("allowed", "bool"),
    ("status", "v1.Status"),
    ("patch", "[]uint8"),
    ("patchType", "v1.PatchType"),
    ("auditAnnotations", "map[string]string"),
    ("warnings", "[]string"),
];

/// What an answer allows.
#[derive(Debug)]
pub(super) struct Verdict {
    pub patch: Option<json_patch::Patch>,
    pub warnings: Vec<String>,
    /// The refusal, if the request is not allowed.
    pub refusal: Option<ApiError>,
}

/// Why there is no verdict.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The call failed; the webhook's failure policy says what follows.
    Calling(String),
    /// The request is refused in any case.
    Refused(ApiError),
}

/// The object and the older object, in the version that a webhook gets.
#[derive(Clone, Copy)]
pub(super) struct Objects<'a> {
    pub new: &'a Value,
    pub old: &'a Value,
}

/// Asks a webhook.
pub(super) async fn call(
    state: &State,
    webhook: &Webhook,
    mutating: bool,
    (review, found): (&Review, &Found),
    objects: Objects<'_>,
) -> Result<Verdict, Trouble> {
    let name = &webhook.name;
    if review.dry_run && !webhook.allows_dry_run {
        let why = format!("admission webhook {name:?} does not support dry run");
        return Err(Trouble::Refused(ApiError::bad_request(why)));
    }
    let Some(version) = webhook.version else {
        let why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
        let why = format!("could not create admission objects: {why}");
        return Err(Trouble::Calling(why));
    };
    let uid = meta::new_uid();
    let mut request = review.request(&found.resource, &found.kind);
    request["uid"] = json!(uid);
    request["object"] = objects.new.clone();
    request["oldObject"] = objects.old.clone();
    let body = json!({
        "kind": "AdmissionReview",
        "apiVersion": format!("admission.k8s.io/{version}"),
        "request": request,
    });
    let body = body.to_string().into_bytes();
    let failed = |why: String| Trouble::Calling(format!("failed to call webhook: {why}"));
    let query = format!("?timeout={}s", webhook.timeout);
    let url = webhook.reach.shown(&query);
    let address = state.read(|inner| webhook.reach.address(&inner.store, &query));
    let address = address.map_err(|why| failed(format!("Post {url:?}: {why}")))?;
    let limit = Duration::from_secs(webhook.timeout);
    let answer = state.outside().post(&address, body, (MOST, limit)).await;
    let answer = answer.map_err(|why| failed(why.text(&url)))?;
    let answer: Value = serde_json::from_slice(&answer).map_err(|error| {
        failed(format!(
            "couldn't get version/kind; json parse error: {error}"
        ))
    })?;
    verdict(&answer, name, mutating, version, &uid)
}

/// Reads an answer.
fn verdict(
    answer: &Value,
    name: &str,
    mutating: bool,
    version: &str,
    uid: &str,
) -> Result<Verdict, Trouble> {
    let invalid =
        |why: String| Trouble::Calling(format!("received invalid webhook response: {why}"));
    let response = answer.get("response").filter(|r| r.is_object());
    let response = response.ok_or_else(|| invalid("webhook response was absent".to_owned()))?;
    check_types(response)
        .map_err(|why| Trouble::Calling(format!("failed to call webhook: {why}")))?;
    let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
    if version == "v1" {
        let got = text(response, "uid");
        if got != uid {
            return Err(invalid(format!(
                "expected response.uid={uid:?}, got {got:?}"
            )));
        }
        let (of, kind) = (text(answer, "apiVersion"), text(answer, "kind"));
        if (of.as_str(), kind.as_str()) != ("admission.k8s.io/v1", "AdmissionReview") {
            let of = if of.is_empty() { "/" } else { of.as_str() };
            return Err(invalid(format!(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {of}, Kind={kind}"
            )));
        }
    }
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let warnings = warnings.filter_map(Value::as_str).map(str::to_owned);
    let warnings = warnings.collect();
    let patch = text(response, "patch");
    let patch_type = response["patchType"].as_str();
    check_patch(&patch, patch_type, mutating, version).map_err(|why| invalid(why.to_owned()))?;
    if response["allowed"] != true {
        return Ok(Verdict {
            patch: None,
            warnings,
            refusal: Some(refusal(name, &response["status"])),
        });
    }
    let undecodable = |why: String| {
        Trouble::Calling(format!(
            "received undecodable patch in webhook response: {why}"
        ))
    };
    let patch = match patch.is_empty() || !mutating {
        true => None,
        false => {
            let bytes = STANDARD.decode(patch);
            let bytes = bytes.map_err(|error| undecodable(error.to_string()))?;
            let patch: json_patch::Patch =
                serde_json::from_slice(&bytes).map_err(|error| undecodable(error.to_string()))?;
            Some(patch).filter(|patch| !patch.0.is_empty())
        }
    };
    match patch_type {
        Some(other) if version == "v1" && patch.is_some() && other != "JSONPatch" => Err(
            Trouble::Calling(format!("unsupported patch type {other:?}")),
        ),
        _ => Ok(Verdict {
            patch,
            warnings,
            refusal: None,
        }),
    }
}

/// Checks the types of an answer's fields. An answer with a field of another type is no answer: it
/// must not count as one that is left out, for instance a patch that is a list and not a text.
fn check_types(response: &Value) -> Result<(), String> {
    let is_text = |value: &Value| value.is_string() || value.is_null();
    for (field, wanted) in FIELDS {
        let fits = match (field, &response[field]) {
            (_, Value::Null)
            | ("allowed", Value::Bool(_))
            | ("uid" | "patch" | "patchType", Value::String(_))
            | ("status", Value::Object(_)) => true,
            ("auditAnnotations", Value::Object(map)) => map.values().all(is_text),
            ("warnings", Value::Array(list)) => list.iter().all(is_text),
            _ => false,
        };
        if !fits {
            return Err(format!(
                "json: cannot unmarshal response.{field} into Go value of type {wanted}"
            ));
        }
    }
    Ok(())
}

fn check_patch(
    patch: &str,
    kind: Option<&str>,
    mutating: bool,
    version: &str,
) -> Result<(), &'static str> {
    if version != "v1" {
        return Ok(());
    }
    match (mutating, patch.is_empty(), kind) {
        (true, false, None) => Err("webhook returned response.patch but not response.patchType"),
        (true, true, Some(_)) => Err("webhook returned response.patchType but not response.patch"),
        (true, _, Some("")) => Err("webhook returned invalid response.patchType of \"\""),
        (false, false, _) => Err("validating webhook may not return response.patch"),
        (false, true, Some(_)) => Err("validating webhook may not return response.patchType"),
        _ => Ok(()),
    }
}

/// Returns the refusal of a webhook, with its code, reason and message.
fn refusal(name: &str, status: &Value) -> ApiError {
    let text = |field: &str| status[field].as_str().filter(|text| !text.is_empty());
    let denied = format!("admission webhook {name:?} denied the request");
    let message = match text("message").or_else(|| text("reason")) {
        Some(why) => format!("{denied}: {why}"),
        None => format!("{denied} without explanation"),
    };
    let code = status["code"]
        .as_u64()
        .and_then(|code| u16::try_from(code).ok());
    let mut error = ApiError::new(code.filter(|code| *code >= 400).unwrap_or(400), "", message);
    error.reason = text("reason").unwrap_or_default().to_owned().into();
    error.details = status.get("details").filter(|d| d.is_object()).cloned();
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(response: Value, mutating: bool) -> Result<Verdict, String> {
        let mut response = response;
        response["uid"] = json!("u");
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
        });
        verdict(&review, "w.io", mutating, "v1", "u").map_err(|trouble| match trouble {
            Trouble::Calling(why) => why,
            Trouble::Refused(error) => error.message,
        })
    }

    #[test]
    fn refusals_have_the_code_and_the_message_of_the_webhook() {
        let refused = |status: Value| {
            let response = json!({ "allowed": false, "status": status });
            answer(response, false).unwrap().refusal.unwrap()
        };
        let error = refused(json!({ "code": 403, "message": "no", "reason": "Forbidden" }));
        assert_eq!((error.code, &*error.reason), (403, "Forbidden"));
        let denied = "admission webhook \"w.io\" denied the request";
        assert_eq!(error.message, format!("{denied}: no"));
        let error = refused(json!({ "code": 200 }));
        assert_eq!(error.code, 400);
        assert_eq!(error.message, format!("{denied} without explanation"));
    }

    #[test]
    fn patches_come_from_mutating_webhooks_only() {
        let patch = STANDARD.encode(r#"[{"op":"add","path":"/a","value":1}]"#);
        let response = json!({ "allowed": true, "patch": patch, "patchType": "JSONPatch" });
        let good = answer(response.clone(), true).unwrap();
        assert_eq!(good.patch.map(|patch| patch.0.len()), Some(1));
        let error = answer(response, false).unwrap_err();
        assert!(error.ends_with("validating webhook may not return response.patch"));
        let bad = json!({ "allowed": true, "patch": "bm8=", "patchType": "JSONPatch" });
        let error = answer(bad, true).unwrap_err();
        assert!(error.starts_with("received undecodable patch in webhook response: "));
    }

    #[test]
    fn a_field_of_another_type_is_no_answer() {
        let operation = json!({ "op": "add", "path": "/a", "value": 1 });
        for response in [
            json!({ "allowed": true, "patch": [operation] }),
            json!({ "allowed": "true" }),
            json!({ "allowed": true, "warnings": "one" }),
        ] {
            let error = answer(response, true).unwrap_err();
            assert!(
                error.starts_with("failed to call webhook: json: "),
                "{error}"
            );
        }
        let sparse = json!({ "allowed": true, "patch": null, "warnings": null });
        assert!(answer(sparse, true).is_ok());
    }

    #[test]
    fn an_answer_without_a_verdict_allows_nothing() {
        let verdict = |review: Value| verdict(&review, "w.io", false, "v1", "u");
        assert!(verdict(json!({})).is_err());
        let other = json!({ "response": { "uid": "v", "allowed": true } });
        assert!(verdict(other).is_err());
        assert!(answer(json!({}), false).unwrap().refusal.is_some());
    }
}
