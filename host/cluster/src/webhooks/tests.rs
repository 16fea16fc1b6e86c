use super::*;
use crate::fake::{Fake, json as answer, status};

const SECRET: &str = r#"{"kind":"Secret","type":"Opaque","metadata":{"name":"ca","namespace":"n","resourceVersion":"7","labels":{"a":"b"},"managedFields":[{}]},"data":{"x":"aGk="}}"#;
const ANSWER: &str = r#"{"metadata":{"name":"vmhost-p","resourceVersion":"8"}}"#;

#[tokio::test]
async fn one_secret_is_read_created_and_replaced() {
    let fake = Fake::script([
        status(404, "NotFound", "no"),
        answer(201, SECRET),
        answer(200, SECRET),
        status(409, "Conflict", "changed"),
    ]);
    let secret = fake.connection().secret("n", "ca");
    assert!(secret.get().await.unwrap().is_none());
    let data = BTreeMap::from([("x".to_owned(), b"hi".to_vec())]);
    let created = secret.create(&data).await.map(|made| made.data);
    assert_eq!(created.unwrap(), data);
    let read = secret.get().await.unwrap().unwrap();
    let refused = secret.replace(&read, &data).await.err().unwrap();
    assert_eq!(refused.code(), Some(409));

    let seen = fake.seen();
    let all = "/api/v1/namespaces/n/secrets";
    let one = format!("{all}/ca");
    let sent: Vec<_> = seen
        .iter()
        .map(|s| (s.method.as_str(), s.path.as_str()))
        .collect();
    let wanted = [
        ("GET", &*one),
        ("POST", all),
        ("GET", &*one),
        ("PUT", &*one),
    ];
    assert_eq!(sent, wanted);
    let body: Value = serde_json::from_str(&seen[3].body).unwrap();
    assert_eq!(
        body,
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"x": "aGk="},
            "metadata": {"name": "ca", "namespace": "n", "resourceVersion": "7", "labels": {"a": "b"}}}),
        "guarded by its version, and others' labels stay"
    );
}

#[tokio::test]
async fn a_name_cannot_leave_its_place() {
    let fake = Fake::script([]);
    for (namespace, name) in [("n", "../x"), ("..", "ca"), ("", "ca")] {
        let secret = fake.connection().secret(namespace, name);
        assert!(matches!(secret.get().await, Err(Error::NotSent(_))));
    }
    assert!(fake.seen().is_empty());
}

#[tokio::test]
async fn a_damaged_secret_is_not_quoted() {
    for body in [
        r#"{"metadata":{},"data":{"x":"hidden!"}}"#,
        r#"{"metadata":{},"data":"hidden"}"#,
    ] {
        let fake = Fake::script([answer(200, body)]);
        let error = fake.connection().secret("n", "ca").get().await;
        let text = error.err().unwrap().to_string();
        assert!(!text.contains("hidden"), "{text}");
    }
}

#[tokio::test]
async fn objects_are_read_patched_and_applied_as_vmhost() {
    let fake = Fake::script([
        status(404, "NotFound", "no"),
        answer(200, ANSWER),
        answer(200, ANSWER),
    ]);
    let objects = fake.connection().webhook_objects();
    let none = objects
        .get(WebhookObject::Definition, "vms.example.com")
        .await;
    assert!(none.unwrap().is_none());
    let operations = json!([{"op": "test", "path": "/metadata/resourceVersion", "value": "7"}]);
    let patched = objects.patch(WebhookObject::Mutating, "vmhost-p", &operations);
    assert_eq!(patched.await.unwrap().version, 8);
    let body = json!({"metadata": {"name": "vmhost-p"}});
    let applied = objects.apply(WebhookObject::Validating, "vmhost-p", &body);
    assert_eq!(applied.await.unwrap().version, 8);

    let seen = fake.seen();
    let sent: Vec<_> = seen
        .iter()
        .map(|s| (s.method.as_str(), s.path.as_str(), s.query.as_str()))
        .collect();
    let registration = "/apis/admissionregistration.k8s.io/v1";
    let mutating = format!("{registration}/mutatingwebhookconfigurations/vmhost-p");
    let validating = format!("{registration}/validatingwebhookconfigurations/vmhost-p");
    let wanted = [
        (
            "GET",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/vms.example.com",
            "",
        ),
        ("PATCH", &*mutating, "fieldManager=vmhost"),
        ("PATCH", &*validating, "fieldManager=vmhost&force=true"),
    ];
    assert_eq!(sent, wanted);
    assert_eq!(seen[1].content_type, "application/json-patch+json");
    assert_eq!(seen[1].body, operations.to_string());
}
