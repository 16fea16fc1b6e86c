use serde_json::{Value, json};

use super::*;

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

fn parsed(text: &RawValue) -> Value {
    serde_json::from_str(text.get()).unwrap()
}

fn original() -> Value {
    json!({
        "apiVersion": "g/v1", "kind": "Vm", "spec": {"a": 1},
        "metadata": {"name": "vm", "namespace": "n", "uid": "u", "generation": 3,
            "labels": {"old": "x"}, "managedFields": [{}]},
    })
}

#[test]
fn a_review_is_read() {
    let body = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "u", "desiredAPIVersion": "g/v2", "objects": [{"a": 1}, {"a": 2}]}});
    let review = read(body.to_string().as_bytes()).unwrap();
    assert_eq!((&*review.uid, &*review.desired), ("u", "g/v2"));
    let objects: Vec<_> = review.objects.iter().map(|object| object.get()).collect();
    assert_eq!(objects, [r#"{"a":1}"#, r#"{"a":2}"#]);

    let mut none = body.clone();
    none["request"]["desiredAPIVersion"] = Value::Null;
    assert!(read(none.to_string().as_bytes()).is_err());
    for nothing in [json!([]), Value::Null] {
        let mut empty = body.clone();
        empty["request"]["objects"] = nothing;
        let text = read(empty.to_string().as_bytes()).unwrap_err().to_string();
        assert!(text.contains("request.objects"), "{text}");
    }
    let mut old = body;
    old["apiVersion"] = json!("apiextensions.k8s.io/v1beta1");
    let text = read(old.to_string().as_bytes()).unwrap_err().to_string();
    assert!(text.contains("apiextensions.k8s.io/v1beta1"), "{text}");
}

#[test]
fn answers_are_as_the_api_server_reads_them() {
    let body = answer("u", &[raw(&json!({"a": 1}))]).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        body,
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "response": {"uid": "u", "convertedObjects": [{"a": 1}], "result": {"status": "Success"}}})
    );
    let body: Value = serde_json::from_slice(&refusal("u", "why").unwrap()).unwrap();
    assert_eq!(
        body["response"]["result"],
        json!({"status": "Failed", "message": "why"})
    );
}

#[test]
fn a_long_list_is_split_in_order() {
    let object = |at: usize| raw(&json!({"at": at, "padding": "x".repeat(2048)}));
    let all: Vec<_> = (0..20_000).map(object).collect();
    let expected: Vec<String> = all.iter().map(|object| object.get().to_owned()).collect();
    let batches = batches(all);
    assert!(batches.len() > 39, "{}", batches.len());
    for batch in &batches {
        let bytes: usize = batch.iter().map(|object| object.get().len()).sum();
        assert!(bytes <= BATCH_BYTES);
    }
    let again: Vec<String> = batches
        .iter()
        .flatten()
        .map(|object| object.get().to_owned())
        .collect();
    assert!(again == expected, "same order and count");
}

#[test]
fn a_large_object_is_a_batch_of_its_own() {
    let small = || raw(&json!("s"));
    let large = raw(&json!("x".repeat(BATCH_BYTES)));
    let counts: Vec<usize> = batches(vec![small(), small(), large, small()])
        .iter()
        .map(Vec::len)
        .collect();
    assert_eq!(counts, [2, 1, 1]);
    assert!(batches(Vec::new()).is_empty());
}

#[test]
fn metadata_stays_but_labels_and_annotations() {
    let from = raw(&original());
    let wanted = json!({
        "apiVersion": "g/v2", "kind": "Vm", "spec": {"b": 1},
        "metadata": {"name": "vm", "namespace": "n", "uid": "u", "generation": 3,
            "labels": {"new": "y"}, "annotations": {"z": "1"}, "managedFields": [{}]},
    });
    // What a policy leaves out, adds or changes does not count.
    for metadata in [
        json!({"labels": {"new": "y"}, "annotations": {"z": "1"}}),
        json!({"labels": {"new": "y"}, "annotations": {"z": "1"}, "name": "vm", "uid": "u",
            "namespace": null, "generation": 9, "finalizers": ["f"]}),
    ] {
        let to = raw(
            &json!({"apiVersion": "g/v2", "kind": "Vm", "spec": {"b": 1}, "metadata": metadata}),
        );
        let done = restore(&from, &to, "g/v2").unwrap();
        assert_eq!(parsed(&done), wanted);
    }
}

#[test]
fn another_object_is_not_an_answer() {
    let from = raw(&original());
    let good = json!({"apiVersion": "g/v2", "kind": "Vm", "metadata": {"name": "vm"}});
    assert!(restore(&from, &raw(&good), "g/v2").is_ok());
    let changes = [
        ("/apiVersion", json!("g/v1"), "apiVersion"),
        ("/kind", json!("Other"), "kind"),
        ("/metadata/name", json!("other"), "metadata.name"),
        ("/metadata", json!({"namespace": "other"}), "namespace"),
        ("/metadata", json!({"uid": "other"}), "metadata.uid"),
        ("/metadata", json!([]), "the converted object"),
    ];
    for (pointer, value, words) in changes {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        let text = restore(&from, &raw(&bad), "g/v2").unwrap_err();
        assert!(text.contains(words), "{pointer}: {text}");
    }
    assert!(restore(&from, &raw(&json!(null)), "g/v2").is_err());
}
