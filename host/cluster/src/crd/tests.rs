use std::sync::Arc;

use super::*;
use crate::fake::{Answer, Fake, hang, json, status};
use parking_lot::Mutex;
use serde_json::json as value;

const NAME: &str = "databases.example.com";
const MANAGER: &str = "vmhost/database";

fn definition(versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions.iter().map(|name| value!({"name": name})).collect();
    value!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, "labels": {"a": "b"}, "uid": "u", "resourceVersion": "1", "managedFields": [], "creationTimestamp": null},
        "spec": {"versions": versions},
        "status": {"storedVersions": []},
    })
}

fn stored(version: u64, plugin: &str, stored: &[&str]) -> String {
    value!({
        "metadata": {"name": NAME, "uid": "u", "resourceVersion": version.to_string(), "annotations": {PLUGIN_VERSION: plugin}},
        "status": {"storedVersions": stored},
    })
    .to_string()
}

fn with_conditions(conditions: &[(&str, &str)]) -> Answer {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, status)| value!({"type": kind, "status": status, "reason": "R", "message": "m"}))
        .collect();
    json(
        200,
        &value!({"status": {"conditions": conditions}}).to_string(),
    )
}

/// Installs against these answers, in order: to the read, then to the apply.
async fn install(answers: Vec<Answer>) -> (Result<Installed, CrdError>, Fake) {
    let fake = Fake::script(answers);
    let done = fake
        .connection()
        .definitions()
        .install(&definition(&["v1", "v2"]), MANAGER, "1.2.0")
        .await;
    (done, fake)
}

#[tokio::test]
async fn it_is_created_updated_or_left_alone() {
    let absent = || status(404, "NotFound", "no");
    let (done, fake) = install(vec![absent(), json(201, &stored(5, "1.2.0", &[]))]).await;
    assert_eq!(done.unwrap(), Installed::Created);
    let sent = &fake.seen()[1];
    assert_eq!(sent.query, "fieldManager=vmhost%2Fdatabase&force=false");
    let body: Value = serde_json::from_str(&sent.body).unwrap();
    assert_eq!(
        body["metadata"],
        value!({"name": NAME, "labels": {"a": "b"}, "annotations": {PLUGIN_VERSION: "1.2.0"}}),
        "what the server owns is not sent"
    );
    assert!(body.get("status").is_none());

    for (before, after, expected) in [(7, 7, Installed::Unchanged), (7, 8, Installed::Updated)] {
        let present = json(200, &stored(before, "1.2.0", &["v1"]));
        let (done, fake) =
            install(vec![present, json(200, &stored(after, "1.2.0", &["v1"]))]).await;
        assert_eq!(done.unwrap(), expected);
        let body: Value = serde_json::from_str(&fake.seen()[1].body).unwrap();
        assert_eq!(body["metadata"]["resourceVersion"], "7", "guarded");
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_changes_meanwhile_is_looked_at_again() {
    let (done, fake) = install(vec![
        json(200, &stored(7, "1.2.0", &["v1"])),
        status(409, "Conflict", "the object has been modified"),
        json(200, &stored(8, "1.3.0", &["v1"])),
    ])
    .await;
    assert!(matches!(done, Err(CrdError::Newer { .. })), "{done:?}");
    assert_eq!(fake.seen().len(), 3);
}

#[tokio::test]
async fn downgrades_are_refused_before_anything_is_sent() {
    for (present, words) in [
        (
            stored(7, "v1.10.0", &["v1"]),
            "version v1.10.0 of the plugin",
        ),
        (
            stored(7, "1.2.0", &["v1alpha1", "v1"]),
            "drops version v1alpha1",
        ),
        (
            value!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}).to_string(),
            "is being deleted",
        ),
    ] {
        let (done, fake) = install(vec![json(200, &present)]).await;
        let text = done.unwrap_err().to_string();
        assert!(text.contains(words) && text.contains(NAME), "{text}");
        assert_eq!(fake.seen().len(), 1);
    }
    for plugin in ["1.1.9", "1.2.0-rc.1", "", "some words"] {
        let present = json(200, &stored(7, plugin, &["v1"]));
        let (done, _) = install(vec![present, json(200, &stored(8, "1.2.0", &["v1"]))]).await;
        assert_eq!(done.unwrap(), Installed::Updated, "{plugin}");
    }
}

#[tokio::test]
async fn fields_of_others_are_named_and_not_taken() {
    let conflict = value!({"kind": "Status", "code": 409, "reason": "Conflict", "message": "Apply failed with 1 conflict", "details": {"causes": [
        {"reason": "FieldManagerConflict", "message": "conflict with \"kubectl\" using apiextensions.k8s.io/v1", "field": ".spec.scope"}]}});
    let (done, _) = install(vec![
        json(200, &stored(7, "", &[])),
        json(409, &conflict.to_string()),
    ])
    .await;
    let text = done.unwrap_err().to_string();
    assert!(
        text.contains("kubectl") && text.contains(".spec.scope"),
        "{text}"
    );
}

#[tokio::test]
async fn what_is_no_definition_is_refused() {
    let mut nameless = definition(&["v1"]);
    nameless["metadata"] = value!({});
    let mut other = definition(&["v1"]);
    other["kind"] = value!("Secret");
    for bad in [nameless, other, definition(&[]), Value::Null] {
        let fake = Fake::broken();
        let done = fake
            .connection()
            .definitions()
            .install(&bad, MANAGER, "1")
            .await;
        assert!(matches!(done, Err(CrdError::Invalid { .. })), "{bad}");
        assert!(fake.seen().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_waited_for_until_its_kind_is_served() {
    let fake = Fake::script([
        json(200, "{}"),
        status(500, "InternalError", "etcd is slow"),
        with_conditions(&[("NamesAccepted", "False"), ("Established", "False")]),
        with_conditions(&[("NamesAccepted", "True"), ("Established", "False")]),
        with_conditions(&[("NamesAccepted", "True"), ("Established", "True")]),
    ]);
    let waited = fake
        .connection()
        .definitions()
        .wait_established(NAME, Duration::from_secs(30))
        .await;
    assert!(waited.is_ok(), "{waited:?}");
    assert_eq!(fake.seen().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn what_never_will_be_served_is_told() {
    type Answers = Box<dyn Fn() -> Answer + Send + Sync>;
    let cases: [(Answers, &str); 6] = [
        (
            Box::new(|| with_conditions(&[("NamesAccepted", "False"), ("Established", "False")])),
            "names not accepted: R: m",
        ),
        (
            Box::new(|| json(200, "{}")),
            "not established after 30s: no conditions yet",
        ),
        (Box::new(hang), "not established after 30s"),
        (Box::new(|| status(404, "NotFound", "no")), "was deleted"),
        (
            Box::new(|| json(200, r#"{"metadata":{"deletionTimestamp":"x"}}"#)),
            "is being deleted",
        ),
        (
            Box::new(|| status(403, "Forbidden", "no")),
            "cannot read CustomResourceDefinition",
        ),
    ];
    for (answer, words) in cases {
        let seen = Arc::new(Mutex::new(0));
        let count = seen.clone();
        let fake = Fake::new(move |_| {
            *count.lock() += 1;
            answer()
        });
        let waited = fake
            .connection()
            .definitions()
            .wait_established(NAME, Duration::from_secs(30))
            .await;
        let text = waited.unwrap_err().to_string();
        assert!(text.contains(words) && text.contains(NAME), "{text}");
        assert!(*seen.lock() < 60, "it looks too often");
    }
}
