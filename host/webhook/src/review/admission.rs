//! AdmissionReview, `admission.k8s.io/v1`.
//!
//! This module owns its wire form. It must not know how it is answered, nor judge a verdict except
//! for what the API server could not read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{BadReview, Form, checked, request_of};
use crate::policy::{Unanswered, Verdict};

const FORM: Form = Form {
    group: "admission.k8s.io",
    kind: "AdmissionReview",
    versions_field: "admissionReviewVersions",
};

/// A review that asks for a verdict.
#[derive(Debug)]
pub(crate) struct Admission {
    pub uid: String,
    /// `None`: the object is cluster-scoped.
    pub namespace: Option<String>,
    /// The review's `request`, as the API server wrote it: dryRun, subresources, old object,
    /// options and all.
    pub request: Box<RawValue>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    namespace: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a Value>,
    /// In base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_annotations: Option<&'a Map<String, Value>>,
}

/// Reads a review.
pub(crate) fn read(body: &[u8]) -> Result<Admission, BadReview> {
    let request = request_of(body, &FORM)?;
    let head: Head = serde_json::from_str(request.get()).map_err(|error| BadReview::NotOne {
        kind: FORM.kind,
        detail: format!("request: {error}"),
    })?;
    let namespace = head.namespace.filter(|namespace| !namespace.is_empty());
    let namespace = namespace.map(|name| checked("namespace", name, &FORM));
    Ok(Admission {
        uid: checked("uid", head.uid, &FORM)?,
        namespace: namespace.transpose()?,
        request,
    })
}

/// Returns the body that answers the review `uid`.
///
/// A verdict that the API server could not read is a failure of the policy, so that the
/// registration's `failurePolicy` decides.
pub(crate) fn answer(uid: &str, verdict: &Verdict) -> Result<Vec<u8>, Unanswered> {
    let failed = |detail: &str| Unanswered::Failed(detail.to_owned());
    if verdict
        .status
        .as_ref()
        .is_some_and(|status| !status.is_object())
    {
        return Err(failed("the verdict's status is no object"));
    }
    if !verdict.audit_annotations.values().all(Value::is_string) {
        return Err(failed("the verdict's auditAnnotations must be texts"));
    }
    let operations = verdict.patch.as_deref().unwrap_or_default();
    // Nothing changes with a refused request.
    let patch = if verdict.allowed && !operations.is_empty() {
        let text = serde_json::to_vec(operations)
            .map_err(|error| failed(&format!("the verdict's patch: {error}")))?;
        Some(STANDARD.encode(text))
    } else {
        None
    };
    let review = Review {
        api_version: "admission.k8s.io/v1",
        kind: FORM.kind,
        response: Response {
            uid,
            allowed: verdict.allowed,
            status: verdict.status.as_ref(),
            patch_type: patch.as_ref().map(|_| "JSONPatch"),
            patch,
            warnings: Some(&*verdict.warnings).filter(|warnings| !warnings.is_empty()),
            audit_annotations: Some(&verdict.audit_annotations)
                .filter(|annotations| !annotations.is_empty()),
        },
    };
    serde_json::to_vec(&review).map_err(|error| failed(&format!("the verdict: {error}")))
}

#[cfg(test)]
mod tests;
