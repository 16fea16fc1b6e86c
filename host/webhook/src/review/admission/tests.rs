use serde_json::json;

use super::*;

fn review(api_version: &str, request: &str) -> String {
    format!(r#"{{"apiVersion":"{api_version}","kind":"AdmissionReview","request":{request}}}"#)
}

#[test]
fn the_request_goes_on_as_it_came() {
    let request = r#"{"uid":"u-1","dryRun":true, "operation":"UPDATE","subResource":"scale","namespace":"n","object":{"a":1.0},"oldObject":null,"options":{"kind":"UpdateOptions"}}"#;
    let read = read(review("admission.k8s.io/v1", request).as_bytes()).unwrap();
    assert_eq!(
        (read.uid.as_str(), read.namespace.as_deref()),
        ("u-1", Some("n"))
    );
    assert_eq!(read.request.get(), request, "byte by byte");
}

#[test]
fn a_cluster_scoped_object_has_no_namespace() {
    for request in [r#"{"uid":"u"}"#, r#"{"uid":"u","namespace":""}"#] {
        let read = read(review("admission.k8s.io/v1", request).as_bytes()).unwrap();
        assert_eq!(read.namespace, None);
    }
}

#[test]
fn another_version_is_refused_by_name() {
    let old = read(review("admission.k8s.io/v1beta1", r#"{"uid":"u"}"#).as_bytes());
    let text = old.unwrap_err().to_string();
    assert!(text.contains("admission.k8s.io/v1beta1"), "{text}");
    assert!(
        text.contains(r#"admissionReviewVersions: ["v1"]"#),
        "{text}"
    );
    let other = br#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u"}}"#;
    let text = read(other).unwrap_err().to_string();
    assert!(text.contains("ConversionReview"), "{text}");
}

#[test]
fn what_is_no_review_is_told() {
    let no_request = review("admission.k8s.io/v1", "null");
    let no_uid = review("admission.k8s.io/v1", "{}");
    let odd_uid = review("admission.k8s.io/v1", r#"{"uid":7}"#);
    let list = review("admission.k8s.io/v1", r#"["u"]"#);
    let long = review(
        "admission.k8s.io/v1",
        &format!(r#"{{"uid":"{}"}}"#, "u".repeat(254)),
    );
    let lines = review("admission.k8s.io/v1", r#"{"uid":"u\nWARN"}"#);
    let namespace = review(
        "admission.k8s.io/v1",
        r#"{"uid":"u","namespace":"n\nWARN"}"#,
    );
    let bodies = [
        "",
        "{}",
        "[]",
        "null",
        "<html>",
        r#"["admission.k8s.io/v1","AdmissionReview",{"uid":"u"}]"#,
        r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview""#,
        &no_request,
        &no_uid,
        &odd_uid,
        &list,
        &long,
        &lines,
        &namespace,
    ];
    for body in bodies {
        let error = read(body.as_bytes()).unwrap_err();
        assert!(matches!(error, BadReview::NotOne { .. }), "{body}: {error}");
    }
    assert!(read(b"{\"apiVersion\":\"\xff\"}").is_err());
}

#[test]
fn a_patch_goes_out_in_base64() {
    let operations = json!([{"op": "add", "path": "/metadata/labels/a", "value": "é"}]);
    let verdict = Verdict {
        allowed: true,
        patch: operations.as_array().cloned(),
        warnings: vec!["old".to_owned()],
        audit_annotations: Map::from_iter([("rule".to_owned(), json!("r1"))]),
        ..Verdict::default()
    };
    let body: Value = serde_json::from_slice(&answer("u", &verdict).unwrap()).unwrap();
    assert_eq!(
        (&body["apiVersion"], &body["kind"]),
        (&json!("admission.k8s.io/v1"), &json!("AdmissionReview"))
    );
    let response = &body["response"];
    assert_eq!(response["uid"], "u");
    assert_eq!(response["patchType"], "JSONPatch");
    let patch = STANDARD
        .decode(response["patch"].as_str().unwrap())
        .unwrap();
    let patch: Value = serde_json::from_slice(&patch).unwrap();
    assert_eq!(patch, operations);
    assert_eq!(response["warnings"], json!(["old"]));
    assert_eq!(response["auditAnnotations"], json!({"rule": "r1"}));
}

#[test]
fn a_refusal_carries_its_status_and_no_patch() {
    let status = json!({"message": "no such registry", "reason": "Forbidden", "code": 403});
    let verdict = Verdict {
        status: Some(status.clone()),
        patch: Some(vec![json!({"op": "remove", "path": "/x"})]),
        ..Verdict::default()
    };
    let body: Value = serde_json::from_slice(&answer("u", &verdict).unwrap()).unwrap();
    assert_eq!(
        body["response"],
        json!({"uid": "u", "allowed": false, "status": status})
    );
}

#[test]
fn a_verdict_that_nobody_could_read_is_a_failure() {
    let odd_status = Verdict {
        status: Some(json!("no")),
        ..Verdict::default()
    };
    let odd_annotation = Verdict {
        allowed: true,
        audit_annotations: Map::from_iter([("a".to_owned(), json!(1))]),
        ..Verdict::default()
    };
    for verdict in [odd_status, odd_annotation] {
        let answered = answer("u", &verdict);
        assert!(
            matches!(answered, Err(Unanswered::Failed(_))),
            "{verdict:?}"
        );
    }
}
